// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures gaps: the distance between neighbouring frames, start to start.

use serde::{Deserialize, Serialize};
use units::rounding::thousandths;
use units::time::PS_PER_S;

/// Returns a time in byte times of a line of `rate_bps`, to a thousandth.
pub fn byte_times(ps: u64, rate_bps: u64) -> f64 {
    thousandths(
        u128::from(ps) * u128::from(rate_bps),
        8 * u128::from(PS_PER_S),
    )
}

/// Computes exact order statistics of times. It keeps every value: 8 bytes each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    values_ps: Vec<u64>,
    sorted: bool,
}

impl Distribution {
    pub fn push(&mut self, value_ps: u64) {
        self.values_ps.push(value_ps);
        self.sorted = false;
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.values_ps.len()
    }

    /// Returns whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.values_ps.is_empty()
    }

    fn sorted(&mut self) -> &[u64] {
        if !self.sorted {
            self.values_ps.sort_unstable();
            self.sorted = true;
        }
        &self.values_ps
    }

    /// Returns the nearest-rank percentile: the smallest value that at least `percent` of all
    /// values do not exceed. 0 gives the smallest value, 100 the largest. Sorts on first use.
    pub fn percentile_ps(&mut self, percent: u8) -> Option<u64> {
        let sorted = self.sorted();
        let rank = (sorted.len() as u128 * u128::from(percent.min(100))).div_ceil(100);
        let index = usize::try_from(rank).ok()?.saturating_sub(1);
        sorted.get(index).copied()
    }

    /// Returns the values in ns, rounded down to four digits, each with its count: at most
    /// 9000 values in a tenfold range. Sorts on first use.
    pub fn counts_ns(&mut self) -> Vec<(u64, u64)> {
        let mut counts: Vec<(u64, u64)> = Vec::new();
        for ps in self.sorted() {
            let ns = ps / (PS_PER_S / 1_000_000_000);
            let unit = 10u64.pow(ns.checked_ilog10().unwrap_or(0).saturating_sub(3));
            let ns = ns / unit * unit;
            match counts.last_mut() {
                Some((last, count)) if *last == ns => *count += 1,
                _ => counts.push((ns, 1)),
            }
        }
        counts
    }

    /// Returns the counts of values in bins whose width is a fixed share of their begin; bins
    /// without a value are left out. Empty if the line rate is not known. Sorts on first use.
    pub fn histogram(&mut self, rate_bps: u64) -> Vec<Bin> {
        let mut bins: Vec<Bin> = Vec::new();
        if rate_bps == 0 {
            return bins;
        }
        for run in self.sorted().chunk_by(|a, b| a == b) {
            let count = run.len() as u64;
            let bin = bin_of(byte_times(run[0], rate_bps));
            match bins.last_mut() {
                Some(last) if last.bin == bin => last.count += count,
                _ => bins.push(Bin { bin, count }),
            }
        }
        bins
    }
}

/// One bin of a histogram of gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// Index of the bin: it begins at `10^(bin / BINS_PER_DECADE)` byte times and ends where
    /// the next bin begins.
    pub bin: i32,
    /// Number of gaps in the bin.
    pub count: u64,
}

/// Bins in a tenfold range of gaps: each is 2.3 % wide, less than 36 bytes for two full frames
/// back to back.
pub const BINS_PER_DECADE: u32 = 100;

impl Bin {
    /// Returns the begin of the bin in byte times.
    pub fn begin_bytes(self) -> f64 {
        10f64.powf(f64::from(self.bin) / f64::from(BINS_PER_DECADE))
    }
}

fn bin_of(bytes: f64) -> i32 {
    // Gaps below one byte time (a coarse clock) share the lowest bin.
    (bytes.max(1.0).log10() * f64::from(BINS_PER_DECADE)).floor() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn distribution(values: &[u64]) -> Distribution {
        let mut d = Distribution::default();
        values.iter().for_each(|&v| d.push(v));
        d
    }

    #[test]
    fn nearest_rank_by_hand() {
        let mut d = distribution(&[50, 15, 40, 20, 35]);
        for (percent, expected) in [
            (0, 15),
            (5, 15),
            (20, 15),
            (21, 20),
            (30, 20),
            (40, 20),
            (50, 35),
            (99, 50),
            (100, 50),
        ] {
            assert_eq!(d.percentile_ps(percent), Some(expected), "{percent} %");
        }
        d.push(1);
        assert_eq!(d.percentile_ps(0), Some(1));
        assert_eq!(distribution(&[]).percentile_ps(50), None);
        assert_eq!(distribution(&[7]).percentile_ps(1), Some(7));
    }

    #[test]
    fn four_digits_in_ns() {
        let mut d = distribution(&[0, 999, 12_345_678, 12_345_999, 12_350_000, 1_234_567_890]);
        let counts = [(0, 2), (12_340, 2), (12_350, 1), (1_234_000, 1)];
        assert_eq!(d.counts_ns(), counts);
    }

    #[test]
    fn byte_times_of_a_line() {
        assert_eq!(byte_times(12_304_000, 1_000_000_000), 1538.0);
        assert_eq!(byte_times(12_304_000, 10_000_000_000), 15_380.0);
        assert_eq!(byte_times(1, 1_000_000_000), 0.0);
        assert_eq!(byte_times(4, 1_000_000_000), 0.001);
        // The largest time is 213 days; at 400 Gbit/s its byte times overflow nothing.
        assert_eq!(
            byte_times(u64::MAX, 400_000_000_000),
            922_337_203_685_477_580.8
        );
    }

    #[test]
    fn histogram_bins() {
        // 1 Gbit/s: 8000 ps a byte.
        let gaps = [
            1000 * 8000,
            1000 * 8000,
            1023 * 8000,
            1024 * 8000,
            10_000 * 8000,
            0,
        ];
        let bins = distribution(&gaps).histogram(1_000_000_000);
        let counts: Vec<_> = bins.iter().map(|b| (b.bin, b.count)).collect();
        assert_eq!(counts, [(0, 1), (300, 3), (301, 1), (400, 1)]);
        assert_eq!(bins[1].begin_bytes(), 1000.0);
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        #[test]
        fn percentile_is_the_definition(values in proptest::collection::vec(0u64..50, 1..60), percent in 0u8..=100) {
            let found = distribution(&values).percentile_ps(percent).unwrap();
            let share = |v: u64| values.iter().filter(|&&x| x <= v).count() * 100;
            prop_assert!(share(found) >= usize::from(percent) * values.len());
            let smaller = values.iter().copied().filter(|&v| v < found).max();
            prop_assert!(smaller.is_none_or(|v| share(v) < usize::from(percent) * values.len()));
        }
    }
}
