// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums up the stalls of many connections by cause.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::analysis::Connection;
use crate::cause::{Cause, Side};
use crate::units::seconds;

/// The stalls of one cause on one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CauseTotal {
    /// The cause.
    pub cause: Cause,
    /// The side that they are on. Evidence may put one cause on several sides; each has its own
    /// total.
    pub side: Side,
    /// Number of stalls; those that were merged into one count once.
    pub stalls: u64,
    /// Number of connections with such a stall.
    pub connections: u64,
    /// Sum of their durations.
    #[serde(rename = "time_lost_s", serialize_with = "seconds")]
    pub time_lost_ns: u64,
}

/// Returns the totals over these connections, the most time lost first.
pub fn by_cause<'a>(connections: impl IntoIterator<Item = &'a Connection>) -> Vec<CauseTotal> {
    let mut totals: BTreeMap<(Cause, Side), Total> = BTreeMap::new();
    for (index, connection) in connections.into_iter().enumerate() {
        for stall in &connection.stalls {
            let total = totals.entry((stall.cause, stall.side)).or_default();
            total.stalls += 1;
            total.time_lost_ns = total.time_lost_ns.saturating_add(stall.duration_ns);
            if total.last_connection.replace(index) != Some(index) {
                total.connections += 1;
            }
        }
    }
    let mut sorted: Vec<_> = totals
        .into_iter()
        .map(|((cause, side), total)| CauseTotal {
            cause,
            side,
            stalls: total.stalls,
            connections: total.connections,
            time_lost_ns: total.time_lost_ns,
        })
        .collect();
    // The sort is stable: of equal times the first of the enumeration stays first.
    sorted.sort_by_key(|total| Reverse(total.time_lost_ns));
    sorted
}

/// The total of one cause on one side while connections are added.
#[derive(Default)]
struct Total {
    stalls: u64,
    connections: u64,
    time_lost_ns: u64,
    /// Index of the connection counted last, so that one with several stalls counts once.
    last_connection: Option<usize>,
}
