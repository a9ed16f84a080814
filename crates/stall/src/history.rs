// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a plot of one connection needs, in bounded memory.

use crate::analysis::Direction;

/// What one segment did to one direction's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Data not seen before; offsets in the stream.
    New {
        /// First byte.
        start: u64,
        /// Byte after the last.
        end: u64,
    },
    /// Data retransmitted.
    Retransmission {
        /// First byte.
        start: u64,
        /// Byte after the last.
        end: u64,
        /// Why.
        kind: RetransmissionKind,
    },
    /// Data that arrived late or was captured late: not retransmitted.
    OutOfOrder {
        /// First byte.
        start: u64,
        /// Byte after the last.
        end: u64,
    },
    /// An acknowledgement, of this direction's data.
    Ack {
        /// Next byte expected.
        ack: u64,
        /// First byte that the window has no room for.
        window_edge: u64,
    },
    /// A SACK block that came with it.
    Sack {
        /// First byte.
        start: u64,
        /// Byte after the last.
        end: u64,
        /// It tells of bytes that arrived twice (RFC 2883).
        duplicate: bool,
    },
}

/// What made a sender send again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetransmissionKind {
    /// Acknowledgements.
    Fast,
    /// The timeout.
    Timeout,
    /// The rest of the repair after a timeout.
    AfterTimeout,
    /// A probe of the tail.
    Probe,
    /// Not to be told from where it was captured.
    Unclear,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Since the capture's first segment.
    pub time_ns: u64,
    /// Number of the packet.
    pub packet: u64,
    /// Whose data.
    pub direction: Direction,
    /// What happened.
    pub what: What,
    /// Thought to be in flight after it, in bytes.
    pub flight_bytes: u64,
}

/// The events of one connection, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Offset 0 of a direction is its first byte captured.
    pub events: Vec<Event>,
    /// Of this many ordinary events (new data, acknowledgements) one is here;
    /// retransmissions, duplicates and closed windows all are, unless they
    /// alone are too many.
    pub one_of: u64,
}
