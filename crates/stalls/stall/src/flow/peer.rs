// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other direction, as far as this one's pauses depend on it.

use std::num::NonZeroU64;

use units::time::NS_PER_MS;

use super::Flow;
use super::at::At;
use super::state::peer::Message;

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
