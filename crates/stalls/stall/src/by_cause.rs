// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums up the stalls of many connections by cause, and by side.

use serde::Serialize;

use crate::analysis::{Connection, Stall};
use crate::cause::{Cause, Side};
use crate::totals::totals;
use crate::units::seconds;

/// The stalls of one cause on one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CauseTotal {
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

/// The stalls on one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SideTotal {
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
    of_stalls(connections.into_iter().map(|c| c.stalls.as_slice()))
}

/// Returns the totals over the stalls of each connection, the most time lost first.
pub(crate) fn of_stalls<'a>(connections: impl IntoIterator<Item = &'a [Stall]>) -> Vec<CauseTotal> {
    let each = connections.into_iter().map(|stalls| ((), stalls));
    let totals = totals(each, |(), stall| (stall.cause, stall.side));
    totals
        .into_iter()
        .map(|((cause, side), total)| CauseTotal {
            cause,
            side,
            stalls: total.stalls,
            connections: total.connections,
            time_lost_ns: total.time_lost_ns,
        })
        .collect()
}

/// Returns the totals over these connections by side, the most time lost first.
pub fn by_side<'a>(connections: impl IntoIterator<Item = &'a Connection>) -> Vec<SideTotal> {
    let each = connections.into_iter().map(|c| ((), c.stalls.as_slice()));
    let totals = totals(each, |(), stall| stall.side);
    totals
        .into_iter()
        .map(|(side, total)| SideTotal {
            side,
            stalls: total.stalls,
            connections: total.connections,
            time_lost_ns: total.time_lost_ns,
        })
        .collect()
}
