// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a reservation: its lease, its end, and where it is in force.

use super::{MOST_PENDING, Manager};
use crate::answer::{Answer, Caller, Failure, View};
use crate::pending::{Operation, Pending};
use crate::record::{Measured, Reservation, ReservationState, part_name};
use crate::update;

impl Manager {
    /// Ends a reservation everywhere.
    pub(super) fn end(&mut self, id: &str) {
        let Some(reservation) = self.reservations.get(id) else {
            return;
        };
        let attempt = reservation.attempt;
        let hops = self.hops(&reservation.grant.links);
        let ended = Reservation {
            state: ReservationState::Ended,
            expires_ns: self.now_ns.saturating_add(self.limits.tombstone_ns),
            in_force_by_ns: None,
            ..reservation.clone()
        };
        self.store(id, ended);
        let name = part_name(&self.name, id);
        if hops.iter().any(|hop| hop.manager == self.name) {
            self.parts
                .release(self.now_ns, &name, attempt, &mut self.effects.changes);
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
    pub(super) fn granted(&self, id: &str, caller: &Caller) -> Result<&Reservation, Failure> {
        let id = || id.chars().take(64).collect::<String>();
        let found = self
            .reservations
            .get(&id())
            .ok_or_else(|| Failure::Unknown(id()))?;
        if found.owner != caller.name && !caller.is_operator {
            return Err(Failure::Forbidden(id()));
        }
        match found.state {
            ReservationState::Granted => Ok(found),
            // It is negotiated anew: whoever asks again in a moment has an answer.
            ReservationState::Ended if self.is_reserving(&id()) => Err(Failure::Busy),
            ReservationState::Ended => Err(Failure::Ended(id())),
        }
    }

    /// Returns the answer, unless other managers are asked first.
    pub(super) fn refresh(
        &mut self,
        ticket: u64,
        id: &str,
        caller: &Caller,
        lease_ns: Option<u64>,
    ) -> Option<Answer> {
        let reservation = match self.granted(id, caller) {
            Ok(reservation) => reservation,
            Err(failure) => return Some(Answer::Failed(failure)),
        };
        let lease_ns = lease_ns.unwrap_or(reservation.lease_ns);
        let attempt = reservation.attempt;
        let hops = self.hops(&reservation.grant.links);
        if let Err(failure) = self.limits.check_lease(lease_ns) {
            return Some(Answer::Failed(failure));
        }
        if let Some(pending) = self.pending.get_mut(id) {
            if pending.is_refresh(lease_ns) {
                pending.tickets.push(ticket);
                return None;
            }
            return Some(Answer::Failed(Failure::Busy));
        }
        if self.pending.len() >= MOST_PENDING {
            return Some(Answer::Failed(Failure::Busy));
        }
        let others = hops.into_iter().map(|hop| hop.manager);
        let round = self.next_attempt;
        self.next_attempt += 1;
        let pending = Pending {
            operation: Operation::Refresh {
                lease_ns,
                round,
                since_ns: self.now_ns,
            },
            attempt,
            waits_for: others.filter(|of| *of != self.name).collect(),
            tickets: vec![ticket],
            deadline_ns: self.now_ns.saturating_add(self.limits.deadline_ns),
            retry_at_ns: self.now_ns.saturating_add(self.limits.retry_ns),
        };
        self.effects
            .messages
            .extend(pending.messages(id, self.digest, self.limits.hold_ns));
        self.pending.insert(id.to_owned(), pending);
        self.finish_if_refreshed(id);
        None
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
        let Some(reservation) = self.reservations.get(id).cloned() else {
            return;
        };
        let hops = self.hops(&reservation.grant.links);
        let has_own = hops.iter().any(|hop| hop.manager == self.name);
        let name = part_name(&self.name, id);
        let (now_ns, changes) = (self.now_ns, &mut self.effects.changes);
        if has_own
            && !self
                .parts
                .refresh(now_ns, &name, reservation.attempt, lease_ns, changes)
        {
            return self.lose(id, self.name.clone());
        }
        self.unconfirmed.remove(id);
        let expires_ns = reservation
            .expires_ns
            .max(since_ns.saturating_add(lease_ns));
        let reservation = Reservation {
            lease_ns,
            expires_ns,
            ..reservation
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
    pub(super) fn release(&mut self, id: &str, caller: &Caller) -> Answer {
        let released = || Answer::Released(id.to_owned());
        if let Some(owner) = self.pending.get(id).and_then(Pending::reserve_owner) {
            if owner != caller.name && !caller.is_operator {
                return Answer::Failed(Failure::Forbidden(id.to_owned()));
            }
            let ended = Failure::Ended(id.to_owned());
            self.abort(id, Answer::Failed(ended));
            return released();
        }
        match self.granted(id, caller) {
            Ok(_) => {
                self.end(id);
                released()
            }
            // Freed before: the same command twice has the same answer.
            Err(Failure::Ended(_)) => released(),
            Err(failure) => Answer::Failed(failure),
        }
    }

    /// Records whether a node has a reservation in force.
    pub(super) fn report(
        &mut self,
        id: &str,
        caller: &Caller,
        node: String,
        is_in_force: bool,
    ) -> Answer {
        let mut reservation = match self.granted(id, caller) {
            Ok(reservation) => reservation.clone(),
            Err(failure) => return Answer::Failed(failure),
        };
        let is_changed = match update::report(&mut reservation, node, is_in_force) {
            Ok(is_changed) => is_changed,
            Err(failure) => return Answer::Failed(failure),
        };
        let is_whole = reservation.not_in_force().is_empty();
        let answer = Answer::Granted(Box::new(View::new(id, &reservation, self.now_ns)));
        if is_changed {
            self.store(id, reservation);
        }
        if is_whole {
            self.answer_waiting(id, &answer);
        }
        answer
    }

    /// Records what was measured at a listener.
    pub(super) fn measure(
        &mut self,
        id: &str,
        caller: &Caller,
        listener: String,
        measured: Measured,
    ) -> Answer {
        let mut reservation = match self.granted(id, caller) {
            Ok(reservation) => reservation.clone(),
            Err(failure) => return Answer::Failed(failure),
        };
        let is_changed = match update::measure(&mut reservation, listener, measured) {
            Ok(is_changed) => is_changed,
            Err(failure) => return Answer::Failed(failure),
        };
        let answer = Answer::Granted(Box::new(View::new(id, &reservation, self.now_ns)));
        if is_changed {
            self.store(id, reservation);
        }
        answer
    }

    /// Asks those who have not answered once more, or gives up when the deadline has passed.
    pub(super) fn give_up_or_retry(&mut self, id: &str) {
        let Some(pending) = self.pending.get_mut(id) else {
            return;
        };
        if pending.deadline_ns > self.now_ns {
            pending.retry_at_ns = self.now_ns.saturating_add(self.limits.retry_ns);
            let messages = pending.messages(id, self.digest, self.limits.hold_ns);
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
}
