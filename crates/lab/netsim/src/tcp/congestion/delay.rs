// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells whether a path is used little, by the delay of its acknowledgements: BIC of Linux
//! 2.6.14 then grows the window faster.

use units::clock::{Span, Time};

/// Part of the range of delays, in 1/1024, below which the average counts as low.
const LOW: u64 = 153;
/// Time for which it must be low.
const LOW_FOR: Span = Span::from_ns(2_000_000_000);
/// Delays this soon after a loss do not count.
const AFTER_LOSS: Span = Span::from_ns(1_000_000_000);

/// The delay of one acknowledgement of new data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DelaySample {
    pub now: Time,
    /// The delay in ticks; `None` without timestamps or in a dubious state.
    pub delay_ticks: Option<u64>,
    /// Eight times the smoothed round-trip time, in ticks.
    pub srtt8_ticks: u64,
}

/// What is known of the delays; in eighths of ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delay {
    last8: u64,
    min8: u64,
    max8: u64,
    low_since: Option<Time>,
    low: bool,
}

impl Delay {
    pub fn is_low(&self) -> bool {
        self.low
    }

    /// Forgets a tenth of the range of delays: the largest may have been wrong.
    pub fn on_loss(&mut self) {
        if self.min8 > 0 {
            self.max8 = self.min8 + (self.max8 - self.min8) * 90 / 100;
        }
    }

    /// Adds a delay. It is compared with the others one acknowledgement later. `epoch` is when
    /// the window first grew after the last loss.
    pub fn add(&mut self, sample: &DelaySample, epoch: Option<Time>) {
        let settled = epoch.is_none_or(|at| sample.now >= at + AFTER_LOSS);
        let (low, start) = match sample.delay_ticks.filter(|_| settled) {
            Some(ticks) => {
                let delay8 = std::mem::replace(&mut self.last8, ticks * 8);
                let low = self.compare(delay8, sample.srtt8_ticks);
                (low, self.low_since.unwrap_or(sample.now))
            }
            None => {
                self.last8 = 0;
                (false, sample.now)
            }
        };
        self.low_since = low.then_some(start);
        self.low = low && (self.low || sample.now.since(start) > LOW_FOR);
    }

    /// Returns whether the smoothed round-trip time is low in the range of the delays.
    fn compare(&mut self, delay8: u64, srtt8: u64) -> bool {
        if delay8 == 0 {
            return false;
        }
        if self.min8 == 0 || self.min8 > delay8 {
            self.min8 = delay8;
            self.max8 = delay8;
            return false;
        }
        self.max8 = self.max8.max(delay8);
        let range8 = self.max8 - self.min8;
        range8 > self.min8 >> 6
            && srtt8
                .checked_sub(self.min8)
                .is_some_and(|above| above < (range8 * LOW) >> 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_PS: u64 = 1_000_000_000_000;

    fn sample(seconds: u64, ticks: u64, srtt: u64) -> DelaySample {
        DelaySample {
            now: Time::from_ps(seconds * SECOND_PS),
            delay_ticks: Some(ticks),
            srtt8_ticks: srtt * 8,
        }
    }

    /// Delays of 100 to 200 ticks: an average below 100 + 100 x 153/1024 = 114 is low, once it
    /// has been for more than two seconds.
    #[test]
    fn a_path_is_used_little_after_two_seconds_of_low_delay() {
        let mut delay = Delay::default();
        for (second, ticks) in [(0, 100), (1, 200), (2, 100)] {
            delay.add(&sample(second, ticks, 150), None);
            assert!(!delay.is_low());
        }
        let low = |delay: &mut Delay, second| {
            delay.add(&sample(second, 110, 113), None);
            delay.is_low()
        };
        assert_eq!(
            [3, 4, 5, 6].map(|s| low(&mut delay, s)),
            [false, false, false, true]
        );
        delay.add(&sample(7, 110, 115), None);
        assert!(!delay.is_low());
        assert!(!low(&mut delay, 8));
    }

    #[test]
    fn delays_soon_after_a_loss_do_not_count() {
        let mut delay = Delay::default();
        delay.add(&sample(3, 100, 100), Some(Time::from_ps(SECOND_PS * 5 / 2)));
        delay.add(&sample(4, 300, 100), None);
        assert_eq!(delay.min8, 0);
        delay.add(&sample(5, 300, 100), None);
        assert_eq!(delay.min8, 2400);
    }
}
