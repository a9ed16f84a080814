// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures round trips as seen from the capture, and the timeouts that follow from them.

use units::time::NS_PER_MS;

/// Least variance part of Linux's timeout.
const RTO_MIN_NS: u64 = 200 * NS_PER_MS;
/// Longest timeout of Linux.
const RTO_MAX_NS: u64 = 120_000 * NS_PER_MS;
/// Timeout before the first sample (RFC 6298, 2.1).
const RTO_FIRST_NS: u64 = 1000 * NS_PER_MS;
/// Timers, in ms, after which known systems acknowledge at the latest, with a margin for what a
/// host adds: Linux's 40 ms are up to 50 where its clock ticks every 10 ms.
const DELAYED_ACK_MS: [std::ops::Range<u64>; 4] = [38..52, 98..110, 195..215, 490..520];

/// Returns whether an acknowledgement that was held back for so long, beside the round trip,
/// fits a delayed-acknowledgement timer.
pub fn is_delayed_ack(held_ns: u64) -> bool {
    let held_ms = held_ns / NS_PER_MS;
    DELAYED_ACK_MS.iter().any(|timer| timer.contains(&held_ms))
}

/// The estimator of RFC 6298, as Linux has it: the variance part is at least 200 ms, so the
/// timeout is the smoothed round trip plus at least that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Smoothed {
    pub(crate) samples: u64,
    pub(crate) min_ns: u64,
    pub(crate) max_ns: u64,
    pub(crate) last_ns: u64,
    srtt_ns: u64,
    var_ns: u64,
}

impl Smoothed {
    pub(crate) fn sample(&mut self, ns: u64) {
        self.last_ns = ns;
        if self.samples == 0 {
            (self.min_ns, self.max_ns) = (ns, ns);
            (self.srtt_ns, self.var_ns) = (ns, ns / 2);
        } else {
            self.min_ns = self.min_ns.min(ns);
            self.max_ns = self.max_ns.max(ns);
            let error = ns.abs_diff(self.srtt_ns);
            self.var_ns = self.var_ns - self.var_ns / 4 + error / 4;
            self.srtt_ns = self.srtt_ns - self.srtt_ns / 8 + ns / 8;
        }
        self.samples += 1;
    }

    pub(crate) fn srtt_ns(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.srtt_ns)
    }

    /// Returns the timeout, for samples that lack `rest_ns` of the whole round trip.
    pub(crate) fn rto_ns(&self, rest_ns: u64) -> u64 {
        match self.srtt_ns() {
            None => RTO_FIRST_NS,
            Some(srtt) => {
                let variance = self.var_ns.saturating_mul(4).max(RTO_MIN_NS);
                let whole = srtt.saturating_add(rest_ns).saturating_add(variance);
                whole.min(RTO_MAX_NS)
            }
        }
    }
}

/// Measures the other half of the round trip, capture to sender and back, by timestamps: from
/// an acknowledgement with a value to the first data that echoes it. The result is too long by
/// up to a tick of the clock, and by the time that the sender waited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EchoTimer {
    waiting: Option<(u32, u64)>,
    last_value: Option<u32>,
    pub(crate) samples: u64,
    pub(crate) min_ns: u64,
    pub(crate) last_ns: u64,
}

impl EchoTimer {
    /// Notes an acknowledgement with this timestamp value.
    pub(crate) fn acknowledged(&mut self, value: u32, now: u64) {
        // Only the first acknowledgement with a value can be identified by its echo. An
        // acknowledgement that comes late may have an earlier value.
        let ahead = self.last_value.map(|last| value.wrapping_sub(last) as i32);
        let is_new = ahead.is_some_and(|ahead| ahead > 0);
        if ahead.is_none() || is_new {
            self.last_value = Some(value);
        }
        if is_new && self.waiting.is_none() {
            self.waiting = Some((value, now));
        }
    }

    /// Notes data with this echo. Returns whether it gave the first sample.
    pub(crate) fn echoed(&mut self, echo: u32, now: u64) -> bool {
        let Some((value, since)) = self.waiting else {
            return false;
        };
        let ahead = echo.wrapping_sub(value) as i32;
        if ahead >= 0 {
            self.waiting = None;
        }
        if ahead != 0 {
            return false;
        }
        let ns = now.saturating_sub(since);
        self.last_ns = ns;
        self.samples += 1;
        let is_first = self.samples == 1;
        self.min_ns = if is_first { ns } else { self.min_ns.min(ns) };
        is_first
    }

    /// Returns the shortest time measured, if there is one.
    pub(crate) fn min(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.min_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_is_the_round_trip_and_200_ms_at_least() {
        let mut smoothed = Smoothed::default();
        assert_eq!(smoothed.rto_ns(0), 1_000_000_000);
        for _ in 0..100 {
            smoothed.sample(20_000_000);
        }
        assert_eq!(smoothed.rto_ns(0), 220_000_000);
        assert_eq!(smoothed.rto_ns(5_000_000), 225_000_000);
    }

    #[test]
    fn an_echo_is_timed_from_the_first_of_its_value() {
        let mut timer = EchoTimer::default();
        timer.acknowledged(10, 0);
        timer.acknowledged(11, 100);
        timer.acknowledged(10, 150); // overtaken
        timer.acknowledged(11, 190);
        timer.echoed(11, 200);
        assert_eq!(timer.min(), Some(100));
        // It went by before it could be timed: nothing is known of it.
        timer.acknowledged(11, 300);
        timer.echoed(11, 301);
        assert_eq!(timer.min(), Some(100));
    }
}
