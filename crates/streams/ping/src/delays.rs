// SPDX-License-Identifier: MIT OR Apache-2.0
//! A distribution of delays, with three significant digits at every magnitude (HdrHistogram).

use hdrhistogram::Histogram;
use serde::Serialize;

/// Largest delay that is distinguished from larger ones: an hour.
pub const MOST_NS: u64 = 3_600_000_000_000;
/// Significant digits that the histogram keeps.
const DIGITS: u8 = 3;

/// The distribution of the packets' delays.
#[derive(Clone, Debug)]
pub struct Delays {
    /// `None` only if the constants above were invalid.
    histogram: Option<Histogram<u64>>,
    sum_ns: u128,
    least_ns: u64,
    worst: Option<Worst>,
}

/// The packet with the longest delay; the first of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Worst {
    pub sequence: u64,
    pub delay_ns: u64,
}

/// A distribution in numbers; as JSON, `docs/use/formats.md`, "Probes".
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Number of packets.
    pub count: u64,
    /// Smallest delay, exact.
    pub min_ns: u64,
    /// Mean delay, exact.
    pub mean_ns: f64,
    /// Median, to three digits, as all percentiles.
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    /// Largest delay, exact.
    pub max_ns: u64,
    /// Number of the packet with the largest delay.
    pub max_sequence: u64,
    /// Delays that occurred, to three digits, sorted by delay.
    pub histogram: Vec<Bin>,
}

/// The packets with about the same delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bin {
    /// The delay, within a thousandth.
    pub delay_ns: u64,
    /// Number of packets.
    pub count: u64,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            histogram: Histogram::new_with_bounds(1, MOST_NS, DIGITS).ok(),
            sum_ns: 0,
            least_ns: u64::MAX,
            worst: None,
        }
    }
}

impl Delays {
    /// Adds the delay of a packet. O(1).
    pub fn record(&mut self, sequence: u64, delay_ns: u64) {
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(delay_ns);
        }
        self.sum_ns += u128::from(delay_ns);
        self.least_ns = self.least_ns.min(delay_ns);
        if self.worst.is_none_or(|w| delay_ns > w.delay_ns) {
            self.worst = Some(Worst { sequence, delay_ns });
        }
    }

    /// Returns the distribution in numbers; `None` if there was no packet.
    pub fn summary(&self) -> Option<Summary> {
        let (histogram, worst) = (self.histogram.as_ref()?, self.worst?);
        // A bin may extend beyond the delays that occurred: the value is clamped to them.
        let at = |quantile| {
            let value = histogram.value_at_quantile(quantile);
            value.clamp(self.least_ns, worst.delay_ns)
        };
        let bin = |value: hdrhistogram::iterators::IterationValue<u64>| Bin {
            delay_ns: histogram.lowest_equivalent(value.value_iterated_to()),
            count: value.count_at_value(),
        };
        Some(Summary {
            count: histogram.len(),
            min_ns: self.least_ns,
            mean_ns: self.sum_ns as f64 / histogram.len() as f64,
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: worst.delay_ns,
            max_sequence: worst.sequence,
            histogram: histogram.iter_recorded().map(bin).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_known_distribution() {
        let mut delays = Delays::default();
        assert_eq!(delays.summary(), None);
        for n in 1..=1000 {
            delays.record(n, n * 1000);
        }
        let s = delays.summary().unwrap();
        assert_eq!(
            (s.count, s.min_ns, s.max_ns, s.max_sequence),
            (1000, 1000, 1_000_000, 1000)
        );
        assert!((s.mean_ns - 500_500.0).abs() < 1e-6);
        for (found, exact) in [
            (s.p50_ns, 500_000),
            (s.p99_ns, 990_000),
            (s.p999_ns, 999_000),
        ] {
            let found = found as f64;
            assert!(
                (found / f64::from(exact) - 1.0).abs() < 2e-3,
                "{found} {exact}"
            );
        }
        assert_eq!(s.histogram.iter().map(|b| b.count).sum::<u64>(), 1000);
    }

    #[test]
    fn the_ends_are_kept() {
        let mut delays = Delays::default();
        delays.record(0, 0);
        delays.record(1, u64::MAX);
        delays.record(2, u64::MAX);
        let s = delays.summary().unwrap();
        assert_eq!((s.min_ns, s.max_ns, s.max_sequence), (0, u64::MAX, 1));
    }
}
