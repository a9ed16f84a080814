// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of a manager's own links: held, reserved with a lease, freed. The participant's side
//! of the protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use admission::{Ledger, LinkBytes, LinkId, LinkUse, Refusal, Topology};

use crate::record::{Change, Part, PartState};

/// The parts, by `coordinator/id`. Every change is also recorded as a [`Change`] of the store.
#[derive(Debug)]
pub struct Parts {
    topology: Arc<Topology>,
    /// Whether a link is of this manager, by link.
    own: Vec<bool>,
    ledger: Ledger,
    parts: BTreeMap<String, Part>,
    /// Live parts by stream.
    streams: BTreeMap<String, String>,
    deadlines: BTreeSet<(u64, String)>,
    /// Longest time that a freed part is remembered, ns.
    tombstone_ns: u64,
}

/// How a request to hold bytes ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The bytes are held.
    Held,
    /// They are not.
    Refused(Refusal),
    /// A newer try is known, or this one has ended: no answer.
    Stale,
}

impl Parts {
    /// Returns no parts.
    #[must_use]
    pub fn new(topology: Arc<Topology>, own: Vec<bool>, tombstone_ns: u64) -> Self {
        Self {
            topology,
            own,
            ledger: Ledger::default(),
            parts: BTreeMap::new(),
            streams: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            tombstone_ns,
        }
    }

    /// Returns what is held and reserved.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns whether a link is of this manager.
    #[must_use]
    pub fn is_own(&self, link: LinkId) -> bool {
        self.own.get(link.0).copied().unwrap_or(false)
    }

    /// Returns all parts.
    #[must_use]
    pub fn all(&self) -> &BTreeMap<String, Part> {
        &self.parts
    }

    /// Takes a part from the store.
    ///
    /// # Errors
    /// If the topology lacks its links, or they have fewer bytes.
    pub fn restore(&mut self, name: String, part: Part) -> Result<(), Refusal> {
        let uses = self.uses(&part.links)?;
        if part.state != PartState::Dead {
            self.ledger.insert(&self.topology, &name, uses)?;
            self.streams.insert(part.stream_id.clone(), name.clone());
        }
        self.deadlines.insert((part.expires_ns, name.clone()));
        self.parts.insert(name, part);
        Ok(())
    }

    fn uses(&self, links: &[LinkBytes]) -> Result<Vec<LinkUse>, Refusal> {
        let own = |link: &LinkBytes| {
            let id = self.topology.link_id(&link.link)?;
            self.is_own(id).then_some(LinkUse {
                link: id,
                bytes: link.bytes,
            })
        };
        let wrong = |link: &LinkBytes| Refusal::Invalid {
            field: "link".to_owned(),
            value: link.link.clone(),
            expected: "a link of this manager's topology".to_owned(),
        };
        links
            .iter()
            .map(|link| own(link).ok_or_else(|| wrong(link)))
            .collect()
    }

    /// Stores a part in the place of the one of this name.
    fn set(&mut self, name: &str, part: Part, changes: &mut Vec<Change>) {
        self.forget(name);
        self.deadlines.insert((part.expires_ns, name.to_owned()));
        if part.state != PartState::Dead {
            self.streams.insert(part.stream_id.clone(), name.to_owned());
        }
        changes.push(part.put(name));
        self.parts.insert(name.to_owned(), part);
    }

    /// Removes a part from all but the ledger.
    fn forget(&mut self, name: &str) {
        if let Some(old) = self.parts.remove(name) {
            if self
                .streams
                .get(&old.stream_id)
                .is_some_and(|of| of == name)
            {
                self.streams.remove(&old.stream_id);
            }
            self.deadlines.remove(&(old.expires_ns, name.to_owned()));
        }
    }

    /// Returns the part of a try that has not ended.
    fn live(&self, name: &str, attempt: u64) -> Option<&Part> {
        let part = self.parts.get(name)?;
        (part.attempt == attempt && part.state != PartState::Dead).then_some(part)
    }

    /// Holds bytes in the place of an older try's.
    pub fn hold(
        &mut self,
        now_ns: u64,
        name: &str,
        (attempt, stream_id): (u64, &str),
        links: Vec<LinkBytes>,
        hold_ns: u64,
        changes: &mut Vec<Change>,
    ) -> Hold {
        if let Some(old) = self.parts.get(name) {
            if old.attempt > attempt || (old.attempt == attempt && old.state == PartState::Dead) {
                return Hold::Stale;
            }
            if old.attempt == attempt {
                return Hold::Held;
            }
        }
        if self.streams.get(stream_id).is_some_and(|of| of != name) {
            return Hold::Refused(Refusal::StreamIdInUse {
                stream_id: stream_id.to_owned(),
            });
        }
        let uses = self.uses(&links);
        let held = uses.and_then(|uses| self.ledger.insert(&self.topology, name, uses));
        if let Err(refusal) = held {
            return Hold::Refused(refusal);
        }
        let part = Part {
            attempt,
            state: PartState::Held,
            stream_id: stream_id.to_owned(),
            links,
            lease_ns: hold_ns,
            expires_ns: now_ns.saturating_add(hold_ns),
        };
        self.set(name, part, changes);
        Hold::Held
    }

    /// Turns a held part into a reservation; returns whether there is one.
    pub fn commit(
        &mut self,
        now_ns: u64,
        name: &str,
        attempt: u64,
        lease_ns: u64,
        changes: &mut Vec<Change>,
    ) -> bool {
        let Some(part) = self.live(name, attempt) else {
            return false;
        };
        // The same message twice begins no second lease.
        if part.state == PartState::Held {
            let part = Part {
                state: PartState::Committed,
                lease_ns,
                expires_ns: now_ns.saturating_add(lease_ns),
                ..part.clone()
            };
            self.set(name, part, changes);
        }
        true
    }

    /// Begins a lease anew; returns whether there is one.
    pub fn refresh(
        &mut self,
        now_ns: u64,
        name: &str,
        attempt: u64,
        lease_ns: u64,
        changes: &mut Vec<Change>,
    ) -> bool {
        let Some(part) = self.live(name, attempt) else {
            return false;
        };
        if part.state != PartState::Committed {
            return false;
        }
        let part = Part {
            lease_ns,
            expires_ns: part.expires_ns.max(now_ns.saturating_add(lease_ns)),
            ..part.clone()
        };
        self.set(name, part, changes);
        true
    }

    /// Frees the bytes of a try and of those before it, and remembers that for a while.
    pub fn release(&mut self, now_ns: u64, name: &str, attempt: u64, changes: &mut Vec<Change>) {
        let old = self.parts.get(name);
        let has_ended = old.is_some_and(|old| {
            old.attempt > attempt || (old.attempt == attempt && old.state == PartState::Dead)
        });
        if has_ended {
            return;
        }
        let part = Part {
            attempt,
            state: PartState::Dead,
            stream_id: old.map(|old| old.stream_id.clone()).unwrap_or_default(),
            links: Vec::new(),
            lease_ns: self.tombstone_ns,
            expires_ns: now_ns.saturating_add(self.tombstone_ns),
        };
        self.ledger.remove(name);
        self.set(name, part, changes);
    }

    /// Frees what has ended, and forgets what ended long ago. O(log n) for each.
    pub fn expire(&mut self, now_ns: u64, changes: &mut Vec<Change>) {
        while let Some((at_ns, name)) = self.deadlines.first().cloned() {
            if at_ns > now_ns {
                break;
            }
            self.deadlines.pop_first();
            match self.parts.get(&name) {
                // A late message of this try must not bring it back.
                Some(part) if part.state != PartState::Dead => {
                    let attempt = part.attempt;
                    self.release(now_ns, &name, attempt, changes);
                }
                _ => {
                    self.forget(&name);
                    changes.push(Part::remove(&name));
                }
            }
        }
    }

    /// Returns when the next part ends.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.deadlines.first().map(|(at_ns, _)| *at_ns)
    }
}
