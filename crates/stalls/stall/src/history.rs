// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of one connection that a plot needs, in bounded memory.

use crate::direction::Direction;

/// What one segment did to one direction's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Data not seen before, as offsets in the stream.
    New {
        /// First byte.
        start: u64,
        /// Byte after the last.
        end: u64,
    },
    Retransmission {
        /// First byte.
        start: u64,
        /// Byte after the last.
        end: u64,
        /// What made the sender retransmit it.
        kind: RetransmissionKind,
    },
    /// Data that arrived late or was captured late: it was not retransmitted.
    OutOfOrder {
        /// First byte.
        start: u64,
        /// Byte after the last.
        end: u64,
    },
    /// An acknowledgement of this direction's data.
    Ack {
        /// Next byte expected.
        ack: u64,
        /// First byte that the window has no room for.
        window_edge: u64,
    },
    /// A SACK block of that acknowledgement.
    Sack {
        /// First byte.
        start: u64,
        /// Byte after the last.
        end: u64,
        /// Whether the block reports bytes that arrived twice (RFC 2883).
        duplicate: bool,
    },
}

/// What made a sender retransmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetransmissionKind {
    /// Acknowledgements: duplicates, SACK, RACK.
    Fast,
    /// The retransmission timeout.
    Timeout,
    /// The rest of the repair after a timeout.
    AfterTimeout,
    /// A tail loss probe (TLP).
    Probe,
    /// Not known: the capture, from where it was made, does not show the reason.
    Unclear,
}

/// One event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time since the capture's first segment.
    pub time_ns: u64,
    /// Number of the packet.
    pub packet: u64,
    /// Direction of the data that the event is about.
    pub direction: Direction,
    pub what: What,
    /// Bytes thought to be in flight after the event.
    pub flight_bytes: u64,
}

/// The events of one connection, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The events. Offset 0 of a direction is its first captured byte.
    pub events: Vec<Event>,
    /// One of so many ordinary events (new data, acknowledgements) is in `events`.
    /// Retransmissions, duplicates and closed windows all are, unless they alone are too many.
    pub one_of: u64,
}
