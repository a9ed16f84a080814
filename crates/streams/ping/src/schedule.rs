// SPDX-License-Identifier: MIT OR Apache-2.0
//! The times at which probes are due. The schedule is an open loop: packet n is due at start + n x
//! period, whatever happened to those before it, so that a slow answer delays no later probe and
//! hides none (coordinated omission, G. Tene).

/// The due times of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Due time of the first probe.
    pub start_ns: u64,
    /// Time from one probe to the next.
    pub period_ns: u64,
    /// Number of probes; `None`: unlimited.
    pub count: Option<u64>,
}

impl Schedule {
    /// Returns the time at which a packet is due; `None` after the last, and beyond the clock's
    /// range.
    pub fn due_ns(&self, sequence: u64) -> Option<u64> {
        if self.count.is_some_and(|count| sequence >= count) {
            return None;
        }
        let after_ns = sequence.checked_mul(self.period_ns)?;
        self.start_ns.checked_add(after_ns)
    }

    /// Returns the number of packets that are due within `duration_ns`, the first at its beginning.
    pub fn count_within(duration_ns: u64, period_ns: u64) -> u64 {
        match period_ns {
            0 => u64::MAX,
            period => duration_ns.div_ceil(period),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_probe_is_due_by_its_number() {
        let schedule = Schedule {
            start_ns: 5,
            period_ns: 10,
            count: Some(3),
        };
        let due: Vec<_> = (0..5).map(|n| schedule.due_ns(n)).collect();
        assert_eq!(due, [Some(5), Some(15), Some(25), None, None]);
        let endless = Schedule {
            count: None,
            ..schedule
        };
        assert_eq!(endless.due_ns(u64::MAX), None);
        assert_eq!(Schedule::count_within(1000, 10), 100);
        assert_eq!(Schedule::count_within(1001, 10), 101);
        assert_eq!(Schedule::count_within(1, 0), u64::MAX);
    }
}
