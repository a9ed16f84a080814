// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answers of queueing disciplines, and how they choose a class.

use units::clock::Time;

use crate::filter::Filter;
use crate::packet::{Header, Packet};

/// The result of enqueueing a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is in the queue.
    Queued,
    /// The packet is in the queue, and this other packet, which was in it, was dropped
    /// for it. The sender is informed that the queue is full (NET_XMIT_CN).
    Displaced(Packet),
    /// The queue was full; the sender is informed (NET_XMIT_DROP).
    Refused,
    /// The packet is lost, and the sender is not informed (netem's loss).
    Lost,
}

/// What a device has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the queue is empty.
    Idle,
    /// Send this packet.
    Send(Packet),
    /// Send a gap frame.
    Gap {
        /// Bytes on the wire, overhead included.
        wire_bytes: u32,
    },
    /// Call again at this instant, which is later than now.
    Wait(Time),
    /// The queue has dropped this packet; call again.
    Drop(Packet),
}

/// Returns the minor number of a packet's class: the class that its socket selects,
/// otherwise that of the first filter that matches, otherwise `default`.
pub(super) fn classify(
    major: u32,
    packet: &Packet,
    header: &Header,
    filters: &[Filter],
    default: u32,
    exists: impl Fn(u32) -> bool,
) -> u32 {
    let asked = packet.class & 0xffff;
    if packet.class >> 16 == major && packet.class != 0 && exists(asked) {
        return asked;
    }
    let found = filters.iter().find(|filter| filter.matches(header));
    found.map_or(default, |filter| filter.minor)
}
