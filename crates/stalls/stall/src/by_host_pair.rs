// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums up the stalls of many connections by the two hosts that they are between.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

use crate::analysis::Connection;
use crate::by_cause::{CauseTotal, SideTotal, by_cause, by_side};
use crate::totals::totals;
use crate::units::seconds;

/// The stalls between two hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostPairTotal {
    /// The host whose connections they are.
    pub client: IpAddr,
    /// The other host.
    pub server: IpAddr,
    /// Number of stalls; those that were merged into one count once.
    pub stalls: u64,
    /// Number of connections with a stall.
    pub connections: u64,
    /// Sum of the stalls' durations.
    #[serde(rename = "time_lost_s", serialize_with = "seconds")]
    pub time_lost_ns: u64,
    /// The same by side, the most time lost first.
    pub by_side: Vec<SideTotal>,
    /// The same by cause, the most time lost first.
    pub by_cause: Vec<CauseTotal>,
}

/// Returns the totals over these connections, the most time lost first. Pairs without a stall
/// are left out.
pub fn by_host_pair<'a>(
    connections: impl IntoIterator<Item = &'a Connection> + Clone,
) -> Vec<HostPairTotal> {
    let pair = |c: &Connection| (c.client.address, c.server.address);
    let mut of: BTreeMap<_, Vec<&Connection>> = BTreeMap::new();
    for connection in connections.clone() {
        of.entry(pair(connection)).or_default().push(connection);
    }
    let each = connections.into_iter().map(|c| (c, c.stalls.as_slice()));
    let totals = totals(each, |connection, _| pair(connection));
    totals
        .into_iter()
        .map(|((client, server), total)| {
            let own = of.remove(&(client, server)).unwrap_or_default();
            HostPairTotal {
                client,
                server,
                stalls: total.stalls,
                connections: total.connections,
                time_lost_ns: total.time_lost_ns,
                by_side: by_side(own.iter().copied()),
                by_cause: by_cause(own.iter().copied()),
            }
        })
        .collect()
}
