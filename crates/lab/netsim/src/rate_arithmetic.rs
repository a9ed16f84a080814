// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts bytes to the time they take at a rate, without rounding.
//!
//! Amounts are in units of one picosecond at one bit per second, 10^-12 bit: a byte
//! is 8 x 10^12 of them whatever the rate, and a time in picoseconds times the rate
//! in bit/s is the number of units sent in that time.

use units::clock::{Span, Time};

/// One byte, in units of 10^-12 bit.
pub const BYTE: u128 = 8_000_000_000_000;

/// An instant and the fraction of a picosecond, `frac / rate_bps`, after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instant {
    /// The instant, rounded down to picoseconds.
    pub time: Time,
    /// Numerator of the fraction; below the rate.
    pub frac: u64,
}

impl Instant {
    /// Returns the instant `bytes` later at `rate_bps`, which must be above 0 and
    /// the same in every call.
    pub fn after(self, bytes: u32, rate_bps: u64) -> Self {
        // A frame of up to 2 MB fits 64 bits, which divide in half the time.
        let (ps, frac) = match (u64::from(bytes) * 8).checked_mul(1_000_000_000_000) {
            Some(units) if units < u64::MAX - self.frac => {
                let units = units + self.frac;
                (units / rate_bps, units % rate_bps)
            }
            _ => {
                let units = u128::from(bytes) * BYTE + u128::from(self.frac);
                let (ps, frac) = (units / u128::from(rate_bps), units % u128::from(rate_bps));
                // The remainder is below the rate.
                (u64::try_from(ps).unwrap_or(u64::MAX), frac as u64)
            }
        };
        Self {
            time: self.time + Span::from_ps(ps),
            frac,
        }
    }

    /// Returns this instant, or `now` if that is later.
    pub fn or_now(self, now: Time) -> Self {
        if self.time < now {
            Self { time: now, frac: 0 }
        } else {
            self
        }
    }
}

/// Returns how long `units` take at `rate_bps`, rounded up; at rate 0, the longest
/// span.
pub fn span_up(units: u128, rate_bps: u64) -> Span {
    let ps = match rate_bps {
        0 => u128::MAX,
        rate => units.div_ceil(rate.into()),
    };
    Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

/// A token bucket, filled at a rate, that may be in debt.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    rate_bps: u64,
    depth: i128,
    tokens: i128,
    filled: Time,
}

impl Bucket {
    /// Makes a bucket that is full at time 0.
    pub fn full(rate_bps: u64, depth_bytes: u64) -> Self {
        let depth = i128::from(depth_bytes) * BYTE as i128;
        Self {
            rate_bps,
            depth,
            tokens: depth,
            filled: Time::START,
        }
    }

    /// Adds the tokens that have accumulated until `now`.
    pub fn fill(&mut self, now: Time) {
        let span = now.since(self.filled);
        let come = i128::from(span.as_ps()) * i128::from(self.rate_bps);
        self.tokens = self.tokens.saturating_add(come).min(self.depth);
        self.filled = self.filled.max(now);
    }

    /// Returns whether the bucket holds at least `bytes`, as of the last fill.
    pub fn has(&self, bytes: u32) -> bool {
        self.tokens >= units(bytes)
    }

    /// Removes tokens for `bytes`; the bucket goes into debt if it holds fewer.
    pub fn take(&mut self, bytes: u32) {
        self.tokens -= units(bytes);
    }

    /// Removes the tokens that come in a time; the bucket goes into debt if it holds fewer.
    pub fn take_span(&mut self, span: Span) {
        self.tokens -= i128::from(span.as_ps()) * i128::from(self.rate_bps);
    }

    /// Returns when the bucket will hold `bytes` if nothing is taken meanwhile; the
    /// end of time if it never holds as many.
    pub fn when(&self, bytes: u32) -> Time {
        let lacking = units(bytes) - self.tokens;
        if units(bytes) > self.depth {
            return Time::from_ps(u64::MAX);
        }
        self.filled + span_up(u128::try_from(lacking).unwrap_or(0), self.rate_bps)
    }

    /// Changes the rate and the depth from `now` on.
    pub fn change(&mut self, rate_bps: u64, depth_bytes: u64, now: Time) {
        self.fill(now);
        self.rate_bps = rate_bps;
        self.depth = i128::from(depth_bytes) * BYTE as i128;
        self.tokens = self.tokens.min(self.depth);
    }
}

fn units(bytes: u32) -> i128 {
    i128::from(bytes) * BYTE as i128
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_at_usual_rates() {
        for (bytes, rate_bps, expected) in [
            (1538, 1_000_000_000, (12_304_000, 0)),
            (84, 10_000_000_000, (67_200, 0)),
            (1, 100_000_000_000, (80, 0)),
            (1, 3, (2_666_666_666_666, 2)),
            (u32::MAX, 1_000_000_000_000, (34_359_738_360, 0)),
        ] {
            let end = Instant::default().after(bytes, rate_bps);
            assert_eq!((end.time.as_ps(), end.frac), expected, "{bytes} {rate_bps}");
        }
    }

    #[test]
    fn buckets_fill_to_their_depth() {
        let mut bucket = Bucket::full(8_000, 1000); // a byte in a millisecond
        bucket.take(1000);
        assert!(!bucket.has(1));
        assert_eq!(bucket.when(1), Time::from_ps(1_000_000_000));
        assert_eq!(bucket.when(1001), Time::from_ps(u64::MAX));
        bucket.fill(Time::from_ps(999_999_999));
        assert!(!bucket.has(1));
        bucket.fill(Time::from_ps(1_000_000_000));
        assert!(bucket.has(1) && !bucket.has(2));
        bucket.take(2);
        assert_eq!(bucket.when(0), Time::from_ps(2_000_000_000));
        bucket.fill(Time::from_ps(u64::MAX / 2));
        assert!(bucket.has(1000) && !bucket.has(1001));
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        /// After a million frames the sum is that of one division.
        #[test]
        fn nothing_is_rounded_on_the_way(rate_bps in 1_000u64..1_000_000_000_000, bytes in proptest::collection::vec(1u32..100_000, 1..200)) {
            let mut at = Instant::default();
            for b in &bytes {
                at = at.after(*b, rate_bps);
            }
            let units: u128 = bytes.iter().map(|b| u128::from(*b) * BYTE).sum();
            prop_assert_eq!(u128::from(at.time.as_ps()), units / u128::from(rate_bps));
            prop_assert_eq!(u128::from(at.frac), units % u128::from(rate_bps));
        }
    }
}
