// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a reservation: its lease, its end, and where it is in force.

use std::sync::Arc;

use super::{Answered, Manager};
use crate::answer::{Answer, Caller, Failure};
use crate::bounds::{MOST_PENDING, short};
use crate::pending::{Operation, Pending};
use crate::record::{Attempt, Measured, Reservation, ReservationState, part_name};
use crate::update;

impl Manager {
    /// Ends a reservation everywhere.
    pub(super) fn end(&mut self, id: &str) {
        let Some(reservation) = self.reservations.get(id) else {
            return;
        };
        let attempt = reservation.attempt;
        let hops = self.hops(&reservation.grant.links);
        let ended = reservation.ended(self.now_ns.saturating_add(self.limits.tombstone_ns));
        let owner = ended.owner.clone();
        self.store(id, ended);
        while let Some(oldest) = self.ended.too_many(&owner) {
            self.forget(&oldest);
        }
        let name = part_name(&self.name, id);
        if hops.iter().any(|hop| hop.manager == self.name) {
            self.parts
                .release(self.now_ns, &name, attempt, &mut self.effects.updates);
        }
        if let Some(pending) = self.pending.remove(id) {
            self.waiting
                .entry(id.to_owned())
                .or_default()
                .extend(pending.tickets);
        }
        let ended = Answer::Failed(Failure::Ended(id.to_owned()));
        self.answer_waiting(id, &ended);
        let managers = hops.into_iter().map(|hop| hop.manager).collect();
        self.release_at(id, attempt, managers);
    }

    fn is_reserving(&self, id: &str) -> bool {
        let pending = self.pending.get(id);
        pending.is_some_and(|pending| pending.reserve_owner().is_some())
    }

    /// Returns a reservation that is in use and that the caller may change.
    pub(super) fn granted(&self, id: &str, caller: &Caller) -> Result<&Arc<Reservation>, Failure> {
        self.in_use(id, |of| {
            let is_theirs = of.owner == caller.name || caller.is_operator;
            is_theirs
                .then_some(())
                .ok_or_else(|| Failure::Forbidden(short(id)))
        })
    }

    /// Returns a reservation that is in use and that a node may speak of.
    pub(super) fn granted_at(
        &self,
        id: &str,
        caller: &Caller,
        node: &str,
    ) -> Result<&Arc<Reservation>, Failure> {
        self.in_use(id, |_| caller.may_report(node))
    }

    fn in_use(
        &self,
        id: &str,
        may: impl FnOnce(&Reservation) -> Result<(), Failure>,
    ) -> Result<&Arc<Reservation>, Failure> {
        let found = self.reservations.get(id);
        let found = found.ok_or_else(|| Failure::Unknown(short(id)))?;
        may(found)?;
        match found.state {
            ReservationState::Granted => Ok(found),
            // It is negotiated anew: whoever asks again in a moment has an answer.
            ReservationState::Ended if self.is_reserving(id) => Err(Failure::Busy),
            ReservationState::Ended => Err(Failure::Ended(short(id))),
        }
    }

    pub(super) fn refresh(
        &mut self,
        ticket: u64,
        id: &str,
        caller: &Caller,
        lease_ns: Option<u64>,
    ) -> Answered {
        let reservation = self.granted(id, caller)?;
        let lease_ns = lease_ns.unwrap_or(reservation.lease_ns);
        let attempt = reservation.attempt;
        let hops = self.hops(&reservation.grant.links);
        self.limits.check_lease(lease_ns)?;
        caller.quota.check_lease(lease_ns)?;
        let is_busy = self.pending.len() >= MOST_PENDING;
        match self.pending.get_mut(id) {
            Some(pending) if pending.is_refresh(lease_ns) => {
                pending.tickets.push(ticket);
                return Ok(None);
            }
            None if !is_busy => {}
            _ => return Err(Failure::Busy.into()),
        }
        let others = hops.into_iter().map(|hop| hop.manager);
        let operation = Operation::Refresh {
            lease_ns,
            round: self.next_count,
            since_ns: self.now_ns,
        };
        self.next_count += 1;
        let mut pending = Pending::new(operation, attempt, vec![ticket], self.deadline_ns());
        pending.waits_for = others.filter(|of| *of != self.name).collect();
        pending.note_asked(self.now_ns, self.limits.retry_ns);
        let messages = pending.messages(id, self.limits.hold_ns);
        self.effects.messages.extend(messages);
        self.pending.insert(id.to_owned(), pending);
        self.finish_if_refreshed(id);
        Ok(None)
    }

    /// Begins the lease anew once every other manager has.
    pub(super) fn finish_if_refreshed(&mut self, id: &str) {
        let Some(pending) = self.pending.get(id) else {
            return;
        };
        let Operation::Refresh {
            lease_ns, since_ns, ..
        } = pending.operation
        else {
            return;
        };
        if !pending.waits_for.is_empty() {
            return;
        }
        let Some(reservation) = self.reservations.get(id).map(Arc::clone) else {
            return;
        };
        let hops = self.hops(&reservation.grant.links);
        let has_own = hops.iter().any(|hop| hop.manager == self.name);
        let name = part_name(&self.name, id);
        let lease = (lease_ns, self.now_ns.saturating_add(lease_ns));
        let updates = &mut self.effects.updates;
        if has_own
            && !self
                .parts
                .refresh(&name, reservation.attempt, lease, updates)
        {
            return self.lose(id, self.name.clone());
        }
        let expires_ns = reservation
            .expires_ns
            .max(since_ns.saturating_add(lease_ns));
        let reservation = Reservation {
            lease_ns,
            expires_ns,
            ..Reservation::clone(&reservation)
        };
        self.grant(id, reservation);
    }

    /// Ends a reservation that another manager no longer has.
    pub(super) fn lose(&mut self, id: &str, manager: String) {
        if let Some(pending) = self.pending.remove(id) {
            for ticket in pending.tickets {
                let answer = Answer::Failed(Failure::Lost(manager.clone()));
                self.effects.answers.push((ticket, answer));
            }
        }
        self.end(id);
    }

    /// Frees a reservation, or gives up a request for one.
    pub(super) fn release(&mut self, id: &str, caller: &Caller) -> Result<Answer, Answer> {
        let released = Answer::Released(id.to_owned());
        if let Some(owner) = self.pending.get(id).and_then(Pending::reserve_owner) {
            if owner != caller.name && !caller.is_operator {
                return Err(Failure::Forbidden(id.to_owned()).into());
            }
            self.abort(id, Failure::Ended(id.to_owned()).into());
            return Ok(released);
        }
        match self.granted(id, caller) {
            Ok(_) => self.end(id),
            // Freed before: the same command twice has the same answer.
            Err(Failure::Ended(_)) => {}
            Err(failure) => return Err(failure.into()),
        }
        Ok(released)
    }

    /// Records whether a node has a reservation in force.
    pub(super) fn report(
        &mut self,
        id: &str,
        caller: &Caller,
        node: String,
        is_in_force: bool,
    ) -> Result<Answer, Answer> {
        let mut reservation = Reservation::clone(self.granted_at(id, caller, &node)?);
        let is_changed = update::report(&mut reservation, node, is_in_force)?;
        let is_whole = reservation.not_in_force().is_empty();
        let answer = self.granted_view(id, &reservation);
        if is_changed {
            self.store(id, reservation);
        }
        if is_whole {
            self.answer_waiting(id, &answer);
        }
        Ok(answer)
    }

    /// Records what was measured at a listener.
    pub(super) fn measure(
        &mut self,
        id: &str,
        caller: &Caller,
        listener: String,
        measured: Measured,
    ) -> Result<Answer, Answer> {
        let mut reservation = Reservation::clone(self.granted(id, caller)?);
        let is_changed = update::measure(&mut reservation, listener, measured)?;
        let answer = self.granted_view(id, &reservation);
        if is_changed {
            self.store(id, reservation);
        }
        Ok(answer)
    }

    /// Asks those who have not answered once more, or gives up when the deadline has passed.
    pub(super) fn give_up_or_retry(&mut self, id: &str) {
        let Some(pending) = self.pending.get_mut(id) else {
            return;
        };
        if pending.deadline_ns > self.now_ns {
            pending.note_asked(self.now_ns, self.limits.retry_ns);
            let messages = pending.messages(id, self.limits.hold_ns);
            self.effects.messages.extend(messages);
            return;
        }
        let silent = pending.waits_for.first().cloned().unwrap_or_default();
        let answer = Answer::Failed(Failure::NoAnswer(silent));
        match pending.operation {
            Operation::Reserve { .. } => self.abort(id, answer),
            // The lease runs on as it was.
            Operation::Refresh { .. } | Operation::Release => {
                let pending = self.pending.remove(id);
                for ticket in pending.map(|p| p.tickets).unwrap_or_default() {
                    self.effects.answers.push((ticket, answer.clone()));
                }
            }
        }
    }

    /// Asks those who have not freed a try once more. After the deadline they are told what this
    /// manager has there, as soon as they answer.
    pub(super) fn release_once_more(&mut self, of: (String, Attempt)) {
        let Some(pending) = self.releases.get_mut(&of) else {
            return;
        };
        if pending.deadline_ns > self.now_ns {
            pending.note_asked(self.now_ns, self.limits.retry_ns);
            let messages = pending.messages(&of.0, self.limits.hold_ns);
            self.effects.messages.extend(messages);
            return;
        }
        let pending = self.releases.remove(&of);
        for manager in pending.map(|p| p.waits_for).unwrap_or_default() {
            self.claim_at(&manager);
        }
    }
}
