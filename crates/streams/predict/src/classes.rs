// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifies measured delays by whole periods of lateness.

use serde::Serialize;

use crate::Error;

/// Number of packets with one delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Delay {
    pub delay_ns: u64,
    /// Number of packets that had it.
    pub count: u64,
}

/// Number of packets by lateness in periods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Classes {
    /// Delay at which lateness begins to count, ns.
    pub base_ns: u64,
    /// Packets late by 0, 1, … periods, up to the number of stages.
    pub counts: Vec<u64>,
    /// Packets with less delay than `base_ns`; `counts[0]` includes them.
    pub early: u64,
    /// Packets later than the number of stages explains; no class includes them.
    pub beyond: u64,
}

impl Classes {
    /// Divides delays into classes of one period each. The first class begins at `base_ns`, by
    /// default at the least delay, because waiting only adds to it. A packet in class k has
    /// waited k periods and part of another. O(n).
    ///
    /// # Errors
    /// If there are no delays, or the period is 0.
    pub fn new(
        delays: &[Delay],
        period_ns: u64,
        base_ns: Option<u64>,
        stages: usize,
    ) -> Result<Self, Error> {
        if period_ns == 0 {
            return Err(Error::Period);
        }
        let present = || delays.iter().filter(|d| d.count > 0);
        let nothing = Error::Nothing { packets: 0, stages };
        let least_ns = present().map(|d| d.delay_ns).min().ok_or(nothing)?;
        let base_ns = base_ns.unwrap_or(least_ns);
        let mut classes = Self {
            base_ns,
            counts: vec![0; stages.saturating_add(1)],
            early: 0,
            beyond: 0,
        };
        for delay in present() {
            let class = delay.delay_ns.saturating_sub(base_ns) / period_ns;
            let cell = usize::try_from(class)
                .ok()
                .and_then(|class| classes.counts.get_mut(class));
            let cell = cell.unwrap_or(&mut classes.beyond);
            *cell = cell.saturating_add(delay.count);
            if delay.delay_ns < base_ns {
                classes.early = classes.early.saturating_add(delay.count);
            }
        }
        Ok(classes)
    }

    /// Returns the number of packets in all classes.
    pub fn packets(&self) -> u64 {
        self.counts.iter().fold(0, |n, c| n.saturating_add(*c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(of: &[(u64, u64)]) -> Vec<Delay> {
        of.iter()
            .map(|&(delay_ns, count)| Delay { delay_ns, count })
            .collect()
    }

    #[test]
    fn lateness_counts_from_the_least_delay() {
        let all = delays(&[(7, 3), (16, 1), (17, 2), (36, 1), (47, 4), (5, 0)]);
        let classes = Classes::new(&all, 10, None, 3).unwrap();
        assert_eq!((classes.base_ns, classes.beyond), (7, 4));
        assert_eq!(classes.counts, [4, 2, 1, 0]);
        assert_eq!(classes.packets(), 7);
    }

    #[test]
    fn lateness_counts_from_a_given_base() {
        let classes = Classes::new(&delays(&[(7, 3), (19, 1)]), 10, Some(9), 1).unwrap();
        assert_eq!((classes.early, classes.counts), (3, vec![3, 1]));
    }

    #[test]
    fn no_delays_and_no_period_have_no_classes() {
        assert!(Classes::new(&[], 10, None, 1).is_err());
        assert_eq!(
            Classes::new(&delays(&[(1, 1)]), 0, None, 1),
            Err(Error::Period)
        );
    }
}
