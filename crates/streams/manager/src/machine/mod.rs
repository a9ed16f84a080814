// SPDX-License-Identifier: MIT OR Apache-2.0
//! A manager as a state machine: commands, messages and the time go in; answers, messages, changes
//! of the store and the next wake-up come out.
//!
//! Whoever runs it stores the changes before it sends answers or messages. After a crash it is made
//! anew from the store; what was not stored was not said to anybody.

mod lease;
mod receive;
mod reroute;
mod reserve;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use admission::{Refusal, Topology};
use units::time::{NS_PER_MS, NS_PER_S};

use crate::answer::{Answer, Command, Failure, View};
use crate::digest::digest;
use crate::message::Message;
use crate::parts::Parts;
use crate::pending::Pending;
use crate::record::{Change, Meta, Record, Reservation, ReservationState};

/// Most requests that wait for other managers at a time.
const MOST_PENDING: usize = 1024;

/// Times of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest time from a request to its answer, ns.
    pub deadline_ns: u64,
    /// Time until a message without an answer is sent once more, ns.
    pub retry_ns: u64,
    /// Longest time for which bytes are held without a commitment, ns: beyond the deadline.
    pub hold_ns: u64,
    /// Time for which an ended reservation is remembered, ns: longer than a message takes.
    pub tombstone_ns: u64,
    /// Shortest lease, ns.
    pub least_lease_ns: u64,
    /// Longest lease, ns.
    pub most_lease_ns: u64,
    /// Time in which the senders of a stream have to put it into force before it is granted, ns;
    /// `None`: it is granted without them.
    pub in_force_ns: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline_ns: 3 * NS_PER_S,
            retry_ns: 200 * NS_PER_MS,
            hold_ns: 10 * NS_PER_S,
            tombstone_ns: 120 * NS_PER_S,
            least_lease_ns: NS_PER_S,
            most_lease_ns: 24 * 3600 * NS_PER_S,
            in_force_ns: None,
        }
    }
}

impl Limits {
    /// Checks the length of a lease.
    ///
    /// # Errors
    /// If it is too short or too long.
    pub fn check_lease(&self, lease_ns: u64) -> Result<(), Failure> {
        let (least_ns, most_ns) = (self.least_lease_ns, self.most_lease_ns);
        if (least_ns..=most_ns).contains(&lease_ns) {
            Ok(())
        } else {
            Err(Failure::Lease {
                lease_ns,
                least_ns,
                most_ns,
            })
        }
    }
}

/// What a step of a manager brings about, in this order: changes are stored, then the rest is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Changes of the store.
    pub changes: Vec<Change>,
    /// Messages, each with the name of the manager it is for.
    pub messages: Vec<(String, Message)>,
    /// Answers, each with the ticket of its command.
    pub answers: Vec<(u64, Answer)>,
}

/// Why a store's records do not fit a manager.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// A record cannot be read.
    #[error("{0}")]
    Record(String),
    /// The store is another manager's.
    #[error("the store belongs to manager {found}, expected {expected}")]
    Name {
        /// Its manager.
        found: String,
        /// This manager.
        expected: String,
    },
    /// What is reserved does not fit the topology.
    #[error("reservation {name} does not fit the topology: {refusal}")]
    Misfit {
        /// The reservation, with its coordinator.
        name: String,
        /// Why.
        refusal: Refusal,
    },
}

/// A manager of segments.
#[derive(Debug)]
pub struct Manager {
    name: String,
    topology: Arc<Topology>,
    digest: u64,
    limits: Limits,
    parts: Parts,
    reservations: BTreeMap<String, Reservation>,
    /// Granted reservations by stream.
    streams: BTreeMap<String, String>,
    deadlines: BTreeSet<(u64, String)>,
    pending: BTreeMap<String, Pending>,
    /// Tickets of those who wait until a reservation is in force, by reservation.
    waiting: BTreeMap<String, Vec<u64>>,
    /// Reservations whose lease began anew here, by a boot, and may not have elsewhere.
    unconfirmed: BTreeSet<String>,
    now_ns: u64,
    next_attempt: u64,
    effects: Effects,
}

impl Manager {
    /// Makes a manager from the records of its store, none at first. It decides over the segments
    /// whose `manager` is its name, or over all that name none. After a boot, whose clock is
    /// another, every lease begins anew. One that other managers have a part in is refreshed there
    /// before it is promised again.
    ///
    /// # Errors
    /// If a record cannot be read or does not fit.
    pub fn restore(
        name: &str,
        topology: Arc<Topology>,
        limits: Limits,
        records: impl IntoIterator<Item = (String, Vec<u8>)>,
        (boot, now_ns): (&str, u64),
    ) -> Result<Self, RestoreError> {
        let own = topology.links().iter().map(|link| {
            let manager = &topology.segment(link.segment).spec.manager;
            manager.as_ref().is_none_or(|of| of == name)
        });
        let own = own.collect();
        let mut manager = Self {
            name: name.to_owned(),
            digest: digest(&topology),
            parts: Parts::new(Arc::clone(&topology), own, limits.tombstone_ns),
            topology,
            limits,
            reservations: BTreeMap::new(),
            streams: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            pending: BTreeMap::new(),
            waiting: BTreeMap::new(),
            unconfirmed: BTreeSet::new(),
            now_ns,
            next_attempt: 0,
            effects: Effects::default(),
        };
        let mut parts = Vec::new();
        let mut reservations = Vec::new();
        let mut meta = None;
        for (key, value) in records {
            match Record::read(&key, &value).map_err(RestoreError::Record)? {
                Record::Meta(found) => meta = Some(found),
                Record::Part(name, part) => parts.push((name, part)),
                Record::Reservation(id, reservation) => reservations.push((id, reservation)),
            }
        }
        if let Some(found) = meta.as_ref().filter(|meta| meta.name != name) {
            return Err(RestoreError::Name {
                found: found.name.clone(),
                expected: name.to_owned(),
            });
        }
        let is_same_clock = meta.as_ref().is_some_and(|meta| meta.boot == boot);
        let epoch = meta.map_or(0, |meta| meta.epoch).saturating_add(1);
        let meta = Meta {
            name: name.to_owned(),
            epoch,
            boot: boot.to_owned(),
        };
        manager.effects.changes.push(meta.put());
        manager.next_attempt = epoch << 32;
        for (name, mut part) in parts {
            if !is_same_clock {
                part.expires_ns = now_ns.saturating_add(part.lease_ns);
                manager.effects.changes.push(part.put(&name));
            }
            let restored = manager.parts.restore(name.clone(), part);
            restored.map_err(|refusal| RestoreError::Misfit { name, refusal })?;
        }
        for (id, mut reservation) in reservations {
            if !is_same_clock {
                let left_ns = match reservation.state {
                    ReservationState::Granted => reservation.lease_ns,
                    ReservationState::Ended => limits.tombstone_ns,
                };
                reservation.expires_ns = now_ns.saturating_add(left_ns);
                // That deadline was by the clock of the last boot, too.
                reservation.in_force_by_ns = reservation
                    .in_force_by_ns
                    .and(limits.in_force_ns)
                    .map(|within_ns| now_ns.saturating_add(within_ns));
                let hops = manager.hops(&reservation.grant.links);
                if hops.iter().any(|hop| hop.manager != name) {
                    manager.unconfirmed.insert(id.clone());
                }
                manager.effects.changes.push(reservation.put(&id));
            }
            manager.index(&id, &reservation);
            manager.reservations.insert(id, reservation);
        }
        manager.advance(now_ns);
        Ok(manager)
    }

    /// Takes what the last steps brought about.
    pub fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.effects)
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the network.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the bytes of its own links.
    #[must_use]
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Returns the reservations that it has granted, and those that ended a while ago.
    #[must_use]
    pub fn reservations(&self) -> &BTreeMap<String, Reservation> {
        &self.reservations
    }

    /// Returns the time of the last step.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Returns when it needs to be woken next. O(pending requests).
    #[must_use]
    pub fn next_wakeup_ns(&self) -> Option<u64> {
        let first = self.deadlines.first().map(|(at_ns, _)| *at_ns);
        let pending = self.pending.values().map(Pending::next_wakeup_ns).min();
        [self.parts.next_deadline_ns(), first, pending]
            .into_iter()
            .flatten()
            .min()
    }

    /// Ends leases and sends messages once more whose time has come. A clock that runs back stands
    /// still.
    pub fn advance(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        let now_ns = self.now_ns;
        self.parts.expire(now_ns, &mut self.effects.changes);
        while let Some((at_ns, id)) = self.deadlines.first().cloned() {
            if at_ns > now_ns {
                break;
            }
            match self.reservations.get(&id) {
                Some(found) if found.state == ReservationState::Granted => {
                    // The lease goes on, so it is the time to put it into force that is over.
                    if found.expires_ns > now_ns {
                        let failure = Failure::NotInForce(found.not_in_force());
                        self.answer_waiting(&id, &Answer::Failed(failure));
                    }
                    self.end(&id);
                }
                _ => {
                    self.deadlines.pop_first();
                    self.unconfirmed.remove(&id);
                    self.reservations.remove(&id);
                    self.effects.changes.push(Reservation::remove(&id));
                }
            }
        }
        let due = |pending: &Pending| pending.next_wakeup_ns() <= now_ns;
        let due: Vec<_> = self.pending.iter().filter(|(_, p)| due(p)).collect();
        let due: Vec<_> = due.into_iter().map(|(id, _)| id.clone()).collect();
        for id in due {
            self.give_up_or_retry(&id);
        }
    }

    /// Carries out a command; its answer, now or later, has the ticket.
    pub fn command(&mut self, now_ns: u64, ticket: u64, command: Command) {
        self.advance(now_ns);
        let answer = match command {
            Command::Reserve {
                id,
                caller,
                request,
                lease_ns,
            } => self.reserve(ticket, &id, caller, request, lease_ns),
            Command::Refresh {
                id,
                caller,
                lease_ns,
            } => self.refresh(ticket, &id, &caller, lease_ns),
            Command::Release { id, caller } => Some(self.release(&id, &caller)),
            Command::Report {
                id,
                caller,
                node,
                is_in_force,
            } => Some(self.report(&id, &caller, node, is_in_force)),
            Command::Reroute {
                id,
                caller,
                node,
                segment,
            } => self.reroute(ticket, &id, &caller, (&node, &segment)),
            Command::Measure {
                id,
                caller,
                listener,
                measured,
            } => Some(self.measure(&id, &caller, listener, measured)),
        };
        if let Some(answer) = answer {
            self.effects.answers.push((ticket, answer));
        }
    }

    /// Enters a reservation into the tables beside that of reservations.
    fn index(&mut self, id: &str, reservation: &Reservation) {
        self.deadlines.insert((reservation.due_ns(), id.to_owned()));
        if reservation.state == ReservationState::Granted {
            let stream_id = reservation.grant.stream_id.clone();
            self.streams.insert(stream_id, id.to_owned());
        }
    }

    /// Stores a reservation in the place of the one of this id.
    fn store(&mut self, id: &str, reservation: Reservation) {
        if let Some(old) = self.reservations.remove(id) {
            self.deadlines.remove(&(old.due_ns(), id.to_owned()));
            let stream_id = &old.grant.stream_id;
            if self.streams.get(stream_id).is_some_and(|of| of == id) {
                self.streams.remove(stream_id);
            }
        }
        self.index(id, &reservation);
        self.effects.changes.push(reservation.put(id));
        self.reservations.insert(id.to_owned(), reservation);
    }

    /// Stores a grant, and answers those who asked for it: now, or once it is in force.
    fn grant(&mut self, id: &str, reservation: Reservation) {
        let pending = self.pending.remove(id);
        let tickets = pending.map(|p| p.tickets).unwrap_or_default();
        let waiting = self.waiting.entry(id.to_owned()).or_default();
        waiting.extend(tickets);
        let view = View::new(id, &reservation, self.now_ns);
        let is_answered = reservation.in_force_by_ns.is_none();
        self.store(id, reservation);
        if is_answered {
            self.answer_waiting(id, &Answer::Granted(Box::new(view)));
        }
    }

    /// Answers those who wait until a reservation is in force.
    fn answer_waiting(&mut self, id: &str, answer: &Answer) {
        for ticket in self.waiting.remove(id).unwrap_or_default() {
            self.effects.answers.push((ticket, answer.clone()));
        }
    }
}
