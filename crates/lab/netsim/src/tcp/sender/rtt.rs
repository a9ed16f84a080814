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
    min_ns: u64,
    rto_ns: u64,
    /// Eight times the smoothed round-trip time; 0 before the first measurement.
    srtt8_ns: u64,
    /// Four times the smoothed deviation.
    mdev4_ns: u64,
    /// Largest `mdev4_ns` in this window.
    mdev4_max_ns: u64,
    var_ns: u64,
    /// Where the window ends, as a sequence number.
    window_end: u64,
    /// Minimum round-trip time of the connection, for RACK.
    min_rtt_ns: Option<u64>,
}

impl Rtt {
    pub fn new(min: Span, initial: Span) -> Rtt {
        Rtt {
            min_ns: min.as_ns(),
            rto_ns: initial.as_ns(),
            srtt8_ns: 0,
            mdev4_ns: 0,
            mdev4_max_ns: 0,
            var_ns: 0,
            window_end: 0,
            min_rtt_ns: None,
        }
    }

    /// Adds a measurement; `una` and `nxt` delimit windows.
    pub fn sample(&mut self, rtt: Span, una: u64, nxt: u64) {
        let rtt_ns = rtt.as_ns().max(1);
        self.min_rtt_ns = Some(self.min_rtt_ns.map_or(rtt_ns, |min| min.min(rtt_ns)));
        if self.srtt8_ns == 0 {
            self.srtt8_ns = rtt_ns * 8;
            self.mdev4_ns = rtt_ns * 2;
            self.var_ns = self.mdev4_ns.max(self.min_ns);
            self.mdev4_max_ns = self.var_ns;
            self.window_end = nxt;
        } else {
            self.smooth(rtt_ns, una, nxt);
        }
        self.rto_ns = (self.srtt8_ns / 8 + self.var_ns).min(RTO_MAX_NS);
    }

    fn smooth(&mut self, rtt_ns: u64, una: u64, nxt: u64) {
        let srtt_ns = self.srtt8_ns / 8;
        let dev_ns = self.mdev4_ns / 4;
        let error_ns = rtt_ns.abs_diff(srtt_ns);
        self.srtt8_ns = self.srtt8_ns - srtt_ns + rtt_ns;
        // A round-trip time far below the average says little about how long the
        // next may be: it changes the deviation by an eighth as much.
        let rise_ns = if rtt_ns < srtt_ns && error_ns > dev_ns {
            (error_ns - dev_ns) / 8 + dev_ns
        } else {
            error_ns
        };
        self.mdev4_ns = self.mdev4_ns - dev_ns + rise_ns;
        if self.mdev4_ns > self.mdev4_max_ns {
            self.mdev4_max_ns = self.mdev4_ns;
            self.var_ns = self.var_ns.max(self.mdev4_max_ns);
        }
        if una > self.window_end {
            if self.mdev4_max_ns < self.var_ns {
                self.var_ns -= (self.var_ns - self.mdev4_max_ns) / 4;
            }
            self.window_end = nxt;
            self.mdev4_max_ns = self.min_ns;
        }
    }

    /// Doubles the timeout after the timer has expired.
    pub fn back_off(&mut self) {
        self.rto_ns = (self.rto_ns * 2).min(RTO_MAX_NS);
    }

    pub fn rto(&self) -> Span {
        Span::from_ns(self.rto_ns)
    }

    pub fn srtt(&self) -> Span {
        Span::from_ns(self.srtt8_ns / 8)
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
        Rtt::new(Span::from_ns(200 * MS), Span::from_ns(1000 * MS))
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
}
