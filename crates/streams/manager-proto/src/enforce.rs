// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a host or router has to put into force: the agent of the node asks its manager what the
//! node has to send ([`NodeDuty`]), sets the classes of its ports, and reports each reservation that
//! is in force. A grant's `in_force` is true when all its senders have.

use std::collections::BTreeMap;

use admission::{FrameSpecification, Grant};
use serde::{Deserialize, Serialize};

/// What a node has to send of its reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDuty {
    /// Name of the node.
    pub node: String,
    /// Number that another one replaces at each change: who names it waits for the next.
    #[serde(default)]
    pub changes: u64,
    /// Time between the question and this answer in which the manager waited for a change, ns: leases are
    /// counted from the answer.
    #[serde(default)]
    pub waited_ns: u64,
    /// Its ports, by segment.
    pub ports: BTreeMap<String, PortDuty>,
}

/// What a node sends into one segment in each period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortDuty {
    /// Length of a period, ns.
    pub period_ns: u64,
    /// Rate of the segment, bit/s.
    pub rate_bps: u64,
    /// Most wire bytes of best effort.
    pub nrt_bytes: u64,
    /// Whether its frames have an IEEE 802.1Q tag.
    #[serde(default)]
    pub is_tagged: bool,
    /// The streams that the node sends.
    pub streams: Vec<StreamDuty>,
}

/// A stream that a node sends into a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamDuty {
    /// Id of the reservation.
    pub id: String,
    /// Name of the stream.
    pub stream_id: String,
    /// Wire bytes in each period.
    pub bytes: u64,
    /// Which frames are the stream's.
    #[serde(default)]
    pub frames: Vec<FrameSpecification>,
    /// Whether the node has reported that it is in force.
    pub in_force: bool,
    /// Time until the lease ends, ns. Without a newer word the stream is best effort from then on.
    pub expires_in_ns: u64,
}

/// Returns whether a node sends a stream into a segment: the names follow each other on a route.
pub fn sends(grant: &Grant, node: &str, segment: &str) -> bool {
    let routes = grant.listeners.iter().map(|listener| &listener.route);
    let mut pairs = routes.flat_map(|route| route.chunks_exact(2));
    pairs.any(|pair| pair == [node, segment])
}
