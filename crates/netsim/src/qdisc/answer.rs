// SPDX-License-Identifier: MIT OR Apache-2.0
//! What queues answer, and how they choose a class.

use units::clock::Time;

use crate::filter::Filter;
use crate::packet::{Header, Packet};

/// What became of a packet given to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is in the queue.
    Queued,
    /// There was no room, and its sender knows (NET_XMIT_DROP).
    Refused,
    /// It is gone, and its sender does not know (netem's loss).
    Lost,
}

/// What a device should do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the queue is empty.
    Idle,
    /// Send this packet.
    Send(Packet),
    /// Fill so much of the wire, overhead included.
    Gap {
        /// Wire bytes.
        wire_bytes: u32,
    },
    /// Ask again at this instant, later than now.
    Wait(Time),
    /// This packet is dropped; ask again.
    Drop(Packet),
}

/// The minor number of the class a packet belongs to: what its socket asks for,
/// then the first filter that matches, then `default`.
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
