// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures round trips as seen from the capture, and the timeouts that follow from them.

use units::time::NS_PER_MS;

use super::clocked::Clocked;
use super::packed::fields;

/// Least variance part of Linux's timeout.
const RTO_MIN_NS: u64 = 200 * NS_PER_MS;
/// Longest timeout of Linux.
const RTO_MAX_NS: u64 = 120_000 * NS_PER_MS;
/// Timeout before the first sample (RFC 6298, 2.1).
const RTO_FIRST_NS: u64 = 1000 * NS_PER_MS;
/// Timers, in ms, after which known systems acknowledge at the latest, with a margin for what a
/// host adds: Linux's 40 ms are up to 50 where its clock ticks every 10 ms.
const DELAYED_ACK_MS: [std::ops::Range<u64>; 4] = [38..52, 98..110, 195..215, 490..520];

/// After so many round trips the timer of every stack follows them (RFC 6298, section 2).
const MEASURED_SAMPLES: u64 = 3;

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

/// What is known of the two halves of a flow's round trip, from the capture to each of its ends
/// and back.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrips {
    /// Round trips from the capture to the receiver and back.
    pub(super) receiver_side: Smoothed,
    /// The same round trips, without those that a receiver's timer made longer.
    pub(super) receiver_way: Smoothed,
    /// Round trips from the capture to the sender and back.
    pub(crate) sender_side: EchoTimer,
    /// Round trips of the handshake, capture to sender and back, and capture to receiver and
    /// back.
    pub(crate) handshake_sender_ns: Option<u64>,
    pub(super) handshake_receiver_ns: Option<u64>,
    /// Shortest time in which the sender acknowledged data of the other direction.
    pub(super) peer_rtt_ns: Option<u64>,
    /// A bound of the sender's round trip, where the handshake alone gives a long one.
    pub(super) clocked: Option<Box<Clocked>>,
}

impl RoundTrips {
    /// Returns the shortest round trip from the capture to the sender and back.
    pub(crate) fn sender_rtt_ns(&self) -> Option<u64> {
        // This is asked for each segment: an iterator over the four takes ten times as long.
        let clocked_ns = self.clocked.as_ref().and_then(|clocked| clocked.min());
        let some = |ns: Option<u64>| ns.unwrap_or(u64::MAX);
        let measured_ns = some(self.sender_side.min()).min(some(self.peer_rtt_ns));
        let others_ns = some(self.handshake_sender_ns).min(some(clocked_ns));
        let least_ns = measured_ns.min(others_ns);
        (least_ns != u64::MAX).then_some(least_ns)
    }

    /// Returns the shortest time from the capture of data to the capture of its
    /// acknowledgement.
    pub(crate) fn measured_receiver_rtt_ns(&self) -> Option<u64> {
        (self.receiver_side.samples > 0).then_some(self.receiver_side.min_ns)
    }

    /// Returns the shortest round trip from the capture to the receiver and back.
    pub(crate) fn receiver_rtt_ns(&self) -> Option<u64> {
        match (self.measured_receiver_rtt_ns(), self.handshake_receiver_ns) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Returns the whole round trip, smoothed; `None` if a half of it is not known.
    pub(crate) fn rtt_ns(&self) -> Option<u64> {
        let receiver = self
            .receiver_side
            .srtt_ns()
            .or(self.handshake_receiver_ns)?;
        Some(receiver + self.sender_rtt_ns()?)
    }

    /// Returns the shortest whole round trip, or the half of it that is known.
    pub(crate) fn rtt_min_ns(&self) -> u64 {
        self.receiver_rtt_ns().unwrap_or(0) + self.sender_rtt_ns().unwrap_or(0)
    }

    /// Returns the timeout that Linux would have now, doublings not included.
    pub(crate) fn rto_ns(&self) -> u64 {
        self.receiver_side
            .rto_ns(self.sender_rtt_ns().unwrap_or_default())
    }

    /// Returns what the rules are told of the round trips.
    pub(super) fn known(&self) -> KnownTrips {
        KnownTrips {
            rtt_ns: self.rtt_ns(),
            rtt_min_ns: self.rtt_min_ns(),
            rto_ns: self.rto_ns(),
            is_timer_measured: self.receiver_side.samples >= MEASURED_SAMPLES,
            receiver_rtt_ns: self.receiver_rtt_ns().unwrap_or(0),
            sender_rtt_ns: self.sender_rtt_ns().unwrap_or(0),
        }
    }
}

/// The round trips as they were known in a pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownTrips {
    /// Whole round trip, if it is known.
    pub(crate) rtt_ns: Option<u64>,
    pub(crate) rtt_min_ns: u64,
    pub(crate) rto_ns: u64,
    /// Whether several segments of data were answered before: the sender's timer follows the
    /// round trip then, and no longer begins with a guess.
    pub(crate) is_timer_measured: bool,
    /// Shortest round trip from the capture to the receiver and back; 0 adds nothing where it is
    /// not known.
    pub(crate) receiver_rtt_ns: u64,
    /// The same to the sender.
    pub(crate) sender_rtt_ns: u64,
}

fields!(KnownTrips {
    rtt_ns,
    rtt_min_ns,
    rto_ns,
    is_timer_measured,
    receiver_rtt_ns,
    sender_rtt_ns,
});

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
