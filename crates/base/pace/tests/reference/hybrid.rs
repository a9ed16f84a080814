// SPDX-License-Identifier: MIT OR Apache-2.0
//! The port clock of hybrid mode: timers, and real time while the wire idles.

use num_bigint::BigInt;

use super::{PS_PER_NS, Reference};

impl Reference {
    /// Expired timers, the largest lateness, and the lead.
    pub fn timers(&self) -> (u64, u64, u64) {
        (self.lead.waits, self.lead.late_max_ns, self.lead.ns)
    }

    pub(super) fn lead_ps(&self) -> BigInt {
        BigInt::from(self.lead.ns * PS_PER_NS)
    }

    /// The least silence worth a timer: two largest gap frames.
    pub(super) fn idle_least(&self) -> BigInt {
        let min = self.wire(self.cfg.min_frame_bytes).max(1);
        let max = self.wire(self.cfg.max_frame_bytes);
        if self.lead.idling {
            self.takes_ps(min)
        } else {
            self.takes_ps(max) * 2
        }
    }

    pub(super) fn idle_follow(&mut self, now_ns: u64) {
        if let Some(late_ns) = self.lead.armed.and_then(|until| now_ns.checked_sub(until)) {
            self.lead.observe(late_ns);
        }
        self.advance_line(now_ns);
        if self.line > self.global {
            let nobody_was_due = self.first_eligible().is_none();
            let free = self.global.clone();
            self.global = self.line.clone();
            if nobody_was_due {
                self.note_idle(&free);
            }
            self.bound_lag();
        }
    }

    pub(super) fn idle_begin(&mut self, now_ns: u64) {
        self.advance_line(now_ns);
        let most = &self.global + self.lead_ps();
        let least = &self.global - self.ring();
        if self.line > most {
            self.line = most;
        } else if self.line < least {
            self.line = least;
        }
        self.lead.idling = true;
        self.idle_follow(now_ns);
    }
}
