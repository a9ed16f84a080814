// SPDX-License-Identifier: MIT OR Apache-2.0
//! CUBIC (RFC 9438), in floating point as in its text: equations 1, 2 and 4 and
//! figure 5's Reno-friendly estimate; with HyStart, as in Linux.

use units::clock::{Span, Time};

use super::hystart::{HyStart, RttSample};
use super::window::{Acked, Window};

/// The constant C, segments per second cubed (RFC 9438, section 5).
const C: f64 = 0.4;
/// Round trips so soon after a recovery count for nothing in HyStart.
const AFTER_RECOVERY: Span = Span::from_ns(1_000_000_000);
/// Part of the window that is left after a loss (section 4.6).
const BETA: f64 = 0.7;

#[derive(Clone, Debug, Default)]
pub(crate) struct Cubic {
    /// Window just before the last reduction, less what fast convergence subtracts,
    /// in segments.
    w_max: f64,
    /// Window at the last loss, to which an undo restores it.
    pub cwnd_at_loss: u32,
    epoch: Option<Epoch>,
    /// Growth not yet applied to the window, because it is not a whole segment.
    growth: f64,
    hystart: Option<HyStart>,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// Seconds until the window is at `w_max` again (equation 2).
    k: f64,
    origin: f64,
    w_est: f64,
}

impl Cubic {
    pub fn new(has_hystart: bool) -> Cubic {
        Cubic {
            hystart: has_hystart.then(HyStart::default),
            ..Cubic::default()
        }
    }

    pub fn on_rtt(&mut self, window: &mut Window, sample: &RttSample) {
        let start = self.epoch.map(|epoch| epoch.start);
        let counts = start.is_none_or(|start| sample.now.since(start) >= AFTER_RECOVERY);
        if let Some(hystart) = self.hystart.as_mut().filter(|_| counts) {
            hystart.on_rtt(window, sample);
        }
    }

    pub fn avoid(&mut self, window: &mut Window, acked: &Acked, segments: u32) {
        let cwnd = f64::from(window.cwnd);
        let w_max = self.w_max;
        let epoch = self.epoch.get_or_insert_with(|| {
            let origin = w_max.max(cwnd);
            Epoch {
                start: acked.now,
                k: ((origin - cwnd) / C).cbrt(),
                origin,
                w_est: cwnd,
            }
        });
        let t = acked.now.since(epoch.start).as_s();
        let w_cubic = |t: f64| C * (t - epoch.k).powi(3) + epoch.origin;

        // Section 4.3: the growth of Reno with this beta; that of standard Reno
        // once beyond the window of the last loss.
        let alpha = if epoch.w_est >= epoch.origin {
            1.0
        } else {
            3.0 * (1.0 - BETA) / (1.0 + BETA)
        };
        let w_est = epoch.w_est + alpha * f64::from(segments) / cwnd;
        self.growth = if w_cubic(t) < w_est {
            (w_est - cwnd).max(0.0)
        } else {
            // Sections 4.4 and 4.5: the target is the cubic window one round trip
            // ahead, at most 1.5 times the current window.
            let target = w_cubic(t + acked.srtt.as_s()).clamp(cwnd, 1.5 * cwnd);
            self.growth + (target - cwnd) / cwnd * f64::from(segments)
        };
        epoch.w_est = w_est;
        while self.growth >= 1.0 {
            self.growth -= 1.0;
            window.grow();
        }
    }

    pub fn threshold(&mut self, cwnd: u32) -> u32 {
        let whole = f64::from(cwnd);
        // Section 4.7, fast convergence.
        self.w_max = if whole < self.w_max {
            whole * (1.0 + BETA) / 2.0
        } else {
            whole
        };
        self.cwnd_at_loss = cwnd;
        self.epoch = None;
        self.growth = 0.0;
        ((whole * BETA) as u32).max(2)
    }

    /// Handles a timeout (section 4.8): congestion avoidance starts a new epoch, at
    /// the threshold.
    pub fn on_timeout(&mut self) {
        self.epoch = None;
        self.growth = 0.0;
        self.hystart = self.hystart.take().map(|_| HyStart::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::window::Counting;
    use units::clock::Span;

    fn round_trips(cubic: &mut Cubic, window: &mut Window, rtt: Span, count: u32) {
        let mut now = Time::START;
        for _ in 0..count {
            for _ in 0..window.cwnd {
                let acked = Acked {
                    now,
                    segments: 1,
                    srtt: rtt,
                    counting: Counting::Segments,
                    una: 0,
                    nxt: 0,
                    calm: true,
                };
                cubic.avoid(window, &acked, 1);
            }
            now += rtt;
        }
    }

    /// Where the cubic curve is flatter than Reno, the window follows the estimate of section
    /// 4.3: 0.53 segments more each round trip.
    #[test]
    fn cubic_grows_as_reno_on_short_paths() {
        let mut cubic = Cubic::default();
        let mut window = Window {
            cwnd: cubic.threshold(100),
            ssthresh: 70,
            count: 0,
            abc_bytes: 0,
        };
        round_trips(&mut cubic, &mut window, Span::from_ns(1_000_000), 20);
        assert!((79..=81).contains(&window.cwnd), "{}", window.cwnd);
    }

    /// After a loss at 1000 segments the window is back at 1000 after K seconds, and stays near
    /// it for a while.
    #[test]
    fn the_window_is_at_the_last_maximum_after_k_seconds() {
        let mut cubic = Cubic::default();
        let mut window = Window {
            cwnd: cubic.threshold(1000),
            ssthresh: 700,
            count: 0,
            abc_bytes: 0,
        };
        assert_eq!(window.cwnd, 700);
        let k = (300.0_f64 / C).cbrt();
        let rtt = Span::from_ns(100_000_000);
        round_trips(&mut cubic, &mut window, rtt, (k / rtt.as_s()).ceil() as u32);
        assert!((995..=1005).contains(&window.cwnd), "{}", window.cwnd);
    }
}
