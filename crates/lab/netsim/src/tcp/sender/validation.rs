// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reduces a congestion window that the application does not fill (RFC 2861, as the older
//! kernels do it).

use units::clock::Time;

use super::{Sender, State};

impl Sender {
    /// Notes that the congestion window was changed or examined, which begins a new period.
    pub(super) fn stamp_window(&mut self, now: Time) {
        self.validation.since = now;
    }

    /// Forgets how far the window was used: it was just reduced for that.
    pub(super) fn forget_use(&mut self, now: Time) {
        self.validation.used = 0;
        self.validation.since = now;
    }

    pub(super) fn note_new_data(&mut self) {
        self.validation.sent_new = true;
    }

    /// Checks the use of the window after new data was sent. If it was not full for a
    /// retransmission timeout, and the application has no more to send, it falls half way to
    /// what was used of it.
    pub(super) fn validate_window(&mut self, now: Time) {
        if !std::mem::take(&mut self.validation.sent_new) || self.reduces_in_proportion() {
            return;
        }
        let out = self.queue.len();
        if out >= self.window.cwnd {
            self.forget_use(now);
            return;
        }
        self.validation.used = self.validation.used.max(out);
        let idle = now.since(self.validation.since);
        if idle < self.rtt.rto() || !self.config.restart_after_idle {
            return;
        }
        if self.state == State::Open && !self.has_new() {
            let least = self.variant().least_used_cwnd;
            let least = least.unwrap_or(self.config.initial_cwnd.max(1));
            let used = self.validation.used.max(least);
            if used < self.window.cwnd {
                self.window.ssthresh = self.current_threshold();
                self.window.cwnd = (self.window.cwnd + used) / 2;
            }
            self.validation.used = 0;
        }
        self.validation.since = now;
    }
}
