// SPDX-License-Identifier: MIT OR Apache-2.0
//! Determines whether the congestion window limits the sender. A window that is not
//! filled is not enlarged, and one that was not used for long is reduced (RFC 2861,
//! as Linux does it).

use units::clock::Time;

use super::window_use::Usage;
use super::{Sender, State};

impl Sender {
    /// Records the use of the window after a segment was sent, or could not be sent
    /// for lack of window.
    pub(super) fn note_usage(&mut self) {
        let limited = self.in_flight() >= self.window.cwnd;
        let out = self.queue.len();
        let usage = &mut self.usage;
        if self.una >= usage.until || limited || (!usage.limited && out > usage.most_out) {
            *usage = Usage {
                limited,
                most_out: out,
                until: self.nxt,
            };
        }
    }

    /// Returns whether the window may grow, given the segments in flight before the
    /// acknowledgement. Today's kernels check whether the window was full at any
    /// time during the last round trip, and in slow start allow it to be half
    /// empty.
    pub(super) fn is_cwnd_limited(&self, in_flight: u32) -> bool {
        if !self.reduces_in_proportion() {
            return in_flight >= self.window.cwnd;
        }
        self.usage.limited
            || (self.window.in_slow_start(false)
                && self.window.cwnd < self.usage.most_out.saturating_mul(2))
    }

    /// Reduces the window before new data is sent with nothing out: it is halved
    /// for each retransmission timeout that has passed since.
    pub(super) fn restart_after_idle(&mut self, now: Time) {
        let idle = now.since(self.last_data);
        let rto = self.rtt.rto();
        let long = idle > rto && self.queue.len() == 0 && self.last_data > Time::START;
        let spared = self.reduces_in_proportion() && self.state == State::Loss;
        if !long || !self.config.restart_after_idle || spared {
            return;
        }
        self.window.ssthresh = self.current_threshold();
        let least = self.config.initial_cwnd.max(1).min(self.window.cwnd);
        let times = (idle.as_ps() - 1) / rto.as_ps().max(1);
        let halved = self.window.cwnd.checked_shr(times.min(64) as u32);
        self.window.cwnd = halved.unwrap_or(0).max(least);
        if self.reduces_in_proportion() {
            self.window.count = 0;
        }
        self.forget_use(now);
    }
}
