// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other direction, as far as this one's pauses depend on it.

use std::num::NonZeroU64;

use units::time::NS_PER_MS;

use super::Flow;
use super::at::At;
use super::packed::fields;

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

impl Flow {
    /// Notes what is known of the other direction when a segment of this one is captured.
    pub(crate) fn note_peer(&mut self, settled_ns: u64, rtt_ns: Option<u64>, has_ended: bool) {
        (self.peer.settled_ns, self.peer.has_ended) = (settled_ns, has_ended);
        if rtt_ns != self.trips.peer_rtt_ns {
            self.trips.peer_rtt_ns = rtt_ns;
            self.renew_threshold();
        }
    }

    /// Notes data of the other side. A repeat of it is no other message.
    pub(crate) fn note_request(&mut self, at: At, bytes: u32, is_repeat: bool) {
        self.peer.data = Some(at);
        if !is_repeat {
            let behind_ns = |last_ns: NonZeroU64| at.now.saturating_sub(last_ns.get());
            let behind_ms = self
                .data
                .last_ns
                .map(|ns| behind_ns(ns).div_ceil(NS_PER_MS));
            self.peer.message = Message {
                bytes,
                behind_ms: behind_ms.and_then(|ms| ms.try_into().ok()),
            };
        }
    }
}

fields!(Message { bytes, behind_ms });
fields!(Peer {
    data,
    message,
    settled_ns,
    has_ended,
});
