// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chance with a seed: the same seed and stream give the same numbers in every version.

use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng as _;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Chance(Pcg32);

impl Chance {
    /// Makes stream number `stream` of `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(Pcg32::new(seed, stream))
    }

    /// Returns a number uniform in 0 to `bound - 1`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.0.next_u64()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// Returns a number uniform in `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// Returns true with a probability of `parts` in a million.
    pub fn happens(&mut self, parts: u64) -> bool {
        parts > 0 && self.below(1_000_000) < parts
    }

    /// Returns a number from `least` to `most` whose logarithm is about uniform: small and large
    /// values are drawn alike.
    pub fn scaled(&mut self, least: u64, most: u64) -> u64 {
        let low = least.max(1);
        let doublings = u64::from((most.max(low) / low).ilog2()) + 1;
        let shift = self.below(doublings);
        let base = low << shift;
        self.between(base, (base * 2 - 1).min(most.max(base)))
    }

    /// Returns one of `choices`, or `None` if there are none.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        let index = usize::try_from(self.below(choices.len() as u64)).ok()?;
        choices.get(index).copied()
    }
}
