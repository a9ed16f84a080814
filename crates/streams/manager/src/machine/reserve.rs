// SPDX-License-Identifier: MIT OR Apache-2.0
//! A request to reserve: held hop by hop, committed, granted, or given up.

use std::collections::{BTreeMap, BTreeSet};

use admission::{LinkBytes, Plan, Refusal, StreamRequest, is_name, plan};

use super::{MOST_PENDING, Manager};
use crate::answer::{Answer, Caller, Failure, View};
use crate::parts::Hold;
use crate::pending::{Hop, Operation, Pending};
use crate::record::{Reservation, ReservationState, part_name};

impl Manager {
    /// Returns the answer, unless other managers are asked first.
    pub(super) fn reserve(
        &mut self,
        ticket: u64,
        id: &str,
        caller: Caller,
        request: StreamRequest,
        lease_ns: u64,
    ) -> Option<Answer> {
        let failed = |failure| Some(Answer::Failed(failure));
        if !is_name(id) {
            let id = id.chars().take(64).collect();
            return failed(Failure::Id(id));
        }
        if let Err(failure) = self.limits.check_lease(lease_ns) {
            return failed(failure);
        }
        if let Some(old) = self.reservations.get(id) {
            let is_same = old.owner == caller.name && old.request == request;
            return match old.state {
                _ if !is_same => failed(Failure::IdInUse(id.to_owned())),
                ReservationState::Granted if self.unconfirmed.contains(id) => {
                    self.refresh(ticket, id, &caller, None)
                }
                ReservationState::Granted if old.in_force_by_ns.is_some() => {
                    self.waiting.entry(id.to_owned()).or_default().push(ticket);
                    None
                }
                ReservationState::Granted => {
                    Some(Answer::Granted(Box::new(View::new(id, old, self.now_ns))))
                }
                ReservationState::Ended => match self.pending.get_mut(id) {
                    // It is negotiated anew.
                    Some(pending) if pending.is_reserve(&caller.name, &request) => {
                        pending.tickets.push(ticket);
                        None
                    }
                    _ => failed(Failure::Ended(id.to_owned())),
                },
            };
        }
        match self.pending.get_mut(id) {
            Some(pending) if pending.is_reserve(&caller.name, &request) => {
                pending.tickets.push(ticket);
                return None;
            }
            Some(pending) if !matches!(pending.operation, Operation::Release) => {
                return failed(Failure::IdInUse(id.to_owned()));
            }
            // An aborted try is still being released; the new one has a higher number.
            Some(_) => drop(self.pending.remove(id)),
            None => {}
        }
        let plan = match self.plan(&request) {
            Ok(plan) => plan,
            Err(refusal) => return Some(Answer::Refused(refusal)),
        };
        if self.pending.len() + self.waiting.len() >= MOST_PENDING {
            return failed(Failure::Busy);
        }
        let attempt = self.next_attempt;
        self.next_attempt += 1;
        let pending = Pending {
            operation: Operation::Reserve {
                owner: caller.name,
                request,
                hops: self.hops(&plan.grant.links),
                grant: plan.grant,
                lease_ns,
                renewed_ns: lease_ns,
                held: 0,
                committing_since_ns: None,
            },
            attempt,
            waits_for: BTreeSet::new(),
            tickets: vec![ticket],
            deadline_ns: self.now_ns.saturating_add(self.limits.deadline_ns),
            retry_at_ns: self.now_ns,
        };
        self.pending.insert(id.to_owned(), pending);
        self.proceed(id);
        None
    }

    /// Plans a stream whose id no other reservation of this manager has.
    fn plan(&self, request: &StreamRequest) -> Result<Plan, Refusal> {
        let plan = plan(&self.topology, request)?;
        let stream_id = &request.stream_id;
        let is_pending = self
            .pending
            .values()
            .any(|p| p.stream_id() == Some(stream_id));
        if is_pending || self.streams.contains_key(stream_id) {
            return Err(Refusal::StreamIdInUse {
                stream_id: stream_id.clone(),
            });
        }
        Ok(plan)
    }

    /// Returns the managers of links, in their order, each once with all its links.
    pub(super) fn hops(&self, links: &[LinkBytes]) -> Vec<Hop> {
        let mut hops: Vec<Hop> = Vec::new();
        for link in links {
            let id = self.topology.link_id(&link.link);
            let segment = id.map(|id| self.topology.link(id).segment);
            let manager = segment.and_then(|s| self.topology.segment(s).spec.manager.as_ref());
            let manager = manager.unwrap_or(&self.name);
            match hops.iter_mut().find(|hop| hop.manager == *manager) {
                Some(hop) => hop.links.push(link.clone()),
                None => hops.push(Hop {
                    manager: manager.clone(),
                    links: vec![link.clone()],
                }),
            }
        }
        hops
    }

    /// Holds the bytes of one hop after the other, then commits.
    pub(super) fn proceed(&mut self, id: &str) {
        loop {
            let Some(pending) = self.pending.get_mut(id) else {
                return;
            };
            let attempt = pending.attempt;
            let Operation::Reserve {
                request,
                hops,
                held,
                committing_since_ns,
                ..
            } = &mut pending.operation
            else {
                return;
            };
            let hop = hops.get(*held).filter(|hop| hop.manager == self.name);
            let Some(hop) = hop else {
                // Another manager's hop, or all hold: then all others are asked to commit.
                pending.waits_for = match hops.get(*held) {
                    Some(hop) => BTreeSet::from([hop.manager.clone()]),
                    None => {
                        *committing_since_ns = Some(self.now_ns);
                        let others = hops.iter().map(|hop| hop.manager.clone());
                        others.filter(|of| *of != self.name).collect()
                    }
                };
                pending.retry_at_ns = self.now_ns.saturating_add(self.limits.retry_ns);
                let messages = pending.messages(id, self.digest, self.limits.hold_ns);
                self.effects.messages.extend(messages);
                self.finish_if_committed(id);
                return;
            };
            let found = self.parts.hold(
                self.now_ns,
                &part_name(&self.name, id),
                (attempt, &request.stream_id),
                hop.links.clone(),
                self.limits.hold_ns,
                &mut self.effects.changes,
            );
            match found {
                Hold::Held => *held += 1,
                Hold::Refused(refusal) => return self.abort(id, Answer::Refused(refusal)),
                Hold::Stale => {
                    return self.abort(id, Answer::Failed(Failure::Ended(id.to_owned())));
                }
            }
        }
    }

    /// Grants once every other manager has committed.
    pub(super) fn finish_if_committed(&mut self, id: &str) {
        let Some(pending) = self.pending.get(id) else {
            return;
        };
        let attempt = pending.attempt;
        let Operation::Reserve {
            owner,
            request,
            grant,
            hops,
            lease_ns,
            renewed_ns,
            committing_since_ns: Some(since_ns),
            ..
        } = &pending.operation
        else {
            return;
        };
        if !pending.waits_for.is_empty() {
            return;
        }
        let reservation = Reservation {
            state: ReservationState::Granted,
            owner: owner.clone(),
            request: request.clone(),
            grant: grant.clone(),
            attempt,
            lease_ns: *renewed_ns,
            // The others' leases began after this.
            expires_ns: since_ns.saturating_add(*lease_ns),
            in_force_by_ns: self
                .limits
                .in_force_ns
                .map(|within_ns| self.now_ns.saturating_add(within_ns)),
            in_force: BTreeSet::new(),
            measured: BTreeMap::new(),
        };
        let has_own = hops.iter().any(|hop| hop.manager == self.name);
        let name = part_name(&self.name, id);
        let changes = &mut self.effects.changes;
        if has_own
            && !self
                .parts
                .commit(self.now_ns, &name, attempt, *lease_ns, changes)
        {
            let lost = Failure::Lost(self.name.clone());
            return self.abort(id, Answer::Failed(lost));
        }
        self.grant(id, reservation);
    }

    /// Gives up a try: answers, and frees what was or may have been held.
    pub(super) fn abort(&mut self, id: &str, answer: Answer) {
        let Some(pending) = self.pending.remove(id) else {
            return;
        };
        for ticket in &pending.tickets {
            self.effects.answers.push((*ticket, answer.clone()));
        }
        let (now_ns, attempt) = (self.now_ns, pending.attempt);
        let name = part_name(&self.name, id);
        let has_own = self
            .parts
            .all()
            .get(&name)
            .is_some_and(|p| p.attempt == attempt);
        if has_own {
            self.parts
                .release(now_ns, &name, attempt, &mut self.effects.changes);
        }
        if let Operation::Reserve { hops, held, .. } = pending.operation {
            let asked = hops.into_iter().take(held + 1).map(|hop| hop.manager);
            self.release_at(id, attempt, asked.collect());
        }
    }

    /// Asks other managers to free a try, until they answer or a deadline passes: their leases end
    /// in any case.
    pub(super) fn release_at(&mut self, id: &str, attempt: u64, managers: BTreeSet<String>) {
        let others = managers.into_iter().filter(|of| *of != self.name);
        let waits_for: BTreeSet<_> = others.collect();
        if waits_for.is_empty() || self.pending.len() >= MOST_PENDING {
            return;
        }
        let pending = Pending {
            operation: Operation::Release,
            attempt,
            waits_for,
            tickets: Vec::new(),
            deadline_ns: self.now_ns.saturating_add(self.limits.deadline_ns),
            retry_at_ns: self.now_ns.saturating_add(self.limits.retry_ns),
        };
        self.effects
            .messages
            .extend(pending.messages(id, self.digest, self.limits.hold_ns));
        self.pending.insert(id.to_owned(), pending);
    }
}
