// SPDX-License-Identifier: MIT OR Apache-2.0
//! A request to reserve: held hop by hop, committed, granted, or given up.

use std::collections::{BTreeMap, BTreeSet};

use admission::{Grant, LinkBytes, Plan, Refusal, SegmentId, StreamRequest, plan};

use super::{Answered, Manager};
use crate::answer::{Answer, Caller, Failure};
use crate::bounds::{self, MOST_PENDING};
use crate::misfit::misfit;
use crate::parts::{Hold, Wanted};
use crate::pending::{Hop, Operation, Pending};
use crate::quota::Quota;
use crate::record::{Attempt, Reservation, ReservationState, part_name};

impl Manager {
    pub(super) fn reserve(
        &mut self,
        ticket: u64,
        id: &str,
        caller: &Caller,
        (request, lease_ns): (StreamRequest, u64),
        is_replacing: bool,
    ) -> Answered {
        bounds::id(id)?;
        self.limits.check_lease(lease_ns)?;
        caller.may_send_from(&request.talker.name)?;
        let id_in_use = || Answer::Failed(Failure::IdInUse(id.to_owned()));
        match self.pending.get_mut(id) {
            // The same once more, new or negotiated anew.
            Some(pending) if pending.is_reserve(&caller.name, &request) => {
                pending.tickets.push(ticket);
                return Ok(None);
            }
            Some(pending) if pending.reserve_owner().is_some() => return Err(id_in_use()),
            _ => {}
        }
        if let Some(old) = self.reservations.get(id) {
            let is_theirs = old.owner == caller.name;
            let is_same = is_theirs && old.request == request;
            return match old.state {
                ReservationState::Ended if is_theirs => Err(Failure::Ended(id.to_owned()).into()),
                ReservationState::Granted if is_replacing && is_theirs && !is_same => {
                    self.replace(ticket, id, caller, request, lease_ns)
                }
                ReservationState::Granted if is_same && !self.is_confirmed(old) => {
                    self.refresh(ticket, id, caller, None)
                }
                ReservationState::Granted if is_same && old.in_force_by_ns.is_some() => {
                    self.waiting.entry(id.to_owned()).or_default().push(ticket);
                    Ok(None)
                }
                ReservationState::Granted if is_same => Ok(Some(self.granted_view(id, old))),
                _ => Err(id_in_use()),
            };
        }
        let plan = self.plan(&request)?;
        self.check_quota(id, caller, lease_ns, &plan.grant.links)?;
        if let Some(why) = self.is_full() {
            return Err(Failure::Later(why).into());
        }
        if self.pending.len() + self.waiting.len() >= MOST_PENDING {
            return Err(Failure::Busy.into());
        }
        let attempt = self.new_attempt();
        let change = (caller.name.clone(), request, (lease_ns, lease_ns));
        self.begin(ticket, id, attempt, change, plan.grant);
        Ok(None)
    }

    /// Begins to hold what a plan grants.
    pub(super) fn begin(
        &mut self,
        ticket: u64,
        id: &str,
        attempt: Attempt,
        (owner, request, (lease_ns, renewed_ns)): (String, StreamRequest, (u64, u64)),
        grant: Grant,
    ) {
        let operation = Operation::Reserve {
            owner,
            request,
            hops: self.hops(&grant.links),
            grant,
            lease_ns,
            renewed_ns,
            held: 0,
            committing_since_ns: None,
        };
        let pending = Pending::new(operation, attempt, vec![ticket], self.deadline_ns());
        self.pending.insert(id.to_owned(), pending);
        self.proceed(id);
    }

    /// Checks what a caller would have with another reservation, in the place of that of this id.
    fn check_quota(
        &self,
        id: &str,
        caller: &Caller,
        lease_ns: u64,
        wanted: &[LinkBytes],
    ) -> Result<(), Failure> {
        let Quota { streams, bytes, .. } = caller.quota;
        if streams.is_none() && bytes.is_none() {
            return caller.quota.check_lease(lease_ns);
        }
        let counts = self.counts(caller);
        if counts != self.name {
            return Err(Failure::Elsewhere(counts.to_owned()));
        }
        let own = self.owners.get(caller.name.as_str()).into_iter().flatten();
        let own = own.filter(|of| *of != id);
        let granted = own.filter_map(|of| self.reservations.get(of));
        let granted = granted.map(|of| of.grant.links.as_slice());
        let pending = self.pending.iter().filter(|(of, _)| *of != id);
        let pending = pending.filter_map(|(_, pending)| match &pending.operation {
            Operation::Reserve { owner, grant, .. } if *owner == caller.name => {
                Some(grant.links.as_slice())
            }
            _ => None,
        });
        caller.quota.check(lease_ns, wanted, granted.chain(pending))
    }

    /// Returns the manager that counts what a caller has, the same one for all managers: that of the
    /// first of its hosts, or the first of all.
    fn counts(&self, caller: &Caller) -> &str {
        let hosts = caller.hosts.iter().flatten();
        let nodes = hosts.filter_map(|host| self.topology.node_id(host));
        let mut segments = nodes.flat_map(|node| &self.topology.node(node).segments);
        let manager = |id: &SegmentId| self.topology.segment(*id).spec.manager.as_ref();
        let all = self.peers.keys().chain([&self.name]).min();
        segments.find_map(manager).or(all).unwrap_or(&self.name)
    }

    /// Changes the stream of a reservation.
    fn replace(
        &mut self,
        ticket: u64,
        id: &str,
        caller: &Caller,
        request: StreamRequest,
        lease_ns: u64,
    ) -> Answered {
        let of_stream = self.streams.get(request.stream_id.as_str());
        if of_stream.is_some_and(|of| of != id) {
            let stream_id = request.stream_id;
            return Err(Refusal::StreamIdInUse { stream_id }.into());
        }
        if self.pending.contains_key(id) || self.pending.len() >= MOST_PENDING {
            return Err(Failure::Busy.into());
        }
        let links = plan(&self.topology, &request)?.grant.links;
        self.check_quota(id, caller, lease_ns, &links)?;
        let change = (request.clone(), request, (lease_ns, lease_ns));
        self.negotiate_anew(ticket, id, &caller.name, change)
    }

    /// Checks that the topology that comes next gives what is about to be granted.
    pub(super) fn fits_next(&self, request: &StreamRequest, grant: &Grant) -> Result<(), Refusal> {
        let next = self.parts.next();
        let refusal = next.and_then(|topology| misfit(topology, request, grant));
        refusal.map_or(Ok(()), Err)
    }

    /// Plans a stream whose id no other reservation of this manager has.
    fn plan(&self, request: &StreamRequest) -> Result<Plan, Refusal> {
        let plan = plan(&self.topology, request)?;
        self.fits_next(request, &plan.grant)?;
        let stream_id = &request.stream_id;
        let is_pending = self
            .pending
            .values()
            .any(|p| p.stream_id() == Some(stream_id));
        if is_pending || self.streams.contains_key(stream_id.as_str()) {
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
                    segments: 0,
                }),
            }
        }
        for hop in &mut hops {
            hop.segments = self.digest_of(&hop.links);
        }
        hops
    }

    /// Holds the bytes of one hop after the other, then commits.
    pub(super) fn proceed(&mut self, id: &str) {
        loop {
            let not_yet = self.not_yet();
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
                pending.tries = 0;
                pending.note_asked(self.now_ns, self.limits.retry_ns);
                let messages = pending.messages(id, self.limits.hold_ns);
                self.effects.messages.extend(messages);
                self.finish_if_committed(id);
                return;
            };
            if let Some(why) = not_yet {
                return self.abort(id, Answer::Failed(Failure::Later(why)));
            }
            let name = part_name(&self.name, id);
            let wanted = Wanted {
                attempt,
                stream_id: &request.stream_id,
                frames: &request.talker.data_frame_specification,
                links: &hop.links,
            };
            let (now_ns, hold_ns) = (self.now_ns, self.limits.hold_ns);
            let updates = &mut self.effects.updates;
            match self.parts.hold(now_ns, &name, &wanted, hold_ns, updates) {
                Hold::Held => *held += 1,
                Hold::Refused(refusal) => return self.abort(id, Answer::Refused(refusal)),
                // What an earlier start has left here, this one does not know.
                Hold::Conflict(has) => self.parts.release(now_ns, &name, has, updates),
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
            owner: owner.into(),
            request: request.clone(),
            grant: grant.clone(),
            attempt,
            lease_ns: *renewed_ns,
            // The others' leases began after this.
            expires_ns: since_ns.saturating_add(*lease_ns),
            clock: self.clock.number,
            in_force_by_ns: self
                .limits
                .in_force_ns
                .map(|within_ns| self.now_ns.saturating_add(within_ns)),
            in_force: BTreeSet::new(),
            measured: BTreeMap::new(),
        };
        let has_own = hops.iter().any(|hop| hop.manager == self.name);
        let name = part_name(&self.name, id);
        let updates = &mut self.effects.updates;
        let (now_ns, parts) = (self.now_ns, &mut self.parts);
        if has_own && !parts.commit(now_ns, &name, attempt, *lease_ns, updates) {
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
                .release(now_ns, &name, attempt, &mut self.effects.updates);
        }
        if let Operation::Reserve { hops, held, .. } = pending.operation {
            let asked = hops.into_iter().take(held + 1).map(|hop| hop.manager);
            self.release_at(id, attempt, asked.collect());
        }
    }

    /// Asks other managers to free a try, until they answer or a deadline passes. Then they are told
    /// what this manager has there, and so free it.
    pub(super) fn release_at(&mut self, id: &str, attempt: Attempt, managers: BTreeSet<String>) {
        let others = managers.into_iter().filter(|of| *of != self.name);
        let waits_for: BTreeSet<_> = others.collect();
        if waits_for.is_empty() {
            return;
        }
        if self.releases.len() >= MOST_PENDING {
            return waits_for.iter().for_each(|manager| self.claim_at(manager));
        }
        let deadline_ns = self.deadline_ns();
        let mut pending = Pending::new(Operation::Release, attempt, Vec::new(), deadline_ns);
        pending.waits_for = waits_for;
        pending.note_asked(self.now_ns, self.limits.retry_ns);
        let messages = pending.messages(id, self.limits.hold_ns);
        self.effects.messages.extend(messages);
        self.releases.insert((id.to_owned(), attempt), pending);
    }
}
