// SPDX-License-Identifier: MIT OR Apache-2.0
//! A reservation that is negotiated anew, because a node sends its frames another way.

use std::collections::BTreeSet;
use std::sync::Arc;

use admission::{StreamRequest, plan};

use super::Manager;
use crate::answer::{Answer, Caller, Failure, View};
use crate::bounds::MOST_PENDING;
use crate::parts::Wanted;
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
        let reservation = match self.granted_at(id, caller, path.0) {
            Ok(reservation) => Arc::clone(reservation),
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
        let is_busy = self.pending.contains_key(id);
        if is_busy || reservation.in_force_by_ns.is_some() || self.pending.len() >= MOST_PENDING {
            return Some(Answer::Failed(Failure::Busy));
        }
        let renewed_ns = reservation.lease_ns;
        // A route that changes makes no lease longer: the talker may be gone.
        let lease_ns = reservation.expires_ns.saturating_sub(self.now_ns);
        // As the talker asked, who may ask again.
        let request = reservation.request.clone();
        let change = (request, wanted, (lease_ns, renewed_ns));
        self.negotiate_anew(ticket, id, &reservation.owner, change)
    }

    /// Ends a reservation, and reserves for a request in its place by a route that is wanted. What this
    /// manager can refuse by itself leaves it as it is.
    pub(super) fn negotiate_anew(
        &mut self,
        ticket: u64,
        id: &str,
        owner: &str,
        (request, wanted, (lease_ns, renewed_ns)): (StreamRequest, StreamRequest, (u64, u64)),
    ) -> Option<Answer> {
        if let Some(why) = self.not_yet() {
            return Some(Answer::Failed(Failure::Later(why)));
        }
        let attempt = self.new_attempt();
        let plan = match plan(&self.topology, &wanted) {
            Ok(plan) => plan,
            Err(refusal) => return Some(Answer::Refused(refusal)),
        };
        if let Err(refusal) = self.fits_next(&request, &plan.grant) {
            return Some(Answer::Refused(refusal));
        }
        let hops = self.hops(&plan.grant.links);
        let own = hops.iter().find(|hop| hop.manager == self.name);
        let fits = self.parts.fits(
            &part_name(&self.name, id),
            &Wanted {
                attempt,
                stream_id: &request.stream_id,
                frames: &request.talker.data_frame_specification,
                links: own.map(|hop| hop.links.as_slice()).unwrap_or_default(),
            },
        );
        if let Err(refusal) = fits {
            return Some(Answer::Refused(refusal));
        }
        // Until it is granted again nobody may rely on it. Those on both routes take the new try for
        // the old one.
        self.end(id);
        let pending = Pending {
            operation: Operation::Reserve {
                owner: owner.to_owned(),
                request,
                hops,
                grant: plan.grant,
                lease_ns,
                renewed_ns,
                held: 0,
                committing_since_ns: None,
            },
            attempt,
            waits_for: BTreeSet::new(),
            tickets: vec![ticket],
            deadline_ns: self.now_ns.saturating_add(self.limits.deadline_ns),
            retry_at_ns: self.now_ns,
            tries: 0,
        };
        self.pending.insert(id.to_owned(), pending);
        self.proceed(id);
        None
    }
}
