// SPDX-License-Identifier: MIT OR Apache-2.0
//! A manager as a state machine: commands, messages and the time go in; answers, messages, changes
//! of the store and the next wake-up come out.
//!
//! Whoever runs it stores the changes before it sends answers or messages. After a crash it is made
//! anew from the store; what was not stored was not said to anybody.

mod claims;
mod drain;
mod lease;
mod peer;
mod receive;
mod reroute;
mod reserve;
mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use admission::{Name, Refusal, Topology};
use units::time::{NS_PER_MS, NS_PER_S};

use crate::answer::{Action, Answer, Command, Failure, View};
use crate::digest::segment_digests;
use crate::ended::Ended;
use crate::message::{Message, Reply};
use crate::parts::Parts;
use crate::pending::Pending;
use crate::record::{
    Attempt, Clock, META, Meta, Part, PartState, Record, Reservation, ReservationState, Update,
    part_name,
};
use peer::Peer;

pub use start::Start;

/// The clock is noted beside other changes if it was not for so long, ns.
const CLOCK_NS: u64 = NS_PER_S;

/// Times of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest time from a request to its answer, ns.
    pub deadline_ns: u64,
    /// Time until a message without an answer is sent once more, ns; it doubles each time.
    pub retry_ns: u64,
    /// Longest time for which bytes are held without a commitment, ns: beyond the deadline.
    pub hold_ns: u64,
    /// Time for which an ended reservation is remembered, ns: longer than a message takes.
    pub tombstone_ns: u64,
    /// Longest time without a note of the clock in the store, ns. After a boot, leases end late by
    /// no more than this and the time that the manager was away.
    pub heartbeat_ns: u64,
    pub least_lease_ns: u64,
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
            heartbeat_ns: 10 * NS_PER_S,
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

/// The answer to a command; `Ok(None)`: other managers are asked first.
type Answered = Result<Option<Answer>, Answer>;

/// What a step of a manager brings about, in this order: changes are stored, then the rest is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Changes of the records.
    pub updates: Vec<Update>,
    /// Messages, each with the name of the manager it is for.
    pub messages: Vec<(String, Message)>,
    /// Replies to envelopes, each with the ticket of its envelope.
    pub replies: Vec<(u64, Reply)>,
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
    Name { found: String, expected: String },
    /// What is reserved does not fit the topology.
    #[error(
        "reservation {name} does not fit the topology: {refusal}; before the topology is changed, \
         `pspacer topology --drain` ends what does not fit"
    )]
    Misfit {
        /// The reservation, with its coordinator.
        name: String,
        refusal: Refusal,
    },
}

/// A manager of segments.
#[derive(Debug)]
pub struct Manager {
    name: String,
    topology: Arc<Topology>,
    /// Digests of the segments.
    digests: Vec<u64>,
    limits: Limits,
    parts: Parts,
    reservations: BTreeMap<Name, Arc<Reservation>>,
    /// Granted reservations by stream.
    streams: BTreeMap<Name, Name>,
    /// Granted reservations by owner.
    owners: BTreeMap<Name, BTreeSet<Name>>,
    deadlines: BTreeSet<(u64, Name)>,
    /// Ended reservations, by owner.
    ended: Ended,
    pending: BTreeMap<String, Pending>,
    /// Tries that have ended, and whose bytes others have not freed yet.
    releases: BTreeMap<(String, Attempt), Pending>,
    /// Tickets of those who wait until a reservation is in force, by reservation.
    waiting: BTreeMap<String, Vec<u64>>,
    peers: BTreeMap<String, Peer>,
    epoch: u64,
    next_count: u64,
    clock: Clock,
    /// The records' times were of another clock, so what others have may end earlier.
    is_new_clock: bool,
    /// When it may grant, whoever has not claimed what he has here.
    grants_from_ns: u64,
    now_ns: u64,
    /// Why nothing may be granted: its store is full.
    full: Option<String>,
    effects: Effects,
}

impl Manager {
    /// Makes a manager from the records of its store, none at first. It decides over the segments
    /// whose `manager` is its name, or over all that name none. Times of another clock go on as
    /// that clock was last noted: no lease ends early.
    ///
    /// # Errors
    /// If a record cannot be read or does not fit.
    pub fn restore(
        start: &Start<'_>,
        topology: Arc<Topology>,
        limits: Limits,
        records: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<Self, RestoreError> {
        let (name, now_ns) = (start.name, start.now_ns);
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
        let used = parts.iter().map(|(_, part)| part.clock);
        let used = used.chain(reservations.iter().map(|(_, of)| of.clock));
        let old = meta.map(|meta| meta.clock);
        let clock = Clock::next(old.clone(), (start.boot, now_ns), &used.collect());
        let own = topology.links().iter().map(|link| {
            let manager = &topology.segment(link.segment).spec.manager;
            manager.as_ref().is_none_or(|of| of == name)
        });
        let own = own.collect();
        let others = start.peers.iter().filter(|of| *of != name);
        let longest_ns = if start.is_store_whole {
            0
        } else {
            limits.most_lease_ns
        };
        let mut manager = Self {
            name: name.to_owned(),
            digests: segment_digests(&topology),
            parts: Parts::new(
                name,
                Arc::clone(&topology),
                own,
                (limits.tombstone_ns, clock.number),
            ),
            topology,
            limits,
            reservations: BTreeMap::new(),
            streams: BTreeMap::new(),
            owners: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            ended: Ended::default(),
            pending: BTreeMap::new(),
            releases: BTreeMap::new(),
            waiting: BTreeMap::new(),
            peers: others.map(|of| (of.clone(), Peer::new(now_ns))).collect(),
            epoch: start.epoch,
            next_count: 0,
            is_new_clock: old.is_some_and(|old| old.number != clock.number),
            clock,
            grants_from_ns: now_ns.saturating_add(longest_ns),
            now_ns,
            full: None,
            effects: Effects::default(),
        };
        manager.note_clock();
        for (name, mut part) in parts {
            part.expires_ns = manager.own_time(part.clock, part.expires_ns, part.lease_ns);
            part.clock = manager.clock.number;
            let restored = manager.parts.restore(name.as_str().into(), part);
            restored.map_err(|refusal| RestoreError::Misfit { name, refusal })?;
        }
        for (id, mut reservation) in reservations {
            let lease_ns = match reservation.state {
                ReservationState::Granted => reservation.lease_ns,
                ReservationState::Ended => limits.tombstone_ns,
            };
            let of = reservation.clock;
            reservation.expires_ns = manager.own_time(of, reservation.expires_ns, lease_ns);
            if of != manager.clock.number {
                // That deadline was by the other clock, too.
                reservation.in_force_by_ns = reservation
                    .in_force_by_ns
                    .and(limits.in_force_ns)
                    .map(|within_ns| now_ns.saturating_add(within_ns));
            }
            reservation.clock = manager.clock.number;
            if reservation.state == ReservationState::Granted {
                manager.restore_own(&id, &reservation)?;
            }
            reservation.grant.share_names(&manager.topology);
            let id = Name::from(id);
            manager.index(&id, &reservation);
            manager.reservations.insert(id, Arc::new(reservation));
        }
        manager.advance(now_ns);
        Ok(manager)
    }

    /// Returns a time of a clock by this manager's. Of a clock that nobody knows, a lease begins
    /// anew.
    fn own_time(&self, clock: u32, at_ns: u64, lease_ns: u64) -> u64 {
        if clock == self.clock.number {
            return at_ns;
        }
        match self.clock.older.get(&clock) {
            Some(more_ns) => at_ns.saturating_add_signed(*more_ns),
            None => self.now_ns.saturating_add(lease_ns),
        }
    }

    /// Takes the own links of a granted reservation.
    fn restore_own(&mut self, id: &str, of: &Reservation) -> Result<(), RestoreError> {
        let hops = self.hops(&of.grant.links);
        let Some(own) = hops.into_iter().find(|hop| hop.manager == self.name) else {
            return Ok(());
        };
        let part = Part {
            attempt: of.attempt,
            state: PartState::Committed,
            stream_id: of.grant.stream_id.clone(),
            frames: of.request.talker.data_frame_specification.clone(),
            links: own.links,
            lease_ns: of.lease_ns,
            expires_ns: of.expires_ns,
            clock: of.clock,
        };
        let name = part_name(&self.name, id);
        let restored = self.parts.restore(name.clone(), part);
        restored.map_err(|refusal| RestoreError::Misfit {
            name: name.to_string(),
            refusal,
        })
    }

    /// Notes the clock in the store.
    fn note_clock(&mut self) {
        self.clock.now_ns = self.now_ns;
        self.effects.updates.push(Update::Meta(Meta {
            name: self.name.clone(),
            epoch: self.epoch,
            clock: self.clock.clone(),
        }));
    }

    /// Returns the identity of a new try.
    fn new_attempt(&mut self) -> Attempt {
        let count = self.next_count;
        self.next_count += 1;
        Attempt {
            epoch: self.epoch,
            count,
        }
    }

    /// Takes what the last steps brought about.
    pub fn take_effects(&mut self) -> Effects {
        let since_ns = self.now_ns.saturating_sub(self.clock.now_ns);
        if !self.effects.updates.is_empty() && since_ns >= CLOCK_NS {
            self.note_clock();
        }
        std::mem::take(&mut self.effects)
    }

    /// Grants nothing while its store is full.
    pub fn set_full(&mut self, why: Option<&str>) {
        self.full = why.map(str::to_owned);
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the network, shared.
    pub fn shared_topology(&self) -> Arc<Topology> {
        Arc::clone(&self.topology)
    }

    /// Returns whether records are those that this start has written, and no later one.
    pub fn is_last_of(&self, records: &[(String, Vec<u8>)]) -> bool {
        let meta = records.iter().find(|(key, _)| key == META);
        let meta = meta.map(|(key, value)| Record::read(key, value));
        matches!(meta, Some(Ok(Record::Meta(meta))) if meta.epoch == self.epoch)
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns all that it has, as changes of an empty store. O(n).
    pub fn records(&self) -> Vec<Update> {
        let meta = Update::Meta(Meta {
            name: self.name.clone(),
            epoch: self.epoch,
            clock: self.clock.clone(),
        });
        let parts = self.parts.all().iter();
        let parts = parts.map(|(name, of)| self.parts.update(name, Some(Arc::clone(of))));
        let all = self.reservations.iter();
        let all = all.map(|(id, of)| Update::Reservation(id.clone(), Some(Arc::clone(of))));
        [meta].into_iter().chain(parts).chain(all).collect()
    }

    /// Returns the bytes of its own links.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Returns the reservations that it has granted, and those that ended a while ago.
    pub fn reservations(&self) -> &BTreeMap<Name, Arc<Reservation>> {
        &self.reservations
    }

    /// Returns the time of the last step.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Returns when it needs to be woken next. O(pending requests and peers).
    pub fn next_wakeup_ns(&self) -> Option<u64> {
        let first = self.deadlines.first().map(|(at_ns, _)| *at_ns);
        let pending = self.pending.values().chain(self.releases.values());
        let pending = pending.map(Pending::next_wakeup_ns).min();
        let peers = self.peers.values().filter_map(Peer::next_wakeup_ns).min();
        let of_clock = self.has_records().then(|| self.next_note_ns());
        [
            self.parts.next_deadline_ns(),
            first,
            pending,
            peers,
            of_clock,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn has_records(&self) -> bool {
        !self.parts.all().is_empty() || !self.reservations.is_empty()
    }

    fn next_note_ns(&self) -> u64 {
        self.clock.now_ns.saturating_add(self.limits.heartbeat_ns)
    }

    /// Ends leases and sends messages once more whose time has come. A clock that runs back stands
    /// still.
    pub fn advance(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        let now_ns = self.now_ns;
        if self.has_records() && self.next_note_ns() <= now_ns {
            self.note_clock();
        }
        self.parts.expire(now_ns, &mut self.effects.updates);
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
                    self.forget(&id);
                }
            }
        }
        let due = |pending: &Pending| pending.next_wakeup_ns() <= now_ns;
        let due: Vec<_> = self.pending.iter().filter(|(_, p)| due(p)).collect();
        let due: Vec<_> = due.into_iter().map(|(id, _)| id.clone()).collect();
        for id in due {
            self.give_up_or_retry(&id);
        }
        let due = self
            .releases
            .iter()
            .filter(|(_, p)| p.next_wakeup_ns() <= now_ns);
        let due: Vec<_> = due.map(|(of, _)| of.clone()).collect();
        for of in due {
            self.release_once_more(of);
        }
        self.claim_what_is_due();
    }

    /// Carries out a command; its answer, now or later, has the ticket.
    pub fn command(&mut self, now_ns: u64, ticket: u64, command: Command) {
        self.advance(now_ns);
        let Command { id, caller, action } = command;
        let answer = match action {
            Action::Reserve {
                request,
                lease_ns,
                is_replacing,
            } => self.reserve(ticket, &id, &caller, (request, lease_ns), is_replacing),
            Action::Refresh { lease_ns } => self.refresh(ticket, &id, &caller, lease_ns),
            Action::Release => self.release(&id, &caller).map(Some),
            Action::FreePart { coordinator } => {
                self.free_part(&coordinator, &id, &caller).map(Some)
            }
            Action::Fit {
                topology,
                is_draining,
            } => self.fit(&topology, is_draining, &caller).map(Some),
            Action::Report { node, is_in_force } => {
                self.report(&id, &caller, node, is_in_force).map(Some)
            }
            Action::Reroute { node, segment } => {
                self.reroute(ticket, &id, &caller, (&node, &segment))
            }
            Action::Measure { listener, measured } => {
                self.measure(&id, &caller, listener, measured).map(Some)
            }
        };
        let answer = answer.unwrap_or_else(Some);
        self.effects
            .answers
            .extend(answer.map(|answer| (ticket, answer)));
    }

    /// Returns a reservation as others see it now.
    fn granted_view(&self, id: &str, of: &Reservation) -> Answer {
        Answer::Granted(Box::new(View::new(id, of, self.now_ns)))
    }

    /// Returns when what is begun now is given up.
    fn deadline_ns(&self) -> u64 {
        self.now_ns.saturating_add(self.limits.deadline_ns)
    }

    /// Enters a reservation into the tables beside that of reservations.
    fn index(&mut self, id: &Name, reservation: &Reservation) {
        self.deadlines.insert((reservation.due_ns(), id.clone()));
        if reservation.state == ReservationState::Granted {
            let stream_id = reservation.grant.stream_id.clone();
            self.streams.insert(stream_id, id.clone());
            let of_owner = self.owners.entry(reservation.owner.clone());
            of_owner.or_default().insert(id.clone());
        } else {
            let owner = &reservation.owner;
            self.ended.insert(owner, reservation.expires_ns, id);
        }
    }

    /// Forgets a reservation that has ended.
    fn forget(&mut self, id: &Name) {
        if let Some(old) = self.reservations.remove(id) {
            self.deadlines.remove(&(old.due_ns(), id.clone()));
            self.ended.remove(&old.owner, old.expires_ns, id);
        }
        let update = Update::Reservation(id.clone(), None);
        self.effects.updates.push(update);
    }

    /// Stores a reservation in the place of the one of this id.
    fn store(&mut self, id: &str, reservation: Reservation) {
        let id = Name::from(id);
        if let Some(old) = self.reservations.remove(&id) {
            self.deadlines.remove(&(old.due_ns(), id.clone()));
            self.ended.remove(&old.owner, old.expires_ns, &id);
            let stream_id = &old.grant.stream_id;
            if self.streams.get(stream_id).is_some_and(|of| *of == id) {
                self.streams.remove(stream_id);
            }
            if let Some(own) = self.owners.get_mut(&old.owner) {
                own.remove(&id);
                if own.is_empty() {
                    self.owners.remove(&old.owner);
                }
            }
        }
        let reservation = Reservation {
            clock: self.clock.number,
            ..reservation
        };
        self.index(&id, &reservation);
        let reservation = Arc::new(reservation);
        let update = Update::Reservation(id.clone(), Some(Arc::clone(&reservation)));
        self.effects.updates.push(update);
        self.reservations.insert(id, reservation);
    }

    /// Stores a grant, and answers those who asked for it: now, or once it is in force.
    fn grant(&mut self, id: &str, reservation: Reservation) {
        let pending = self.pending.remove(id);
        let tickets = pending.map(|p| p.tickets).unwrap_or_default();
        let waiting = self.waiting.entry(id.to_owned()).or_default();
        waiting.extend(tickets);
        let answer = self.granted_view(id, &reservation);
        let is_answered = reservation.in_force_by_ns.is_none();
        self.store(id, reservation);
        if is_answered {
            self.answer_waiting(id, &answer);
        }
    }

    /// Answers those who wait until a reservation is in force.
    fn answer_waiting(&mut self, id: &str, answer: &Answer) {
        for ticket in self.waiting.remove(id).unwrap_or_default() {
            self.effects.answers.push((ticket, answer.clone()));
        }
    }
}
