// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leases of etcd's, and what a manager knows of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use linux_io::clock::boottime_ns;
use units::time::NS_PER_S;

use super::gateway::{EtcdError, Gateway, Keys};
use super::records::TOPOLOGY;

/// From so many on, leases that have ended are forgotten.
const MOST_KNOWN: usize = 10_000;

/// A lease goes on at least until then: others may have begun it anew.
#[derive(Clone, Copy, Debug)]
struct End {
    ends_ns: u64,
    length_ns: u64,
}

/// The leases of a reservation: of its bytes, and of its record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leases {
    pub(super) live: i64,
    pub(super) record: i64,
    pub(super) since_ns: u64,
    pub(super) length_s: u64,
}

/// What is known of leases, by number.
#[derive(Debug, Default)]
pub(super) struct LeaseTable(Mutex<BTreeMap<i64, End>>);

pub(super) fn now_ns() -> Result<u64, EtcdError> {
    boottime_ns().map_err(|error| EtcdError::Refused(format!("the clock cannot be read: {error}")))
}

pub(super) fn seconds(ns: u64) -> u64 {
    ns.div_ceil(NS_PER_S)
}

/// Begins the lease of a reservation, and that of its record, which is so much longer.
pub(super) fn begin(etcd: &Gateway, length_s: u64, memory_s: u64) -> Result<Leases, EtcdError> {
    let since_ns = now_ns()?;
    let (live, length_s) = etcd.grant(length_s)?;
    let (record, _) = etcd.grant(length_s.saturating_add(memory_s))?;
    Ok(Leases {
        live,
        record,
        since_ns,
        length_s,
    })
}

/// Ends leases that nothing needs. Else they end by themselves.
pub(super) fn end(etcd: &Gateway, leases: &[i64]) {
    for lease in leases {
        let _ = etcd.revoke(*lease);
    }
}

impl LeaseTable {
    /// Takes down that a lease began at a time.
    pub(super) fn note(&self, lease: i64, since_ns: u64, length_s: u64) {
        let length_ns = length_s.saturating_mul(NS_PER_S);
        let ends_ns = since_ns.saturating_add(length_ns);
        self.learn(lease, End { ends_ns, length_ns });
    }

    fn learn(&self, lease: i64, of: End) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KNOWN {
            // Whatever has ended is asked for anew, should it have been kept.
            let begin_ns = of.ends_ns.saturating_sub(of.length_ns);
            known.retain(|_, end| end.ends_ns > begin_ns);
        }
        let end = known.entry(lease).or_insert(of);
        // Whatever is known holds, so the later one does.
        end.ends_ns = end.ends_ns.max(of.ends_ns);
    }

    fn get(&self, lease: i64) -> Option<End> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&lease).copied()
    }

    /// Returns until when leases go on at least; one that has ended is absent. A lease is asked for
    /// only when less than half of it is known to be left.
    pub(super) fn ends(
        &self,
        etcd: &Gateway,
        leases: &[i64],
    ) -> Result<BTreeMap<i64, u64>, EtcdError> {
        let mut ends = BTreeMap::new();
        let mut asked = Vec::new();
        for lease in leases {
            let since_ns = now_ns()?;
            match self.get(*lease) {
                Some(of) if of.ends_ns.saturating_sub(since_ns) > of.length_ns / 2 => {
                    ends.insert(*lease, of.ends_ns);
                }
                _ => match etcd.left(*lease) {
                    Ok(left) => asked.push((*lease, since_ns, left)),
                    Err(EtcdError::NoLease) => {}
                    Err(error) => return Err(error),
                },
            }
        }
        if asked.is_empty() {
            return Ok(ends);
        }
        // A leader that has been voted out may not know it: the term tells.
        let term = etcd.read(&[Keys::One(TOPOLOGY.to_owned())])?.term;
        for (lease, since_ns, left) in asked {
            if left.term != term {
                return Err(EtcdError::Away("it has elected a leader".to_owned()));
            }
            let left_ns = left.left_s.saturating_mul(NS_PER_S);
            let of = End {
                ends_ns: since_ns.saturating_add(left_ns),
                length_ns: left.granted_s.saturating_mul(NS_PER_S),
            };
            self.learn(lease, of);
            ends.insert(lease, of.ends_ns);
        }
        Ok(ends)
    }

    /// Forgets all leases but these.
    pub(super) fn keep(&self, leases: &BTreeSet<i64>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|lease, _| leases.contains(lease));
    }
}
