// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of RACK-TLP (RFC 8985) for one connection.

use std::collections::VecDeque;

use units::clock::{Span, Time};

use super::queue::{Packet, tag};

/// Time that Linux adds to the two timers because its clock is coarse (two jiffies
/// of 1 ms).
pub(super) const SLACK: Span = Span::from_ns(2_000_000);
/// Number of recoveries for which a widened reordering window is kept (section
/// 6.2).
pub(super) const PERSIST: u32 = 16;
/// Upper bound of the reordering window, in quarters of a round trip.
pub(super) const STEPS_MAX: u32 = 255;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    Reorder(Time),
    TailProbe(Time),
}

#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// Of the delivered packet that was sent last: the time of sending, and its
    /// end.
    pub(super) newest: Option<(Time, u64)>,
    /// Round-trip time of the last delivered packet.
    pub(super) rtt: Span,
    /// Highest sequence number delivered before this acknowledgement, and including
    /// it.
    pub(super) highest_before: u64,
    pub(super) highest: u64,
    pub(super) reordering_seen: bool,
    /// Reordering window in quarters of the minimum round-trip time.
    pub(super) steps: u32,
    pub(super) persist: u32,
    /// `nxt` when the reordering window was widened last: it is widened at most
    /// once each round trip.
    pub(super) dsack_round: Option<u64>,
    /// Transmissions in order of time. One is stale if the same packet was sent
    /// again after it, or if its packet arrived or is marked lost; stale ones are
    /// dropped when they come to the front.
    pub(super) sent: VecDeque<(Time, u64)>,
    pub(super) timer: Option<Timer>,
    /// `nxt` at the last tail loss probe, until its outcome is known; and whether
    /// the probe was a retransmission.
    pub(super) probe: Option<(u64, bool)>,
    pub(super) send_probe: bool,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            newest: None,
            rtt: Span::ZERO,
            highest_before: 0,
            highest: 0,
            reordering_seen: false,
            steps: 1,
            persist: 0,
            dsack_round: None,
            sent: VecDeque::new(),
            timer: None,
            probe: None,
            send_probe: false,
        }
    }
}

impl Rack {
    pub fn timer(&self) -> Option<Time> {
        match self.timer? {
            Timer::Reorder(at) | Timer::TailProbe(at) => Some(at),
        }
    }

    pub fn stop(&mut self) {
        self.timer = None;
        self.probe = None;
        self.send_probe = false;
    }

    /// Processes a delivered packet (section 6.2, steps 1 and 2). As in Linux the
    /// round-trip time is that of the packet examined last, and the head is
    /// examined first; the RFC uses the packet sent last.
    pub(super) fn on_delivered(&mut self, now: Time, packet: &Packet, min_rtt: Option<Span>) {
        let rtt = now.since(packet.sent_at);
        if packet.has(tag::EVER) && min_rtt.is_some_and(|min| rtt < min) {
            return; // the original was acknowledged, not the retransmission
        }
        self.rtt = rtt;
        self.newest = self.newest.max(Some((packet.sent_at, packet.end)));
    }

    #[cfg(test)]
    pub fn rtt(&self) -> Span {
        self.rtt
    }

    #[cfg(test)]
    pub fn newest(&self) -> Option<(Time, u64)> {
        self.newest
    }

    pub(super) fn on_sent(&mut self, now: Time, number: u64) {
        self.sent.push_back((now, number));
    }
}
