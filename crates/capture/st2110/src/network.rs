// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network compatibility model (SMPTE ST 2110-21, 6.6.1): a bucket that each packet enters, and
//! that is drained by one packet every T_DRAIN = T / (N β), with β = 1.1.
//!
//! The count is that of EBU LIST (`d21/c_calculator.cpp`): the times of draining run from the first
//! packet on, which a draining of the same instant takes out; later packets enter first, then what
//! has been drained since the packet before is taken out, and the bucket is never less than empty.
//! A stream of packets T_DRAIN apart has 0 therefore, a burst of n packets n - 1.

use std::collections::BTreeMap;

use units::time::PS_PER_S;

use crate::rate::Rate;

/// The scaling factor β, as a fraction (ST 2110-21, 6.6.1).
const DRAIN: (i128, i128) = (11, 10);

/// The bucket, packet by packet.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Packets drained in `per_ps`.
    packets: i128,
    per_ps: i128,
    first_ps: Option<i128>,
    drained: i128,
    level: u64,
    histogram: BTreeMap<u64, u64>,
}

impl Bucket {
    /// Makes an empty bucket for a sender of so many packets in each picture.
    pub fn new(rate: Rate, packets: u32) -> Self {
        Self {
            packets: i128::from(rate.num()) * i128::from(packets) * DRAIN.0,
            per_ps: i128::from(rate.den()) * i128::from(PS_PER_S) * DRAIN.1,
            first_ps: None,
            drained: 0,
            level: 0,
            histogram: BTreeMap::new(),
        }
    }

    /// Adds a packet and returns Cinst. Packets come in order of time.
    pub fn add(&mut self, time_ps: i128) -> u64 {
        match self.first_ps {
            None => self.first_ps = Some(time_ps),
            Some(first_ps) => {
                let passed = time_ps.saturating_sub(first_ps).max(0);
                let drained = passed.saturating_mul(self.packets) / self.per_ps;
                let taken = u64::try_from(drained - self.drained).unwrap_or(0);
                self.level = (self.level + 1).saturating_sub(taken);
                self.drained = drained.max(self.drained);
            }
        }
        *self.histogram.entry(self.level).or_default() += 1;
        self.level
    }

    /// Returns the largest Cinst.
    pub fn max(&self) -> u64 {
        self.histogram.keys().next_back().copied().unwrap_or(0)
    }

    /// Returns the number of packets by Cinst.
    pub fn histogram(&self) -> &BTreeMap<u64, u64> {
        &self.histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 100 packets a second, T_DRAIN = 1/110 s = 9.0909… ms.
    #[test]
    fn packets_by_hand() {
        let mut bucket = Bucket::new(Rate::new(10, 1).unwrap(), 10);
        let ms = |ms: i128| ms * 1_000_000_000;
        let levels: Vec<_> = [0, 0, 0, 9, 10, 18, 19, 100, 100]
            .map(|at| bucket.add(ms(at)))
            .to_vec();
        // Drainings at 9.09, 18.18, 27.27 ms and on: 0 until 9 ms, 1 at 10 and 18, 2 at 19, 11 at
        // 100.
        assert_eq!(levels, [0, 1, 2, 3, 3, 4, 4, 0, 1]);
        assert_eq!(bucket.max(), 4);
        assert_eq!(bucket.histogram().values().sum::<u64>(), 9);
    }

    #[test]
    fn a_draining_at_the_very_instant_counts() {
        // 1100 packets are drained in a second of 1000: the first at 1/1100 s. At 1/11 s, which no
        // picosecond is, it is the hundredth.
        let mut bucket = Bucket::new(Rate::new(1, 1).unwrap(), 1000);
        bucket.add(0);
        for _ in 0..200 {
            bucket.add(0);
        }
        let before = 90_909_090_909;
        assert_eq!(bucket.add(before), 201 - 99);
        assert_eq!(bucket.add(before + 1), 201 + 1 - 100);
    }
}
