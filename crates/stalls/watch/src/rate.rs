// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the rate of acknowledged data over the last second.

use std::collections::VecDeque;

/// Shortest time between two samples, in ns; so many samples make up a second.
const SAMPLE_NS: u64 = 100_000_000;
const SAMPLES: usize = 11;

/// Samples of the acknowledged offset. Takes constant memory, and constant time a sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rate {
    samples: VecDeque<(u64, u64)>,
}

impl Rate {
    /// Notes that everything up to offset `una` was acknowledged at `time_ns`.
    pub(crate) fn note(&mut self, time_ns: u64, una: u64) {
        let last_ns = self.samples.back().map(|(last_ns, _)| *last_ns);
        if last_ns.is_some_and(|last_ns| time_ns.saturating_sub(last_ns) < SAMPLE_NS) {
            return;
        }
        self.samples.push_back((time_ns, una));
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
    }

    /// Forgets the samples from before a pause, and begins again.
    pub(crate) fn restart(&mut self, time_ns: u64, una: u64) {
        self.samples.clear();
        self.note(time_ns, una);
    }

    /// Returns the rate from the oldest sample to `una` now, in bytes per second; 0 if the
    /// oldest sample is less than 10 ms old or there is none.
    pub(crate) fn bytes_per_s(&self, time_ns: u64, una: u64) -> u64 {
        let Some((from_ns, from)) = self.samples.front() else {
            return 0;
        };
        let took_ns = time_ns.saturating_sub(*from_ns);
        if took_ns < SAMPLE_NS / 10 {
            return 0;
        }
        let rate = u128::from(una.saturating_sub(*from)) * 1_000_000_000 / u128::from(took_ns);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_over_the_last_second() {
        let mut rate = Rate::default();
        assert_eq!(rate.bytes_per_s(0, 0), 0);
        for ms in 0..5000 {
            rate.note(ms * 1_000_000, ms * 1000);
        }
        assert_eq!(rate.bytes_per_s(5_000_000_000, 5_000_000), 1_000_000);
        // Nothing more is delivered.
        assert_eq!(rate.bytes_per_s(5_900_000_000, 5_000_000), 550_000);
        rate.restart(6_000_000_000, 5_000_000);
        assert_eq!(rate.bytes_per_s(6_100_000_000, 5_050_000), 500_000);
    }
}
