// SPDX-License-Identifier: MIT OR Apache-2.0
//! Estimates the round-trip time and the retransmission timeout as Linux does
//! (Sarolahti and Kuznetsov, "Congestion Control in Linux TCP", USENIX 2002,
//! section 4): RFC 6298, but the variance falls slowly, once each window, and never
//! below the minimum timeout.

use units::clock::Span;

/// Upper bound of the timeout (TCP_RTO_MAX of Linux).
const RTO_MAX_NS: u64 = 120_000_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    /// Length of the unit in which the estimates are kept: a jiffy in the older kernels, whose
    /// divisions round down to it.
    unit_ns: u64,
    min_units: u64,
    rto_units: u64,
    max_units: u64,
    /// Eight times the smoothed round-trip time; 0 before the first measurement.
    srtt8_units: u64,
    /// Four times the smoothed deviation.
    mdev4_units: u64,
    /// Largest `mdev4_units` in this window.
    mdev4_max_units: u64,
    var_units: u64,
    /// Where the window ends, as a sequence number.
    window_end: u64,
    /// Minimum round-trip time of the connection, for RACK.
    min_rtt_ns: Option<u64>,
}

impl Rtt {
    pub fn new(min: Span, initial: Span, unit: Span) -> Rtt {
        let unit_ns = unit.as_ns().max(1);
        Rtt {
            unit_ns,
            min_units: min.as_ns() / unit_ns,
            rto_units: initial.as_ns() / unit_ns,
            max_units: RTO_MAX_NS / unit_ns,
            srtt8_units: 0,
            mdev4_units: 0,
            mdev4_max_units: 0,
            var_units: 0,
            window_end: 0,
            min_rtt_ns: None,
        }
    }

    /// Adds a measurement; `una` and `nxt` delimit windows.
    pub fn sample(&mut self, rtt: Span, una: u64, nxt: u64) {
        let rtt_ns = rtt.as_ns().max(1);
        self.min_rtt_ns = Some(self.min_rtt_ns.map_or(rtt_ns, |min| min.min(rtt_ns)));
        let rtt_units = (rtt_ns / self.unit_ns).max(1);
        if self.srtt8_units == 0 {
            self.srtt8_units = rtt_units * 8;
            self.mdev4_units = rtt_units * 2;
            self.var_units = self.mdev4_units.max(self.min_units);
            self.mdev4_max_units = self.var_units;
            self.window_end = nxt;
        } else {
            self.smooth(rtt_units, una, nxt);
        }
        self.rto_units = (self.srtt8_units / 8 + self.var_units).min(self.max_units);
    }

    fn smooth(&mut self, rtt_units: u64, una: u64, nxt: u64) {
        let srtt_units = self.srtt8_units / 8;
        let dev_units = self.mdev4_units / 4;
        let error_units = rtt_units.abs_diff(srtt_units);
        self.srtt8_units = self.srtt8_units - srtt_units + rtt_units;
        // A round-trip time far below the average says little about how long the
        // next may be: it changes the deviation by an eighth as much.
        let rise_units = if rtt_units < srtt_units && error_units > dev_units {
            (error_units - dev_units) / 8 + dev_units
        } else {
            error_units
        };
        self.mdev4_units = self.mdev4_units - dev_units + rise_units;
        if self.mdev4_units > self.mdev4_max_units {
            self.mdev4_max_units = self.mdev4_units;
            self.var_units = self.var_units.max(self.mdev4_max_units);
        }
        if una > self.window_end {
            if self.mdev4_max_units < self.var_units {
                self.var_units -= (self.var_units - self.mdev4_max_units) / 4;
            }
            self.window_end = nxt;
            self.mdev4_max_units = self.min_units;
        }
    }

    /// Doubles the timeout after the timer has expired.
    pub fn back_off(&mut self) {
        self.rto_units = (self.rto_units * 2).min(self.max_units);
    }

    pub fn rto(&self) -> Span {
        Span::from_ns(self.rto_units * self.unit_ns)
    }

    pub fn srtt(&self) -> Span {
        Span::from_ns(self.srtt8_units * self.unit_ns / 8)
    }

    /// Returns eight times the smoothed round-trip time, in units.
    pub fn srtt8_units(&self) -> u64 {
        self.srtt8_units
    }

    pub fn min_rtt(&self) -> Option<Span> {
        self.min_rtt_ns.map(Span::from_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn rtt() -> Rtt {
        let (min, initial) = (Span::from_ns(200 * MS), Span::from_ns(1000 * MS));
        Rtt::new(min, initial, Span::from_ns(1))
    }

    #[test]
    fn the_variance_part_is_never_below_the_minimum() {
        let mut rtt = rtt();
        for n in 0..1000 {
            rtt.sample(Span::from_ns(10 * MS), n * 10, n * 10 + 100);
        }
        assert_eq!(rtt.rto(), Span::from_ns(210 * MS));
        assert_eq!(rtt.srtt(), Span::from_ns(10 * MS));
    }

    #[test]
    fn the_timeout_doubles_until_the_next_measurement() {
        let mut rtt = rtt();
        rtt.sample(Span::from_ns(10 * MS), 0, 100);
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), Span::from_ns(840 * MS));
        for _ in 0..20 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), Span::from_ns(RTO_MAX_NS));
        rtt.sample(Span::from_ns(10 * MS), 50, 150);
        assert_eq!(rtt.rto(), Span::from_ns(210 * MS));
    }

    /// By hand, in jiffies of 1 ms: after 10.9 ms (counted as 10), 8 times the average is 80.
    /// 13.2 ms (13) make it 83: the average stays 10 ms, where nanoseconds would give more.
    #[test]
    fn a_jiffy_is_the_finest_that_an_older_kernel_knows() {
        let (min, initial) = (Span::from_ns(200 * MS), Span::from_ns(3000 * MS));
        let mut rtt = Rtt::new(min, initial, Span::from_ns(MS));
        rtt.sample(Span::from_ns(10_900_000), 0, 100);
        assert_eq!(rtt.rto(), Span::from_ns(210 * MS));
        rtt.sample(Span::from_ns(13_200_000), 50, 150);
        assert_eq!(rtt.srtt(), Span::from_ns(83 * MS / 8));
        assert_eq!(rtt.rto(), Span::from_ns(210 * MS));
    }
}
