// SPDX-License-Identifier: MIT OR Apache-2.0
//! A manager that knows what is in etcd, for whoever looks at reservations.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::Topology;

use super::gateway::{EtcdError, Snapshot};
use super::leases::now_ns;
use super::records::{LIVE, RESERVATION, read_reservation};
use crate::machine::{Limits, Manager};
use crate::record::{Meta, Part, PartState, ReservationState, part_name};

/// Returns a manager with the reservations that were read, and then those that live; `ends` is until
/// when their leases go on. O(reservations).
///
/// # Errors
/// If a record is not valid.
pub(super) fn manager_of(
    (name, boot): (&str, &str),
    topology: Arc<Topology>,
    limits: Limits,
    snapshot: &Snapshot,
    ends: &BTreeMap<i64, u64>,
) -> Result<Manager, EtcdError> {
    let live = snapshot.found[1].iter().filter_map(|pair| {
        let id = pair.key.strip_prefix(LIVE)?;
        Some((id, pair.lease))
    });
    let live: BTreeMap<&str, i64> = live.collect();
    let now_ns = now_ns()?;
    let meta = Meta {
        name: name.to_owned(),
        epoch: 0,
        boot: boot.to_owned(),
    };
    let mut changes = vec![meta.put()];
    for pair in &snapshot.found[0] {
        let id = pair.key.strip_prefix(RESERVATION).unwrap_or_default();
        let mut reservation = read_reservation(pair)?;
        let ends_ns = live.get(id).and_then(|lease| ends.get(lease));
        if let Some(ends_ns) = ends_ns {
            reservation.expires_ns = *ends_ns;
            let part = Part {
                attempt: 0,
                state: PartState::Committed,
                stream_id: reservation.grant.stream_id.clone(),
                links: reservation.grant.links.clone(),
                lease_ns: reservation.lease_ns,
                expires_ns: *ends_ns,
            };
            changes.push(part.put(&part_name(name, id)));
        } else {
            reservation.state = ReservationState::Ended;
            reservation.expires_ns = now_ns.saturating_add(limits.tombstone_ns);
        }
        changes.push(reservation.put(id));
    }
    let records = changes.into_iter();
    let records = records.filter_map(|change| Some((change.key, change.value?)));
    let clock = (boot, now_ns);
    Manager::restore(name, topology, limits, records, clock)
        .map_err(|error| EtcdError::Refused(error.to_string()))
}
