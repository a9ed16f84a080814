// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the window is what limits the sender: one that is not filled is no
//! reason to enlarge it, and one not used for long is no longer true
//! (RFC 2861, as Linux does it).

use units::clock::Time;

use super::window_use::Usage;
use super::{Sender, State};

/// The older kernels let a burst of three be missing.
const BURST: u32 = 3;

impl Sender {
    /// After something was sent, or could not be for want of window.
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

    /// Whether the window may grow, with so many in flight before the
    /// acknowledgement. Today's kernels ask whether it was full at any time of
    /// the last round trip, and let a slow start be half empty.
    pub(super) fn is_cwnd_limited(&self, in_flight: u32) -> bool {
        if !self.reduces_in_proportion() {
            return in_flight + BURST >= self.window.cwnd;
        }
        self.usage.limited
            || (self.window.in_slow_start(false)
                && self.window.cwnd < self.usage.most_out.saturating_mul(2))
    }

    /// Before new data is sent with nothing out: the window of long ago is
    /// halved for each timeout's time since.
    pub(super) fn restart_after_idle(&mut self, now: Time) {
        let idle = now.since(self.last_new);
        let rto = self.rtt.rto();
        let long = idle > rto && self.queue.len() == 0 && self.last_new > Time::START;
        if !long || !self.config.restart_after_idle || self.state == State::Loss {
            return;
        }
        self.window.ssthresh = self.current_threshold();
        let least = self.config.initial_cwnd.max(1).min(self.window.cwnd);
        let times = (idle.as_ps() - 1) / rto.as_ps().max(1);
        let halved = self.window.cwnd.checked_shr(times.min(64) as u32);
        self.window.cwnd = halved.unwrap_or(0).max(least);
        self.window.count = 0;
    }
}
