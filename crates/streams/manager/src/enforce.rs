// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a host or router has to put into force: the agent of the node asks its manager what the
//! node has to send ([`NodeDuty`]), sets the classes of its ports, and reports each reservation that
//! is in force. A grant's `in_force` is true when all its senders have.

use std::collections::BTreeMap;

use admission::{Direction, FrameSpecification, Grant, LinkBytes, nrt_shares};
use serde::{Deserialize, Serialize};

use crate::machine::Manager;
use crate::record::ReservationState;

/// What a node has to send of its reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDuty {
    /// Name of the node.
    pub node: String,
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

/// Returns what a node has to send of the reservations that this manager has granted; `None` if the
/// topology has no such node. Of segments of other managers it knows what its own reservations
/// take there. O(reservations).
#[must_use]
pub fn node_duty(manager: &Manager, node: &str) -> Option<NodeDuty> {
    let topology = manager.topology();
    let id = topology.node_id(node)?;
    let ledger = manager.parts().ledger();
    let mut duty = NodeDuty {
        node: node.to_owned(),
        ports: BTreeMap::new(),
    };
    for segment in &topology.node(id).segments {
        let shares = nrt_shares(topology, ledger, *segment);
        let share = shares.iter().find(|share| share.node == id);
        let spec = &topology.segment(*segment).spec;
        let port = PortDuty {
            period_ns: spec.period_ns,
            rate_bps: spec.rate_bps,
            nrt_bytes: share.map_or(0, |share| share.bytes),
            streams: Vec::new(),
        };
        duty.ports.insert(spec.name.clone(), port);
    }
    for (name, reservation) in manager.reservations() {
        if reservation.state != ReservationState::Granted {
            continue;
        }
        let grant = &reservation.grant;
        for (segment, port) in &mut duty.ports {
            if !sends(grant, node, segment) {
                continue;
            }
            let own = |link: &&LinkBytes| {
                let known = topology.link_id(&link.link).map(|id| topology.link(id));
                known.is_some_and(|link| {
                    let is_sent = [Direction::Any, Direction::Up(id)].contains(&link.direction);
                    is_sent && topology.segment(link.segment).spec.name == *segment
                })
            };
            let bytes = grant.links.iter().find(own).map_or(0, |link| link.bytes);
            port.streams.push(StreamDuty {
                id: name.clone(),
                stream_id: grant.stream_id.clone(),
                bytes,
                frames: reservation.request.talker.data_frame_specification.clone(),
                in_force: reservation.in_force.contains(node),
                expires_in_ns: reservation.expires_ns.saturating_sub(manager.now_ns()),
            });
        }
    }
    Some(duty)
}

/// Returns whether a node sends a stream into a segment: the names follow each other on a route.
fn sends(grant: &Grant, node: &str, segment: &str) -> bool {
    let routes = grant.listeners.iter().map(|listener| &listener.route);
    let mut pairs = routes.flat_map(|route| route.chunks_exact(2));
    pairs.any(|pair| pair == [node, segment])
}
