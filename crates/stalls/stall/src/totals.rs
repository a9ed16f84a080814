// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums up the stalls of many connections by a property of theirs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::analysis::Stall;

/// A number of stalls and what they cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Total {
    /// Number of stalls; those that were merged into one count once.
    pub(crate) stalls: u64,
    /// Number of connections with such a stall.
    pub(crate) connections: u64,
    /// Sum of their durations.
    pub(crate) time_lost_ns: u64,
    /// Index of the connection counted last, so that one with several stalls counts once.
    last_connection: Option<usize>,
}

/// Returns the totals by `key` over connections with their stalls, the most time lost first; of
/// equal times the lowest key.
pub(crate) fn totals<'a, C, K: Ord>(
    connections: impl IntoIterator<Item = (C, &'a [Stall])>,
    key: impl Fn(&C, &Stall) -> K,
) -> Vec<(K, Total)> {
    let mut totals: BTreeMap<K, Total> = BTreeMap::new();
    for (index, (connection, stalls)) in connections.into_iter().enumerate() {
        for stall in stalls {
            let total = totals.entry(key(&connection, stall)).or_default();
            total.stalls += 1;
            total.time_lost_ns = total.time_lost_ns.saturating_add(stall.duration_ns);
            if total.last_connection.replace(index) != Some(index) {
                total.connections += 1;
            }
        }
    }
    let mut sorted: Vec<_> = totals.into_iter().collect();
    // The sort is stable.
    sorted.sort_by_key(|(_, total)| Reverse(total.time_lost_ns));
    sorted
}
