// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time that the analysis counts in: the capture's, where its clock was not set meanwhile.

use units::time::NS_PER_S;

/// Internal time of the first segment, in ns. It is above 0 because 0 stands for "never".
pub(crate) const EPOCH_NS: u64 = 1_000_000_000;
/// The latest time that counts, in ns: about two years after the first segment. A later time in
/// a hostile file must not overflow a sum.
const LATEST_NS: i64 = 1 << 56;
/// Between two packets of one capture lies less than this, else the clock was set: a packet of
/// the year 2063 among others of 2015 stops nobody for 48 years.
const SET_NS: u64 = 30 * 24 * 3600 * NS_PER_S;

/// Counts the time of a capture.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    start_ns: Option<u64>,
    /// The last packet's time in the capture, and what it counts as.
    last_ns: u64,
    counted_ns: i64,
    latest: u64,
}

/// A segment's internal time, and the latest of all segments before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: u64,
    pub(crate) latest: u64,
}

impl Clock {
    /// Returns the moment of the next segment, which the capture has at `time_ns`.
    pub(crate) fn moment(&mut self, time_ns: u64) -> Moment {
        let now = self.at(time_ns);
        let latest = self.latest;
        self.latest = latest.max(now);
        Moment { now, latest }
    }

    /// Returns the internal time of a packet that the capture has at `time_ns`.
    pub(crate) fn at(&mut self, time_ns: u64) -> u64 {
        if self.start_ns.is_none() {
            self.start_ns = Some(time_ns);
            (self.last_ns, self.counted_ns) = (time_ns, EPOCH_NS as i64);
        }
        let counted_ns = if time_ns.abs_diff(self.last_ns) > SET_NS {
            self.counted_ns
        } else {
            self.counted_ns + time_ns.wrapping_sub(self.last_ns) as i64
        };
        // What lies before the first packet counts as its time.
        (self.last_ns, self.counted_ns) = (time_ns, counted_ns.clamp(-LATEST_NS, LATEST_NS));
        u64::try_from(self.counted_ns).map_or(EPOCH_NS, |ns| ns.max(EPOCH_NS))
    }

    /// Returns the capture's time of its first packet.
    pub(crate) fn start_ns(&self) -> u64 {
        self.start_ns.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_NS: u64 = 24 * 3600 * NS_PER_S;

    #[test]
    fn one_packet_of_another_century_moves_nothing() {
        let mut clock = Clock::default();
        let year = 365 * DAY_NS;
        let begin = 45 * year;
        assert_eq!(clock.at(begin), EPOCH_NS);
        assert_eq!(clock.at(begin + 10), EPOCH_NS + 10);
        assert_eq!(clock.at(begin + 48 * year), EPOCH_NS + 10);
        assert_eq!(clock.at(begin + 30), EPOCH_NS + 10);
        assert_eq!(clock.at(begin + 50), EPOCH_NS + 30);
        // So does a first packet of 1970.
        let mut clock = Clock::default();
        assert_eq!(clock.at(0), EPOCH_NS);
        assert_eq!(clock.at(begin), EPOCH_NS);
        assert_eq!(clock.at(begin + 7), EPOCH_NS + 7);
    }

    #[test]
    fn packets_may_be_out_of_order_and_days_apart() {
        let mut clock = Clock::default();
        clock.at(1000 * DAY_NS);
        assert_eq!(clock.at(1007 * DAY_NS), EPOCH_NS + 7 * DAY_NS);
        assert_eq!(clock.at(1006 * DAY_NS), EPOCH_NS + 6 * DAY_NS);
        assert_eq!(clock.at(999 * DAY_NS), EPOCH_NS);
        assert_eq!(clock.at(1001 * DAY_NS), EPOCH_NS + DAY_NS);
    }

    #[test]
    fn no_time_overflows() {
        let mut clock = Clock::default();
        for n in 0..7_000 {
            assert!(clock.at(n * SET_NS) <= LATEST_NS as u64);
        }
        assert!(clock.at(u64::MAX) <= LATEST_NS as u64);
    }
}
