// SPDX-License-Identifier: MIT OR Apache-2.0
//! The port clock of hybrid mode: timers, and real time while the wire idles.

use super::{Reference, integer};
use num_traits::ToPrimitive;

impl Reference {
    /// Expired timers, the largest lateness, and the lead.
    pub fn timers(&self) -> (u64, u64, u64) {
        (self.lead.waits, self.lead.late_max_ns, self.lead.ns)
    }

    pub(super) fn lead_bytes(&self) -> u64 {
        self.line_bytes(self.lead.ns).to_u64().expect("a lead")
    }

    /// The least silence worth a timer: two largest gap frames.
    pub(super) fn idle_least(&self) -> u64 {
        let min = self.wire(self.cfg.min_frame_bytes).max(1);
        let max = self.wire(self.cfg.max_frame_bytes);
        if self.lead.idling { min } else { 2 * max }
    }

    pub(super) fn idle_follow(&mut self, now_ns: u64) {
        if let Some(late_ns) = self.lead.armed.and_then(|until| now_ns.checked_sub(until)) {
            self.lead.observe(late_ns);
        }
        self.advance_line(now_ns);
        if self.line_floor() > self.global {
            let nobody_was_due = self.first_eligible().is_none();
            let free = self.global.clone();
            self.global = self.line_floor();
            if nobody_was_due {
                self.note_idle(&free);
            }
            self.bound_lag();
        }
    }

    pub(super) fn idle_begin(&mut self, now_ns: u64) {
        self.advance_line(now_ns);
        let most = &self.global + self.lead_bytes();
        let least = &self.global - self.ring();
        if self.line_floor() > most {
            self.line = integer(&most);
        } else if self.line_floor() < least {
            self.line = integer(&least);
        }
        self.lead.idling = true;
        self.idle_follow(now_ns);
    }
}
