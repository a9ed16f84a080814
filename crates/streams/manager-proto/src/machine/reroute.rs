// SPDX-License-Identifier: MIT OR Apache-2.0
//! A reservation that is negotiated anew, because a node sends its frames another way.

use std::sync::Arc;

use admission::{StreamRequest, plan};

use super::{Answered, Manager};
use crate::answer::{Caller, Failure};
use crate::bounds::MOST_PENDING;
use crate::parts::Wanted;
use crate::record::part_name;
use crate::reroute::wanted_route;

impl Manager {
    /// What this manager can refuse by itself leaves the reservation as it is. Else its bytes are freed
    /// and those of the new route held: if another manager refuses them, it has ended.
    pub(super) fn reroute(
        &mut self,
        ticket: u64,
        id: &str,
        caller: &Caller,
        path: (&str, &str),
    ) -> Answered {
        let reservation = Arc::clone(self.granted_at(id, caller, path.0)?);
        let Some(wanted) = wanted_route(&self.topology, &reservation, path)? else {
            return Ok(Some(self.granted_view(id, &reservation)));
        };
        // A change under way, or a grant that nobody knows of yet, comes first.
        let is_busy = self.pending.contains_key(id);
        if is_busy || reservation.in_force_by_ns.is_some() || self.pending.len() >= MOST_PENDING {
            return Err(Failure::Busy.into());
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
        (request, wanted, leases): (StreamRequest, StreamRequest, (u64, u64)),
    ) -> Answered {
        if let Some(why) = self.not_yet() {
            return Err(Failure::Later(why).into());
        }
        let attempt = self.new_attempt();
        let grant = plan(&self.topology, &wanted)?.grant;
        self.fits_next(&request, &grant)?;
        let hops = self.hops(&grant.links);
        let own = hops.iter().find(|hop| hop.manager == self.name);
        let wanted = Wanted {
            attempt,
            stream_id: &request.stream_id,
            frames: &request.talker.data_frame_specification,
            links: own.map(|hop| hop.links.as_slice()).unwrap_or_default(),
        };
        self.parts.fits(&part_name(&self.name, id), &wanted)?;
        // Until it is granted again nobody may rely on it. Those on both routes take the new try for
        // the old one.
        self.end(id);
        self.begin(
            ticket,
            id,
            attempt,
            (owner.to_owned(), request, leases),
            grant,
        );
        Ok(None)
    }
}
