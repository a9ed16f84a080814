// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures how long a sender stalls: paper 001 found seconds at a window of one
//! segment or close to it (section 3.3).

use sender_log::variables::Vars;
use units::clock::{Span, Time};

/// A sender whose window is at most this many segments counts as stalled.
pub const STOP_SEGMENTS: u32 = 2;

/// Time that a sender spent stalled, in constant memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stops {
    /// Total time stalled.
    pub total: Span,
    /// Longest stall.
    pub longest: Span,
    /// The current stall, if any: its begin, and when the sender was last observed.
    stopped: Option<(Time, Time)>,
}

impl Stops {
    /// Observes the sender's variables at `now`; calls must be in order of time.
    pub fn observe(&mut self, now: Time, vars: &Vars) {
        if let Some((begin, seen)) = self.stopped {
            self.total = self.total + now.since(seen);
            self.longest = self.longest.max(now.since(begin));
        }
        let begin = self.stopped.map_or(now, |(begin, _)| begin);
        self.stopped = (vars.cwnd <= STOP_SEGMENTS).then_some((begin, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_add_up_and_the_longest_is_known() {
        let mut stops = Stops::default();
        for (ms, cwnd) in [
            (0, 10),
            (10, 1),
            (20, 2),
            (25, 1),
            (40, 9),
            (50, 3),
            (60, 1),
            (70, 5),
        ] {
            let now = Time::START + Span::from_ns(ms * 1_000_000);
            let vars = Vars {
                cwnd,
                ..Vars::default()
            };
            stops.observe(now, &vars);
        }
        assert_eq!(stops.total, Span::from_ns(40_000_000));
        assert_eq!(stops.longest, Span::from_ns(30_000_000));
    }
}
