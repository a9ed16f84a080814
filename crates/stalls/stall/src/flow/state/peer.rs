// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of the other direction.

use crate::flow::at::At;
use crate::flow::packed::fields;

/// What is known of the other direction when a segment of this one is captured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peer {
    /// When the other side sent data last, and in which packet.
    pub(crate) data: Option<At>,
    /// The last of its data that was no repeat.
    pub(crate) message: Message,
    /// When all its data had last been acknowledged; 0, when the capture begins, before.
    pub(crate) settled_ns: u64,
    /// Whether the other side has ended its stream.
    pub(crate) has_ended: bool,
}

/// Data of the other side: its bytes, and the milliseconds, begun, by which it first came behind
/// this side's last data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Message {
    pub(crate) bytes: u32,
    pub(crate) behind_ms: Option<u32>,
}

impl Peer {
    /// Returns when the other side sent data last. It is before every time, if it never did.
    pub(crate) fn data_ns(&self) -> u64 {
        self.data.map_or(0, |at| at.now)
    }
}

fields!(Message { bytes, behind_ms });
fields!(Peer {
    data,
    message,
    settled_ns,
    has_ended,
});
