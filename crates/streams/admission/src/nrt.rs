// SPDX-License-Identifier: MIT OR Apache-2.0
//! What best effort (NRT) may send beside the streams.

use serde::Serialize;

use crate::ledger::Ledger;
use crate::topology::{Direction, LinkId, NodeId, SegmentId, Topology};

/// Best effort's share of a node on a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NrtShare {
    /// Wire bytes that the node may send in each period.
    pub bytes: u64,
    /// The same as a rate, bit/s, rounded down.
    pub rate_bps: u64,
    #[serde(skip)]
    pub segment: SegmentId,
    #[serde(skip)]
    pub node: NodeId,
}

/// Returns each member's share of a segment: what reservations leave of the period, in equal
/// parts on a shared medium (paper 004, 4.3), and the whole of its own link to a switch. O(members).
pub fn nrt_shares(topology: &Topology, ledger: &Ledger, segment: SegmentId) -> Vec<NrtShare> {
    let of = topology.segment(segment);
    let members = of.members.iter();
    let share = |node: &NodeId| {
        let links = topology.links_of_hop(segment, *node, &[]);
        let bytes = links.first().map_or(0, |link| {
            nrt_bytes(topology, *link, ledger.reserved_bytes(*link))
        });
        let bit_ns = u128::from(bytes) * 8 * u128::from(units::time::NS_PER_S);
        let rate_bps = bit_ns / u128::from(of.spec.period_ns);
        NrtShare {
            bytes,
            rate_bps: u64::try_from(rate_bps).unwrap_or(u64::MAX),
            segment,
            node: *node,
        }
    };
    members.map(share).collect()
}

/// Returns what each sender into a link may send of best effort in a period, wire bytes, if
/// reservations have `reserved_bytes` of it.
pub fn nrt_bytes(topology: &Topology, id: LinkId, reserved_bytes: u64) -> u64 {
    let link = topology.link(id);
    let left_bytes = link.total_bytes.saturating_sub(reserved_bytes);
    match link.direction {
        Direction::Any => left_bytes / topology.segment(link.segment).members.len().max(1) as u64,
        Direction::Up(_) | Direction::Down(_) => left_bytes,
    }
}
