// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an operator decides over parts: one that nobody knows of, and all that do not fit the topology
//! that comes next.

use std::sync::Arc;

use admission::Topology;

use super::Manager;
use crate::answer::{Answer, Caller, Failure, Misfit};
use crate::record::part_name;

impl Manager {
    /// Frees bytes of own links that a coordinator has.
    pub(super) fn free_part(&mut self, coordinator: &str, id: &str, caller: &Caller) -> Answer {
        if let Err(failure) = caller.may_operate() {
            return Answer::Failed(failure);
        }
        if coordinator == self.name && self.reservations.contains_key(id) {
            return self.release(id, caller);
        }
        let name = part_name(coordinator, id);
        let Some(part) = self.parts.all().get(&name) else {
            return Answer::Failed(Failure::Unknown(id.to_owned()));
        };
        let attempt = part.attempt;
        let (now_ns, updates) = (self.now_ns, &mut self.effects.updates);
        self.parts.release(now_ns, &name, attempt, updates);
        Answer::Released(id.to_owned())
    }

    /// Says what does not fit another topology. If it is the next one, all that is ended, and nothing
    /// is granted from now on that does not fit both.
    pub(super) fn fit(
        &mut self,
        topology: &Arc<Topology>,
        is_draining: bool,
        caller: &Caller,
    ) -> Answer {
        if let Err(failure) = caller.may_operate() {
            return Answer::Failed(failure);
        }
        let (misfits, ledger) = self.parts.misfits(topology);
        let mut found = Vec::new();
        for (name, refusal) in misfits {
            let (coordinator, id) = name.split_once('/').unwrap_or_default();
            found.push(Misfit {
                coordinator: coordinator.to_owned(),
                id: id.to_owned(),
                why: refusal.to_string(),
            });
            if is_draining && coordinator == self.name && self.reservations.contains_key(id) {
                self.end(id);
            } else if let Some(part) = self.parts.all().get(&name).filter(|_| is_draining) {
                let attempt = part.attempt;
                let (now_ns, updates) = (self.now_ns, &mut self.effects.updates);
                self.parts.release(now_ns, &name, attempt, updates);
            }
        }
        if is_draining {
            self.parts.keep_to(Arc::clone(topology), ledger);
        }
        Answer::Misfits(found)
    }
}
