// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reproducible random numbers: PCG XSH RR 64/32, whose sequence its crate keeps
//! the same in every version. Sampling in integers is done here, so that a new
//! version of another crate does not change a result (docs/decisions/simulator.md,
//! "Chance in the simulator").

use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng as _;
use units::clock::Span;

/// A stream of random numbers. Streams of one seed are independent of each other:
/// adding something to a network does not change the numbers that the other parts
/// draw.
#[derive(Clone, Debug)]
pub struct Rng(Pcg32);

impl Rng {
    /// Makes stream number `stream` of a seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(Pcg32::new(seed, stream))
    }

    /// Returns a number uniform in 0 to `bound - 1`; 0 if `bound` is 0. It is
    /// computed by multiplication; the relative bias against the least likely value
    /// is below `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.0.next_u64()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// Returns true with probability `chance`.
    pub fn happens(&mut self, chance: Chance) -> bool {
        // No number is drawn for a chance of 0, so that an option set to 0 is the
        // same as no option.
        chance.0 > 0 && u64::from(self.0.next_u32()) < chance.0
    }

    /// Returns a span uniform in zero to just below `span`.
    pub fn within(&mut self, span: Span) -> Span {
        Span::from_ps(self.below(span.as_ps()))
    }
}

/// A probability, in parts of 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chance(u64);

impl Chance {
    /// Probability 0.
    pub const NEVER: Self = Self(0);

    /// Returns the probability of `parts` in a million, rounded to the nearest part
    /// of 2^32; values above a million count as a million.
    pub fn per_million(parts: u64) -> Self {
        Self(((parts.min(1_000_000) << 32) + 500_000) / 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These are the first numbers of two streams. Every later version must draw the same, or
    /// results change.
    #[test]
    fn the_first_numbers_never_change() {
        let draw = |stream| {
            let mut rng = Rng::new(42, stream);
            [(); 3].map(|()| rng.below(1_000_000))
        };
        assert_eq!(draw(0), [755_355, 210_376, 633_842]);
        assert_ne!(draw(1), draw(0));
    }

    #[test]
    fn probabilities() {
        let mut rng = Rng::new(1, 0);
        assert!((0..1000).all(|_| !rng.happens(Chance::NEVER)));
        assert!((0..1000).all(|_| rng.happens(Chance::per_million(1_000_000))));
        let count = (0..1_000_000)
            .filter(|_| rng.happens(Chance::per_million(10_000)))
            .count();
        // 10000 are expected, with a standard deviation of 100.
        assert!((9_500..10_500).contains(&count), "{count}");
        assert_eq!(rng.below(0), 0);
        assert!((0..1000).all(|_| rng.below(3) < 3));
    }
}
