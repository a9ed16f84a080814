// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an operator decides over parts: one that nobody knows of, and all that do not fit the topology
//! that comes next.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::{LinkBytes, Name, Refusal, Topology};

use super::Manager;
use crate::answer::{Answer, Caller, Failure, Misfit};
use crate::misfit::misfit;
use crate::record::{ReservationState, part_name};

impl Manager {
    /// Frees bytes of own links that a coordinator has.
    pub(super) fn free_part(
        &mut self,
        coordinator: &str,
        id: &str,
        caller: &Caller,
    ) -> Result<Answer, Answer> {
        caller.may_operate()?;
        if coordinator == self.name && self.reservations.contains_key(id) {
            return self.release(id, caller);
        }
        let name = part_name(coordinator, id);
        let part = self.parts.all().get(&name);
        let attempt = part.ok_or_else(|| Failure::Unknown(id.to_owned()))?.attempt;
        let (now_ns, updates) = (self.now_ns, &mut self.effects.updates);
        self.parts.release(now_ns, &name, attempt, updates);
        Ok(Answer::Released(id.to_owned()))
    }

    /// Says what does not fit another topology. If it is the next one, all that is ended, and nothing
    /// is granted from now on that does not fit both.
    pub(super) fn fit(
        &mut self,
        topology: &Arc<Topology>,
        is_draining: bool,
        caller: &Caller,
    ) -> Result<Answer, Answer> {
        caller.may_operate()?;
        let misfits = self.misfits(topology);
        let mut found = Vec::new();
        for (name, refusal) in &misfits {
            let (coordinator, id) = name.split_once('/').unwrap_or_default();
            found.push(Misfit {
                coordinator: coordinator.to_owned(),
                id: id.to_owned(),
                why: refusal.to_string(),
            });
        }
        if is_draining {
            for name in misfits.into_keys() {
                self.end_part(&name);
            }
            let (_, ledger) = self.parts.misfits(topology);
            self.parts.keep_to(Arc::clone(topology), ledger);
        }
        Ok(Answer::Misfits(found))
    }

    /// Returns what does not fit another topology, by `COORDINATOR/ID`: parts for which a link has no
    /// room, or that are another manager's there, and own reservations whose routes get less.
    fn misfits(&self, topology: &Topology) -> BTreeMap<Name, Refusal> {
        let mut found: BTreeMap<_, _> = self.parts.misfits(topology).0.into_iter().collect();
        let moved = |of: &LinkBytes| {
            let segment = topology.link(topology.link_id(&of.link)?).segment;
            let manager = topology.segment(segment).spec.manager.clone();
            manager.filter(|manager| *manager != self.name)
        };
        for (name, part) in self.parts.all() {
            if let Some(value) = part.links.iter().find_map(moved) {
                found.entry(name.clone()).or_insert(Refusal::Invalid {
                    field: "manager".to_owned(),
                    value,
                    expected: format!("{}, which has granted it", self.name),
                });
            }
        }
        let all = self.reservations.iter();
        for (id, of) in all.filter(|(_, of)| of.state == ReservationState::Granted) {
            if let Some(refusal) = misfit(topology, &of.request, &of.grant) {
                let name = part_name(&self.name, id);
                found.entry(name).or_insert(refusal);
            }
        }
        found
    }

    /// Ends a reservation of this manager's, or frees what another one has here.
    fn end_part(&mut self, name: &str) {
        let (coordinator, id) = name.split_once('/').unwrap_or_default();
        let of = self.reservations.get(id);
        let is_granted = of.is_some_and(|of| of.state == ReservationState::Granted);
        if coordinator == self.name && is_granted {
            self.end(id);
        } else if let Some(part) = self.parts.all().get(name) {
            let attempt = part.attempt;
            let (now_ns, updates) = (self.now_ns, &mut self.effects.updates);
            self.parts.release(now_ns, name, attempt, updates);
        }
    }
}
