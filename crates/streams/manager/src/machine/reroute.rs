// SPDX-License-Identifier: MIT OR Apache-2.0
//! A reservation that is negotiated anew, because a node sends its frames another way.

use std::collections::BTreeSet;

use admission::plan;

use super::{MOST_PENDING, Manager};
use crate::answer::{Answer, Caller, Failure, View};
use crate::pending::{Operation, Pending};
use crate::record::part_name;
use crate::reroute::wanted_route;

impl Manager {
    /// Returns the answer, unless other managers are asked first. What this manager can refuse by
    /// itself leaves the reservation as it is. Else its bytes are freed and those of the new route held:
    /// if another manager refuses them, it has ended.
    pub(super) fn reroute(
        &mut self,
        ticket: u64,
        id: &str,
        caller: &Caller,
        path: (&str, &str),
    ) -> Option<Answer> {
        let reservation = match self.granted(id, caller) {
            Ok(reservation) => reservation.clone(),
            Err(failure) => return Some(Answer::Failed(failure)),
        };
        let wanted = match wanted_route(&self.topology, &reservation, path) {
            Ok(Some(wanted)) => wanted,
            Ok(None) => {
                let view = View::new(id, &reservation, self.now_ns);
                return Some(Answer::Granted(Box::new(view)));
            }
            Err(answer) => return Some(*answer),
        };
        // A change under way, or a grant that nobody knows of yet, comes first.
        let is_busy = self
            .pending
            .get(id)
            .is_some_and(|pending| !matches!(pending.operation, Operation::Release));
        if is_busy || reservation.in_force_by_ns.is_some() || self.pending.len() >= MOST_PENDING {
            return Some(Answer::Failed(Failure::Busy));
        }
        let name = part_name(&self.name, id);
        let ledger = self.parts.ledger();
        let found = plan(&self.topology, &wanted).and_then(|plan| {
            let mut own = plan.uses.clone();
            own.retain(|of| self.parts.is_own(of.link));
            ledger.fits(&self.topology, &name, &own).map(|()| plan)
        });
        let plan = match found {
            Ok(plan) => plan,
            Err(refusal) => return Some(Answer::Refused(refusal)),
        };
        // Until it is granted again nobody may rely on it. Those on the old route who do not hear of
        // its end have their leases; those on both take the new try for the old one.
        self.end(id);
        self.pending.remove(id);
        let attempt = self.next_attempt;
        self.next_attempt += 1;
        let pending = Pending {
            operation: Operation::Reserve {
                owner: reservation.owner,
                // As the talker asked, who may ask again.
                request: reservation.request,
                hops: self.hops(&plan.grant.links),
                grant: plan.grant,
                // A route that changes makes no lease longer: the talker may be gone.
                lease_ns: reservation.expires_ns.saturating_sub(self.now_ns),
                renewed_ns: reservation.lease_ns,
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
}
