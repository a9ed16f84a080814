// SPDX-License-Identifier: MIT OR Apache-2.0
//! What two captures show of one direction of one connection.

use capture::segment::Endpoint;
use serde::Serialize;

use super::delay::Delays;
use super::pairing::Fates;
use crate::units::text;

/// One direction of one connection, at both ends.
#[derive(Clone, Debug, Serialize)]
pub struct Path {
    /// The end that sends.
    #[serde(serialize_with = "text")]
    pub from: Endpoint,
    /// The end that receives.
    #[serde(serialize_with = "text")]
    pub to: Endpoint,
    /// Whether the sending end is the one of the near capture.
    pub from_near: bool,
    /// Packets captured where they were sent.
    pub sent: u64,
    /// Of these, packets captured where they were received.
    pub arrived: u64,
    /// Packets that were sent while the other end captured, and never came there.
    pub lost: u64,
    /// Packets captured where they were received, and not where they were sent: the capture
    /// there missed them.
    pub missed: u64,
    /// How long the packets were on their way.
    pub delays: Delays,
    /// Numbers of lost packets, of the capture at the sending end: the first ones.
    pub lost_packets: Vec<u64>,
    #[serde(skip)]
    pub(super) fates: Fates,
}

/// Most numbers of lost packets that a path lists.
const LOST_MOST: usize = 1000;

impl Path {
    /// Sums up what became of the packets of one direction.
    pub(super) fn of((from, to): (Endpoint, Endpoint), from_near: bool, fates: Fates) -> Self {
        let lost_packets = fates.lost().map(|packet| packet.number);
        Self {
            from,
            to,
            from_near,
            sent: fates.sent.len() as u64,
            arrived: fates.arrived(),
            lost: fates.lost().count() as u64,
            missed: fates.missed,
            delays: Delays::of(fates.delays()),
            lost_packets: lost_packets.take(LOST_MOST).collect(),
            fates,
        }
    }
}
