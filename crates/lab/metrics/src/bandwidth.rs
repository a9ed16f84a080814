// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures bandwidth over time, in equal intervals.

use units::time::duration_ps;

/// Most intervals. More would help no reader, and the limit keeps a stray timestamp from using
/// up the memory.
pub const MAX_INTERVALS: u64 = 1 << 22;

/// Counts the bytes in each interval. A frame's bytes are divided evenly over its time on the
/// wire (its wire length at line rate), and so between the intervals that it touches, in whole
/// bytes: the sum over all intervals is exact.
///
/// One pass; 8 bytes an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    from_ps: u64,
    interval_ps: u64,
    /// Line rate; 0 if not known: a frame then counts where it starts.
    rate_bps: u64,
    bytes: Vec<u64>,
}

impl Bandwidth {
    /// Creates counters over `from_ps..to_ps` on a line of `rate_bps` (0 if not known). The
    /// last interval is whole, even if it ends after `to_ps`.
    ///
    /// `None` for an interval of 0 or more than [`MAX_INTERVALS`].
    pub fn new(from_ps: u64, to_ps: u64, interval_ps: u64, rate_bps: u64) -> Option<Self> {
        let length = to_ps.saturating_sub(from_ps);
        if interval_ps == 0 || length.div_ceil(interval_ps) > MAX_INTERVALS {
            return None;
        }
        let intervals = usize::try_from(length.div_ceil(interval_ps)).ok()?;
        Some(Self {
            from_ps,
            interval_ps,
            rate_bps,
            bytes: vec![0; intervals],
        })
    }

    /// Counts `bytes` of a frame that starts at `start_ps` and takes `wire_bytes` on the wire.
    /// Bytes outside the range are left out.
    pub fn push(&mut self, start_ps: u64, bytes: u32, wire_bytes: u32) {
        let length = duration_ps(wire_bytes, self.rate_bps).unwrap_or(0);
        let end_ps = start_ps.saturating_add(length);
        let (bytes, mut done) = (u64::from(bytes), 0);
        // Whole bytes sent before t. Because they are rounded down here, the parts add up.
        let gone = |t: u64| {
            if t >= end_ps {
                return bytes;
            }
            let part = u128::from(bytes) * u128::from(t.saturating_sub(start_ps));
            u64::try_from(part / u128::from(length.max(1))).unwrap_or(bytes)
        };
        let mut at = start_ps;
        if at < self.from_ps {
            done = gone(self.from_ps);
            at = self.from_ps;
        }
        while done < bytes {
            let index = (at - self.from_ps) / self.interval_ps;
            let next = self
                .from_ps
                .saturating_add((index + 1).saturating_mul(self.interval_ps));
            let Some(slot) = usize::try_from(index)
                .ok()
                .and_then(|i| self.bytes.get_mut(i))
            else {
                return;
            };
            let upto = gone(next);
            *slot += upto - done;
            done = upto;
            at = next;
        }
    }

    /// Returns the bytes in each interval.
    pub fn bytes(&self) -> &[u64] {
        &self.bytes
    }

    /// Returns the bytes in each interval as an owned vector.
    pub fn into_bytes(self) -> Vec<u64> {
        self.bytes
    }
}

/// Returns an interval that divides `length_ps` into about `wanted` parts: 1, 2 or 5 times a
/// power of ten, and never 0.
pub fn even_interval_ps(length_ps: u64, wanted: u64) -> u64 {
    let least = (length_ps / wanted.max(1)).max(1);
    let mut step = 1u64;
    loop {
        for factor in [1, 2, 5] {
            match step.checked_mul(factor) {
                Some(interval) if interval >= least => return interval,
                Some(_) => {}
                None => return least,
            }
        }
        let Some(next) = step.checked_mul(10) else {
            return least;
        };
        step = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_over_a_border_is_divided() {
        // At 8 Gbit/s a byte takes 1000 ps, so 100 bytes take from 950 to 1050 ns.
        let mut b = Bandwidth::new(0, 3_000_000, 1_000_000, 8_000_000_000).unwrap();
        b.push(950_000, 100, 100);
        assert_eq!(b.bytes(), [50, 50, 0]);
        b.push(2_990_000, 50, 100);
        assert_eq!(b.bytes(), [50, 50, 5]);
        b.push(9_000_000, 50, 100);
        assert_eq!(b.bytes(), [50, 50, 5]);
    }

    #[test]
    fn a_frame_may_be_longer_than_intervals_and_begin_before_them() {
        let mut b = Bandwidth::new(1000, 6000, 1000, 8_000_000_000).unwrap();
        b.push(0, 4, 4);
        assert_eq!(b.bytes(), [1, 1, 1, 0, 0]);
    }

    #[test]
    fn without_a_line_rate_a_frame_counts_at_its_start() {
        let mut b = Bandwidth::new(0, 20, 10, 0).unwrap();
        b.push(9, 100, 120);
        b.push(10, 1, 84);
        assert_eq!(b.bytes(), [100, 1]);
    }

    #[test]
    fn intervals_that_do_not_fit_are_rejected() {
        assert_eq!(Bandwidth::new(0, 10, 0, 1), None);
        assert_eq!(Bandwidth::new(0, u64::MAX, 1, 1), None);
        assert!(Bandwidth::new(5, 5, 1, 1).unwrap().bytes().is_empty());
    }

    #[test]
    fn even_intervals() {
        let s = units::time::PS_PER_S;
        assert_eq!(even_interval_ps(s, 400), 5_000_000_000);
        assert_eq!(even_interval_ps(20 * s, 400), 50_000_000_000);
        assert_eq!(even_interval_ps(0, 400), 1);
        assert!(even_interval_ps(u64::MAX, 1) >= u64::MAX / 2);
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        #[test]
        fn intervals_add_up_to_all_bytes(
            frames in proptest::collection::vec((0u64..90_000_000, 1u32..9000), 0..50),
            interval in 100_000u64..20_000_000,
            rate in 1_000_000_000u64..100_000_000_000,
        ) {
            let mut b = Bandwidth::new(0, 400_000_000, interval, rate).unwrap();
            frames.iter().for_each(|&(t, n)| b.push(t, n, n + 24));
            let sum: u64 = frames.iter().map(|f| u64::from(f.1)).sum();
            prop_assert_eq!(b.bytes().iter().sum::<u64>(), sum);
        }
    }
}
