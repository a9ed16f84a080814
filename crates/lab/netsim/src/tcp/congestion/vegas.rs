// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vegas (Brakmo and Peterson, 1995), with the constants of Linux's `tcp_vegas`: the window is
//! held where a few segments of the flow wait in the path, by the round-trip time.

use units::clock::Span;

use super::growth::{grow_as_reno, slow_start_first};
use super::reno;
use super::window::{Acked, Window};

/// Segments that may wait in the path: with fewer the window grows.
const ALPHA: u64 = 2;
/// With more than this the window shrinks.
const BETA: u64 = 4;
/// With more than this slow start ends.
const GAMMA: u64 = 1;
/// Round trips measured in a round that are too few to say anything.
const SAMPLES_FEW: u32 = 2;

#[derive(Clone, Debug, Default)]
pub(crate) struct Vegas {
    /// Shortest round trip of the connection: that of an empty path.
    base: Option<Span>,
    /// Shortest round trip of this round, and how many were measured.
    least: Option<Span>,
    samples: u32,
    /// The round ends when data beyond this is acknowledged.
    round_end: u64,
    /// Whether the sender was in Open, so that this round counts.
    is_calm: bool,
}

impl Vegas {
    /// Adds the measured round trip of an acknowledgement.
    pub fn on_rtt(&mut self, rtt: Span) {
        let least = |known: Option<Span>| Some(known.map_or(rtt, |known| known.min(rtt)));
        self.base = least(self.base);
        self.least = least(self.least);
        self.samples += 1;
    }

    pub fn on_acked(&mut self, window: &mut Window, acked: &Acked) {
        if acked.calm && !self.is_calm {
            self.begin_round(acked.nxt);
        }
        self.is_calm = acked.calm;
        if !acked.calm {
            grow_as_reno(window, acked);
            return;
        }
        if acked.una <= self.round_end {
            slow_start_first(window, acked);
            return;
        }
        let measured = self
            .base
            .zip(self.least)
            .filter(|_| self.samples > SAMPLES_FEW);
        self.begin_round(acked.nxt);
        match measured {
            Some((base, least)) => hold(window, acked, base, least),
            None => grow_as_reno(window, acked),
        }
    }

    fn begin_round(&mut self, nxt: u64) {
        self.round_end = nxt;
        self.least = None;
        self.samples = 0;
    }

    /// Returns the threshold after a loss. The round under way does not count.
    pub fn threshold(&mut self, cwnd: u32) -> u32 {
        self.is_calm = false;
        reno::threshold(cwnd)
    }

    /// Handles a timeout: the round under way does not count.
    pub fn on_timeout(&mut self) {
        self.is_calm = false;
    }
}

/// Changes the window by at most a segment, or ends slow start, at the end of a round.
fn hold(window: &mut Window, acked: &Acked, base: Span, least: Span) {
    let (base_ns, least_ns) = (base.as_ns().max(1), least.as_ns().max(1));
    let cwnd = u64::from(window.cwnd);
    let waiting = cwnd * least_ns.saturating_sub(base_ns) / base_ns;
    if window.in_slow_start(true) {
        if waiting > GAMMA {
            // A share of the window of at most one fits 32 bits.
            let target = (cwnd * base_ns / least_ns) as u32;
            window.cwnd = window.cwnd.min(target + 1).max(2);
            window.ssthresh = window.ssthresh.min(window.cwnd - 1);
        } else {
            slow_start_first(window, acked);
        }
    } else if waiting > BETA {
        window.cwnd = (window.cwnd - 1).max(2);
        window.ssthresh = window.ssthresh.min(window.cwnd - 1);
    } else if waiting < ALPHA {
        window.grow();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::window::Counting;
    use units::clock::Time;

    /// One round at a window in congestion avoidance: four measurements, then the acknowledgement
    /// that ends it.
    fn after_round(cwnd: u32, ssthresh: u32, rtt_ms: u64) -> (u32, u32) {
        let ms = |ms: u64| Span::from_ns(ms * 1_000_000);
        let mut vegas = Vegas::default();
        let mut window = Window {
            cwnd,
            ssthresh,
            count: 0,
            abc_bytes: 0,
        };
        let mut acked = Acked {
            now: Time::START,
            segments: 1,
            srtt: ms(rtt_ms),
            counting: Counting::Segments,
            una: 1,
            nxt: 100,
            calm: true,
        };
        vegas.on_rtt(ms(100));
        vegas.on_acked(&mut window, &acked);
        (window.cwnd, window.ssthresh) = (cwnd, ssthresh);
        for _ in 0..4 {
            vegas.on_rtt(ms(rtt_ms));
        }
        (acked.una, acked.nxt) = (101, 200);
        vegas.on_acked(&mut window, &acked);
        (window.cwnd, window.ssthresh)
    }

    /// At 100 segments and an empty path of 100 ms, a millisecond more is a segment that waits.
    #[test]
    fn the_window_is_held_between_two_and_four_waiting_segments() {
        for (rtt_ms, cwnd) in [(100, 101), (101, 101), (102, 100), (104, 100), (105, 99)] {
            assert_eq!(after_round(100, 50, rtt_ms).0, cwnd, "{rtt_ms} ms");
        }
    }

    #[test]
    fn slow_start_ends_when_two_segments_wait() {
        assert_eq!(after_round(100, 1_000, 101), (101, 1_000));
        // 100 x 100 / 125 = 80 segments fill the path, and one more.
        assert_eq!(after_round(100, 1_000, 125), (81, 80));
    }
}
