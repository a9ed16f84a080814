// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of a manager's own links: held, reserved with a lease, freed. The participant's side
//! of the protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use admission::{
    FrameSpecification, Ledger, LinkBytes, LinkId, LinkUse, Name, Refusal, SegmentId, Topology,
};

use crate::ended::Ended;
use crate::record::{Attempt, Part, PartState, Update, part_name};

/// Where frames are sent to: address, protocol, port.
type Destination = (IpAddr, u8, u16);

/// The parts, by `coordinator/id`. Every change is also recorded as an [`Update`] of the store.
#[derive(Debug)]
pub struct Parts {
    /// What the names of the manager's own parts begin with.
    own_prefix: String,
    topology: Arc<Topology>,
    /// Whether a link is of this manager, by link.
    own: Vec<bool>,
    ledger: Ledger,
    parts: BTreeMap<Name, Arc<Part>>,
    /// Live parts by stream.
    streams: BTreeMap<Name, Name>,
    /// Live parts by what their frames are sent to.
    frames: BTreeSet<(Destination, Name)>,
    deadlines: BTreeSet<(u64, Name)>,
    /// Dead parts, by coordinator.
    ended: Ended,
    /// Longest time that a freed part is remembered, ns.
    tombstone_ns: u64,
    /// Number of the clock that its times are of.
    clock: u32,
    /// The topology that comes next, and what is reserved of it: all has to fit it, too.
    next: Option<(Arc<Topology>, Ledger)>,
}

/// Bytes that a coordinator asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    pub attempt: Attempt,
    /// Name of the stream.
    pub stream_id: &'a str,
    /// Which frames are the stream's.
    pub frames: &'a [FrameSpecification],
    pub links: &'a [LinkBytes],
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
    /// This try of another start of the coordinator has bytes for the same id.
    Conflict(Attempt),
}

/// Returns what a frame of a specification is sent to.
fn destination(of: &FrameSpecification) -> Destination {
    match of {
        FrameSpecification::Ipv4Tuple(of) => (
            of.destination_ip_address.into(),
            of.protocol,
            of.destination_port,
        ),
        FrameSpecification::Ipv6Tuple(of) => (
            of.destination_ip_address.into(),
            of.protocol,
            of.destination_port,
        ),
    }
}

fn coordinator(name: &str) -> &str {
    name.split_once('/')
        .map_or(name, |(coordinator, _)| coordinator)
}

fn no_link(link: &LinkBytes) -> Refusal {
    Refusal::Invalid {
        field: "link".to_owned(),
        value: link.link.to_string(),
        expected: "a link of this manager's topology, once".to_owned(),
    }
}

fn uses(topology: &Topology, links: &[LinkBytes]) -> Result<Vec<LinkUse>, Refusal> {
    let of = |link: &LinkBytes| {
        let id = topology.link_id(&link.link).ok_or_else(|| no_link(link))?;
        Ok(LinkUse {
            link: id,
            bytes: link.bytes,
        })
    };
    links.iter().map(of).collect()
}

impl Parts {
    /// Returns no parts.
    pub fn new(
        manager: &str,
        topology: Arc<Topology>,
        own: Vec<bool>,
        (tombstone_ns, clock): (u64, u32),
    ) -> Self {
        Self {
            own_prefix: part_name(manager, "").to_string(),
            topology,
            own,
            ledger: Ledger::default(),
            parts: BTreeMap::new(),
            streams: BTreeMap::new(),
            frames: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            ended: Ended::default(),
            tombstone_ns,
            clock,
            next: None,
        }
    }

    /// Returns what is held and reserved.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns whether a link is of this manager.
    pub fn is_own(&self, link: LinkId) -> bool {
        self.own.get(link.0).copied().unwrap_or(false)
    }

    pub fn all(&self) -> &BTreeMap<Name, Arc<Part>> {
        &self.parts
    }

    /// Returns the segments of links; those that the topology lacks have none.
    pub fn segments(&self, links: &[LinkBytes]) -> BTreeSet<SegmentId> {
        let of = |link: &LinkBytes| Some(self.topology.link(self.topology.link_id(&link.link)?));
        let known = links.iter().filter_map(of);
        known.map(|link| link.segment).collect()
    }

    /// Takes a part from the store.
    ///
    /// # Errors
    /// If the topology lacks its links, or they have fewer bytes.
    pub fn restore(&mut self, name: Name, part: Part) -> Result<(), Refusal> {
        if part.state != PartState::Dead {
            let uses = self.uses(&part.links)?;
            self.ledger.insert(&self.topology, &name, uses)?;
        }
        self.index(name, Arc::new(part));
        Ok(())
    }

    fn uses(&self, links: &[LinkBytes]) -> Result<Vec<LinkUse>, Refusal> {
        let uses = uses(&self.topology, links)?;
        let mut seen = BTreeSet::new();
        let mut pairs = uses.iter().zip(links);
        match pairs.find(|(of, _)| !self.is_own(of.link) || !seen.insert(of.link)) {
            Some((_, link)) => Err(no_link(link)),
            None => Ok(uses),
        }
    }

    /// Returns the live parts that do not fit another topology, and what the others take of it. Of two
    /// that do not fit together the first has the bytes. O(n log n).
    pub fn misfits(&self, topology: &Topology) -> (Vec<(Name, Refusal)>, Ledger) {
        let mut ledger = Ledger::default();
        let mut misfits = Vec::new();
        for (name, part) in &self.parts {
            if part.state == PartState::Dead {
                continue;
            }
            let taken = uses(topology, &part.links);
            let taken = taken.and_then(|uses| ledger.insert(topology, name, uses));
            if let Err(refusal) = taken {
                misfits.push((name.clone(), refusal));
            }
        }
        (misfits, ledger)
    }

    /// Takes nothing from now on that does not fit the topology that comes next.
    pub fn keep_to(&mut self, topology: Arc<Topology>, ledger: Ledger) {
        self.next = Some((topology, ledger));
    }

    /// Returns the topology that comes next.
    pub fn next(&self) -> Option<&Topology> {
        self.next.as_ref().map(|(topology, _)| &**topology)
    }

    /// Enters a part into all tables but the ledger.
    fn index(&mut self, name: Name, part: Arc<Part>) {
        self.deadlines.insert((part.expires_ns, name.clone()));
        if part.state != PartState::Dead {
            self.streams.insert(part.stream_id.clone(), name.clone());
            for frames in &part.frames {
                self.frames.insert((destination(frames), name.clone()));
            }
        } else {
            self.ended
                .insert(coordinator(&name), part.expires_ns, &name);
        }
        self.parts.insert(name, part);
    }

    /// Stores a part in the place of the one of this name.
    fn set(&mut self, name: &str, part: Part, updates: &mut Vec<Update>) {
        let name = Name::from(name);
        self.forget(&name);
        let part = Arc::new(part);
        updates.push(self.update(&name, Some(Arc::clone(&part))));
        self.index(name, part);
    }

    /// Returns a change of a part.
    pub fn update(&self, name: &Name, part: Option<Arc<Part>>) -> Update {
        if name.starts_with(&self.own_prefix) {
            Update::OwnPart(name.clone(), part)
        } else {
            Update::Part(name.clone(), part)
        }
    }

    /// Removes a part from all tables but the ledger.
    fn forget(&mut self, name: &Name) {
        let Some(old) = self.parts.remove(name) else {
            return;
        };
        let of_stream = self.streams.get(&old.stream_id);
        if of_stream.is_some_and(|of| of == name) {
            self.streams.remove(&old.stream_id);
        }
        for frames in &old.frames {
            self.frames.remove(&(destination(frames), name.clone()));
        }
        self.ended.remove(coordinator(name), old.expires_ns, name);
        self.deadlines.remove(&(old.expires_ns, name.clone()));
    }

    /// Returns the part of a try that has not ended.
    fn live(&self, name: &str, attempt: Attempt) -> Option<&Arc<Part>> {
        let part = self.parts.get(name)?;
        (part.attempt == attempt && part.state != PartState::Dead).then_some(part)
    }

    /// Returns the refusal of a stream whose name or frames another live part has.
    fn taken(&self, name: &str, wanted: &Wanted<'_>) -> Option<Refusal> {
        let of_stream = self.streams.get(wanted.stream_id);
        if of_stream.is_some_and(|of| of != name) {
            return Some(Refusal::StreamIdInUse {
                stream_id: wanted.stream_id.to_owned(),
            });
        }
        for one in wanted.frames {
            let at = destination(one);
            let others = self.frames.range((at, Name::default())..);
            let others = others.take_while(|(of, _)| *of == at);
            for (_, other) in others.filter(|(_, other)| other != name) {
                let claimed = self.parts.get(other).map(|part| part.frames.as_slice());
                let mut claimed = claimed.unwrap_or_default().iter();
                if claimed.any(|of| of.overlaps(one)) {
                    let (address, protocol, port) = at;
                    return Some(Refusal::FramesInUse {
                        address,
                        protocol,
                        port,
                    });
                }
            }
        }
        None
    }

    /// Returns what a try lacks, or nothing if it fits beside all other parts. O(n log m) for n
    /// links of m.
    ///
    /// # Errors
    /// If its name or frames are in use, a link is of another manager, or lacks bytes.
    pub fn fits(&self, name: &str, wanted: &Wanted<'_>) -> Result<(), Refusal> {
        self.fitting(name, wanted).map(drop)
    }

    /// Returns the bytes of a try that fits.
    fn fitting(&self, name: &str, wanted: &Wanted<'_>) -> Result<Vec<LinkUse>, Refusal> {
        if let Some(refusal) = self.taken(name, wanted) {
            return Err(refusal);
        }
        let uses = self.uses(wanted.links)?;
        self.ledger.fits(&self.topology, name, &uses)?;
        Ok(uses)
    }

    /// Holds bytes in the place of an older try's of the same start.
    pub fn hold(
        &mut self,
        now_ns: u64,
        name: &str,
        wanted: &Wanted<'_>,
        hold_ns: u64,
        updates: &mut Vec<Update>,
    ) -> Hold {
        let attempt = wanted.attempt;
        if let Some(old) = self.parts.get(name) {
            let is_dead = old.state == PartState::Dead;
            if old.attempt.is_after(attempt) || (old.attempt == attempt && is_dead) {
                return Hold::Stale;
            }
            if old.attempt == attempt {
                let is_same = old.stream_id == wanted.stream_id
                    && old.frames == wanted.frames
                    && old.links == wanted.links;
                return if is_same {
                    Hold::Held
                } else {
                    Hold::Refused(Refusal::Invalid {
                        field: "attempt".to_owned(),
                        value: attempt.to_string(),
                        expected: "a try of its own for other bytes".to_owned(),
                    })
                };
            }
            if !is_dead && old.attempt.epoch != attempt.epoch {
                return Hold::Conflict(old.attempt);
            }
        }
        let part = Part {
            state: PartState::Held,
            expires_ns: now_ns.saturating_add(hold_ns),
            ..self.new_part(wanted, hold_ns)
        };
        match self.take(name, wanted, part, updates) {
            Ok(()) => Hold::Held,
            Err(refusal) => Hold::Refused(refusal),
        }
    }

    /// Takes back what a coordinator claims and this manager does not know: its store was lost, or
    /// is of an earlier time.
    pub fn take_back(
        &mut self,
        name: &str,
        wanted: &Wanted<'_>,
        (lease_ns, expires_ns): (u64, u64),
        updates: &mut Vec<Update>,
    ) -> Result<(), Refusal> {
        let part = Part {
            state: PartState::Committed,
            expires_ns,
            ..self.new_part(wanted, lease_ns)
        };
        self.take(name, wanted, part, updates)
    }

    /// Returns links whose names are those of the topology.
    fn shared(&self, links: &[LinkBytes]) -> Vec<LinkBytes> {
        let shared = |of: &LinkBytes| LinkBytes {
            link: self.topology.shared_name(&of.link),
            bytes: of.bytes,
        };
        links.iter().map(shared).collect()
    }

    fn new_part(&self, wanted: &Wanted<'_>, lease_ns: u64) -> Part {
        Part {
            attempt: wanted.attempt,
            state: PartState::Dead,
            stream_id: wanted.stream_id.into(),
            frames: wanted.frames.to_vec(),
            links: self.shared(wanted.links),
            lease_ns,
            expires_ns: 0,
            clock: self.clock,
        }
    }

    fn take(
        &mut self,
        name: &str,
        wanted: &Wanted<'_>,
        part: Part,
        updates: &mut Vec<Update>,
    ) -> Result<(), Refusal> {
        let own = self.fitting(name, wanted)?;
        if let Some((next, ledger)) = &mut self.next {
            let uses = uses(next, wanted.links)?;
            ledger.insert(next, name, uses)?;
        }
        self.ledger.insert(&self.topology, name, own)?;
        self.set(name, part, updates);
        Ok(())
    }

    /// Turns a held part into a reservation; returns whether there is one.
    pub fn commit(
        &mut self,
        now_ns: u64,
        name: &str,
        attempt: Attempt,
        lease_ns: u64,
        updates: &mut Vec<Update>,
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
                clock: self.clock,
                ..Part::clone(part)
            };
            self.set(name, part, updates);
        }
        true
    }

    /// Makes a lease end no earlier than `expires_ns`; returns whether there is one.
    pub fn refresh(
        &mut self,
        name: &str,
        attempt: Attempt,
        (lease_ns, expires_ns): (u64, u64),
        updates: &mut Vec<Update>,
    ) -> bool {
        let Some(part) = self.live(name, attempt) else {
            return false;
        };
        if part.state != PartState::Committed {
            return false;
        }
        let expires_ns = part.expires_ns.max(expires_ns);
        if (part.lease_ns, part.expires_ns) != (lease_ns, expires_ns) {
            let part = Part {
                lease_ns,
                expires_ns,
                clock: self.clock,
                ..Part::clone(part)
            };
            self.set(name, part, updates);
        }
        true
    }

    /// Frees the bytes of a try, and of earlier ones of the same start, and remembers that for a
    /// while. A try of another start keeps its bytes.
    pub fn release(
        &mut self,
        now_ns: u64,
        name: &str,
        attempt: Attempt,
        updates: &mut Vec<Update>,
    ) {
        let old = self.parts.get(name);
        let is_other = old.is_some_and(|old| match old.state {
            PartState::Dead => old.attempt == attempt || old.attempt.is_after(attempt),
            _ => old.attempt != attempt && !attempt.is_after(old.attempt),
        });
        if is_other {
            return;
        }
        let part = Part {
            attempt,
            state: PartState::Dead,
            stream_id: old.map(|old| old.stream_id.clone()).unwrap_or_default(),
            frames: Vec::new(),
            links: Vec::new(),
            lease_ns: self.tombstone_ns,
            expires_ns: now_ns.saturating_add(self.tombstone_ns),
            clock: self.clock,
        };
        self.ledger.remove(name);
        if let Some((_, ledger)) = &mut self.next {
            ledger.remove(name);
        }
        self.set(name, part, updates);
        while let Some(oldest) = self.ended.too_many(coordinator(name)) {
            self.forget(&oldest);
            updates.push(self.update(&oldest, None));
        }
    }

    /// Frees what has ended, and forgets what ended long ago. O(log n) for each.
    pub fn expire(&mut self, now_ns: u64, updates: &mut Vec<Update>) {
        while let Some((at_ns, name)) = self.deadlines.first().cloned() {
            if at_ns > now_ns {
                break;
            }
            self.deadlines.pop_first();
            match self.parts.get(&name) {
                // A late message of this try must not bring it back.
                Some(part) if part.state != PartState::Dead => {
                    let attempt = part.attempt;
                    self.release(now_ns, &name, attempt, updates);
                }
                _ => {
                    self.forget(&name);
                    updates.push(self.update(&name, None));
                }
            }
        }
    }

    /// Returns when the next part ends.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.deadlines.first().map(|(at_ns, _)| *at_ns)
    }
}
