// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is kept in etcd of reservations. Pure.
//!
//! | key, behind `pspacer/` | value | goes with |
//! |---|---|---|
//! | `topology` | digest of the topology that all managers decide over | - |
//! | `use/LINK:ID` | wire bytes of each period | the lease |
//! | `live/ID` | none: the reservation is in use | the lease |
//! | `stream/NAME` | id of the reservation | the lease |
//! | `reservation/ID` | [`Reservation`] | a while after the lease |

use std::collections::BTreeMap;

use admission::Grant;

use super::gateway::{EtcdError, Pair, Snapshot, Write};
use crate::record::Reservation;

pub(super) const TOPOLOGY: &str = "pspacer/topology";
pub(super) const USE: &str = "pspacer/use/";
pub(super) const LIVE: &str = "pspacer/live/";
pub(super) const STREAM: &str = "pspacer/stream/";
pub(super) const RESERVATION: &str = "pspacer/reservation/";

/// A reservation as it is stored.
pub(super) struct StoredReservation {
    pub(super) reservation: Reservation,
    /// Revision of its record's last change.
    pub(super) revision: i64,
    pub(super) record_lease: i64,
    /// Its lease; `None`: it has ended.
    pub(super) lease: Option<i64>,
}

pub(super) fn use_prefix(link: &str) -> String {
    format!("{USE}{link}:")
}

pub(super) fn value(id: &str, reservation: &Reservation) -> Vec<u8> {
    reservation.put(id).value.unwrap_or_default()
}

pub(super) fn bad(pair: &Pair) -> EtcdError {
    EtcdError::Refused(format!(
        "the value of {} is not valid, expected what pspacer manager wrote",
        pair.key
    ))
}

pub(super) fn read_reservation(pair: &Pair) -> Result<Reservation, EtcdError> {
    serde_json::from_slice(&pair.value).map_err(|_| bad(pair))
}

/// Reads a record and whether it is in use: the first two that were asked for.
pub(super) fn found_in(snapshot: &Snapshot) -> Result<Option<StoredReservation>, EtcdError> {
    let one = |n: usize| snapshot.found.get(n).and_then(|pairs| pairs.first());
    let Some(pair) = one(0) else {
        return Ok(None);
    };
    Ok(Some(StoredReservation {
        reservation: read_reservation(pair)?,
        revision: pair.revision,
        record_lease: pair.lease,
        lease: one(1).map(|live| live.lease),
    }))
}

/// Returns the keys of a reservation's bytes.
pub(super) fn use_keys(id: &str, grant: &Grant) -> BTreeMap<String, u64> {
    let links = grant.links.iter();
    links
        .map(|of| (format!("{}{id}", use_prefix(&of.link)), of.bytes))
        .collect()
}

/// Returns all that is stored of a reservation.
pub(super) fn writes(
    id: &str,
    reservation: &Reservation,
    (record, live): (i64, i64),
) -> Vec<Write> {
    let put = |key: String, value: Vec<u8>, lease: i64| Write::Put { key, value, lease };
    let stream = format!("{STREAM}{}", reservation.grant.stream_id);
    let mut all = vec![
        put(format!("{RESERVATION}{id}"), value(id, reservation), record),
        put(format!("{LIVE}{id}"), Vec::new(), live),
        put(stream, id.as_bytes().to_vec(), live),
    ];
    let uses = use_keys(id, &reservation.grant).into_iter();
    all.extend(uses.map(|(key, bytes)| put(key, bytes.to_string().into_bytes(), live)));
    all
}
