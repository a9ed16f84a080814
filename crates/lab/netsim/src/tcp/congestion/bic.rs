// SPDX-License-Identifier: MIT OR Apache-2.0
//! Binary increase congestion control (Xu, Harfoush and Rhee, INFOCOM 2004),
//! with the constants of Linux's `tcp_bic`.
//!
//! The window grows by one segment every `per_growth` acknowledgements. That number
//! depends on the distance to the window of the last loss: a quarter of the
//! distance each round trip, by at most `STEP_MAX` segments, then slowly around
//! that window, then faster again.

use units::clock::{Span, Time};

use super::window::{Acked, Window, additive};

/// Largest step: the window grows by at most this many segments each round trip.
const STEP_MAX: u32 = 16;
/// Divisor of the distance: 4, where the BIC paper halves it.
const CUT: u32 = 4;
/// Round trips spent close to the last maximum window.
const SMOOTH_PART: u32 = 20;
/// Windows up to this many segments grow and shrink as Reno's.
const LOW_WINDOW: u32 = 14;
/// Part of the window that is left after a loss, in 1/1024.
const BETA: u32 = 819;
/// Part of a window below the last maximum that becomes the next maximum, in
/// 1/2048: 1024 + BETA.
const FAST_CONVERGENCE: u32 = 1024 + BETA;
/// Before the first loss, a segment is added at least every this many
/// acknowledgements.
const BEFORE_LOSS_MAX: u32 = 20;
/// The average number of segments per acknowledgement is kept in sixteenths, 2 to
/// this power.
const RATIO_SHIFT: u32 = 4;
/// The step is not computed again for the same window within this time.
const RECOMPUTE: Span = Span::from_ns(1_000_000_000 / 32);

#[derive(Clone, Debug)]
pub(crate) struct Bic {
    pub last_max: u32,
    any_loss: bool,
    per_growth: u32,
    computed: Option<(u32, Time)>,
    delayed_ack: u32,
}

impl Default for Bic {
    fn default() -> Bic {
        Bic {
            last_max: 0,
            any_loss: false,
            per_growth: 0,
            computed: None,
            delayed_ack: 2 << RATIO_SHIFT,
        }
    }
}

impl Bic {
    pub fn avoid(&mut self, window: &mut Window, acked: &Acked, segments: u32) {
        let now = acked.now;
        let fresh = matches!(self.computed, Some((cwnd, at))
            if cwnd == window.cwnd && now.since(at) <= RECOMPUTE);
        if !fresh {
            self.computed = Some((window.cwnd, now));
            self.per_growth = self.acks_per_growth(window.cwnd);
        }
        additive(window, acked.counting, self.per_growth, segments);
    }

    fn acks_per_growth(&self, cwnd: u32) -> u32 {
        if cwnd <= LOW_WINDOW {
            return cwnd;
        }
        let slow = cwnd * SMOOTH_PART / CUT;
        let mut per = if cwnd < self.last_max {
            match (self.last_max - cwnd) / CUT {
                d if d > STEP_MAX => cwnd / STEP_MAX,
                d if d <= 1 => slow,
                d => cwnd / d,
            }
        } else if cwnd < self.last_max + CUT {
            slow
        } else if cwnd < self.last_max + STEP_MAX * (CUT - 1) {
            cwnd * (CUT - 1) / (cwnd - self.last_max)
        } else {
            cwnd / STEP_MAX
        };
        if !self.any_loss {
            per = per.min(BEFORE_LOSS_MAX);
        }
        ((per << RATIO_SHIFT) / self.delayed_ack.max(1)).max(1)
    }

    pub fn threshold(&mut self, cwnd: u32) -> u32 {
        self.last_max = if cwnd < self.last_max {
            (u64::from(cwnd) * u64::from(FAST_CONVERGENCE) / 2048) as u32
        } else {
            cwnd
        };
        self.any_loss = true;
        self.computed = None;
        if cwnd <= LOW_WINDOW {
            (cwnd / 2).max(2)
        } else {
            ((u64::from(cwnd) * u64::from(BETA) / 1024) as u32).max(2)
        }
    }

    pub fn on_segments_acked(&mut self, segments: u32) {
        self.delayed_ack = self.delayed_ack - (self.delayed_ack >> RATIO_SHIFT) + segments;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn per(cwnd: u32, last_max: u32) -> u32 {
        let bic = Bic {
            last_max,
            any_loss: true,
            delayed_ack: 1 << RATIO_SHIFT,
            ..Bic::default()
        };
        bic.acks_per_growth(cwnd)
    }

    /// The steps around the last maximum, computed by hand from the constants above.
    #[test]
    fn steps_around_the_last_maximum() {
        assert_eq!(per(14, 1000), 14);
        assert_eq!(per(800, 1000), 800 / 16); // d = 50
        assert_eq!(per(932, 1000), 932 / 16); // d = 17
        assert_eq!(per(960, 1000), 960 / 10); // d = 10
        assert_eq!(per(996, 1000), 5 * 996); // d = 1
        assert_eq!(per(1003, 1000), 5 * 1003);
        assert_eq!(per(1010, 1000), 3 * 1010 / 10);
        assert_eq!(per(1048, 1000), 1048 / 16);
    }

    #[test]
    fn before_any_loss_and_with_delayed_acks() {
        let bic = Bic::default();
        // The increment is cwnd / 16 = 62, at most 20. Two segments for each ACK halve the
        // count.
        assert_eq!(bic.acks_per_growth(1000), 10);
    }

    #[test]
    fn a_loss_leaves_eight_tenths() {
        let mut bic = Bic::default();
        assert_eq!(bic.threshold(1000), 799);
        assert_eq!(bic.last_max, 1000);
        assert_eq!(bic.threshold(900), 719);
        assert_eq!(bic.last_max, 900 * 1843 / 2048);
        assert_eq!(bic.threshold(14), 7);
        assert_eq!(bic.threshold(2), 2);
    }
}
