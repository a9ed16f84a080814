// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chance for histories: the same seed, the same history.

use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng as _;

/// A stream of random numbers.
pub struct Rng(Pcg32);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(Pcg32::new(seed, 0x5eed))
    }

    /// A number below `bound`, which is above 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.0.next_u64()) * u128::from(bound);
        (product >> 64) as u64
    }

    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// Whether something happens that does so in `percent` of 100 cases.
    pub fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
