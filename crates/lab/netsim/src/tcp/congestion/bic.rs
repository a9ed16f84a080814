// SPDX-License-Identifier: MIT OR Apache-2.0
//! Binary increase congestion control (Xu, Harfoush and Rhee, INFOCOM 2004),
//! with the constants of one of several Linux kernels.
//!
//! The window grows by one segment every `per_growth` acknowledgements. That number
//! depends on the distance to the window of the last loss: a quarter of the
//! distance each round trip, by a limited number of segments, then slowly around that
//! window, then faster again.

use units::clock::{Span, Time};

use super::delay::{Delay, DelaySample};
use super::window::{Acked, Window, additive};
use crate::tcp::variant::BicParameters;

/// Divisor of the distance: 4, where the BIC paper halves it.
const CUT: u32 = 4;
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
    parameters: BicParameters,
    last_max: u32,
    /// Window at the last loss; 0 if there was none.
    loss_cwnd: u32,
    per_growth: u32,
    /// Window for which `per_growth` was computed, and when. A loss does not change it.
    computed: Option<(u32, Time)>,
    /// When the window first grew by these rules after the last loss.
    epoch: Option<Time>,
    delayed_ack: u32,
    delay: Delay,
}

impl Bic {
    pub fn new(parameters: BicParameters) -> Bic {
        Bic {
            parameters,
            last_max: 0,
            loss_cwnd: 0,
            per_growth: 0,
            computed: None,
            epoch: None,
            delayed_ack: 2 << RATIO_SHIFT,
            delay: Delay::default(),
        }
    }

    pub fn avoid(&mut self, window: &mut Window, acked: &Acked, segments: u32) {
        let now = acked.now;
        let fresh = matches!(self.computed, Some((cwnd, at))
            if cwnd == window.cwnd && now.since(at) <= RECOMPUTE);
        if !fresh {
            self.computed = Some((window.cwnd, now));
            self.epoch.get_or_insert(now);
            self.per_growth = self.acks_per_growth(window.cwnd);
        }
        additive(window, acked.counting, self.per_growth, segments);
    }

    fn acks_per_growth(&self, cwnd: u32) -> u32 {
        if cwnd <= LOW_WINDOW {
            return cwnd;
        }
        let per = self.acks_by_distance(cwnd);
        if !self.parameters.is_module {
            return per;
        }
        let is_slow = cwnd > self.loss_cwnd && self.delay.is_low();
        let per = if self.loss_cwnd == 0 || is_slow {
            per.min(BEFORE_LOSS_MAX)
        } else {
            per
        };
        ((per << RATIO_SHIFT) / self.delayed_ack.max(1)).max(1)
    }

    /// Returns the acknowledgements per growth at this distance from the last maximum.
    fn acks_by_distance(&self, cwnd: u32) -> u32 {
        let step_max = self.parameters.max_increment;
        let slow = cwnd * self.parameters.smooth_part / CUT;
        if cwnd < self.last_max {
            return match (self.last_max - cwnd) / CUT {
                d if d > step_max => cwnd / step_max,
                d if d <= 1 => slow,
                d => cwnd / d,
            };
        }
        if cwnd < self.last_max + CUT {
            slow
        } else if cwnd < self.last_max + step_max * (CUT - 1) {
            cwnd * (CUT - 1) / (cwnd - self.last_max)
        } else {
            cwnd / step_max
        }
    }

    pub fn threshold(&mut self, cwnd: u32) -> u32 {
        self.last_max = if cwnd < self.last_max {
            (u64::from(cwnd) * u64::from(FAST_CONVERGENCE) / 2048) as u32
        } else {
            cwnd
        };
        self.loss_cwnd = cwnd;
        self.epoch = None;
        self.delay.on_loss();
        if cwnd <= LOW_WINDOW {
            (cwnd / 2).max(2)
        } else {
            ((u64::from(cwnd) * u64::from(BETA) / 1024) as u32).max(2)
        }
    }

    /// Handles a retransmission timeout: all that was learned is forgotten.
    pub fn reset(&mut self) {
        if self.parameters.is_module {
            *self = Bic::new(self.parameters);
        }
    }

    /// Returns the window to restore if the reduction was unnecessary; `doubled` is twice the
    /// threshold.
    pub fn cwnd_before_loss(&self, cwnd: u32, doubled: u32) -> u32 {
        if self.parameters.is_module {
            cwnd.max(self.last_max)
        } else {
            cwnd.max(doubled)
        }
    }

    /// Returns the window below which rate halving does not go by itself.
    pub fn least_while_halving(&self, ssthresh: u32) -> u32 {
        if self.parameters.is_module {
            ssthresh
        } else {
            ssthresh / 2
        }
    }

    pub fn on_delay(&mut self, sample: &DelaySample) {
        if self.parameters.low_utilization {
            self.delay.add(sample, self.epoch);
        }
    }

    pub fn on_segments_acked(&mut self, segments: u32) {
        self.delayed_ack = self.delayed_ack - (self.delayed_ack >> RATIO_SHIFT) + segments;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::Counting;
    use crate::tcp::variant::{V2_6_11, V2_6_14, V2_6_17};

    fn per(cwnd: u32, last_max: u32) -> u32 {
        let bic = Bic {
            last_max,
            loss_cwnd: 1,
            delayed_ack: 1 << RATIO_SHIFT,
            ..Bic::new(V2_6_17.bic)
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
        let bic = Bic::new(V2_6_17.bic);
        // The increment is cwnd / 16 = 62, at most 20. Two segments for each ACK halve the
        // count.
        assert_eq!(bic.acks_per_growth(1000), 10);
    }

    #[test]
    fn a_loss_leaves_eight_tenths() {
        let mut bic = Bic::new(V2_6_17.bic);
        assert_eq!(bic.threshold(1000), 799);
        assert_eq!(bic.last_max, 1000);
        assert_eq!(bic.threshold(900), 719);
        assert_eq!(bic.last_max, 900 * 1843 / 2048);
        assert_eq!(bic.threshold(14), 7);
        assert_eq!(bic.threshold(2), 2);
    }

    /// Far above the last maximum the window grows by the largest increment each round trip:
    /// 32 segments in the first kernels, 16 later. BIC that is no module counts neither delayed
    /// acknowledgements nor the time before the first loss.
    #[test]
    fn the_largest_increment_is_the_kernels() {
        let per = |bic: Bic| bic.acks_per_growth(1600);
        let lost = |parameters| Bic {
            loss_cwnd: 100,
            delayed_ack: 1 << RATIO_SHIFT,
            ..Bic::new(parameters)
        };
        assert_eq!(per(lost(V2_6_11.bic)), 1600 / 32);
        assert_eq!(per(lost(V2_6_14.bic)), 1600 / 32);
        assert_eq!(per(lost(V2_6_17.bic)), 1600 / 16);
        assert_eq!(per(Bic::new(V2_6_11.bic)), 1600 / 32);
        assert_eq!(per(Bic::new(V2_6_14.bic)), 20 / 2);
    }

    /// Within 1/32 s of the last computation the step for the same window stays, even if a loss
    /// came between and changed what it would be.
    #[test]
    fn a_loss_does_not_make_the_step_be_computed_again() {
        let mut bic = Bic::new(V2_6_17.bic);
        let mut window = Window {
            cwnd: 1000,
            ssthresh: 2,
            count: 0,
            abc_bytes: 0,
        };
        let acked = |now| Acked {
            now,
            segments: 1,
            srtt: Span::ZERO,
            counting: Counting::Acks,
            una: 0,
            nxt: 0,
            calm: true,
        };
        bic.avoid(&mut window, &acked(Time::START), 1);
        assert_eq!(bic.per_growth, 20 / 2);
        bic.threshold(1000);
        bic.avoid(&mut window, &acked(Time::from_ps(31_000_000_000)), 1);
        assert_eq!(bic.per_growth, 20 / 2);
        bic.avoid(&mut window, &acked(Time::from_ps(32_000_000_000)), 1);
        assert_eq!(bic.per_growth, 5 * 1000 / 2);
    }
}
