// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timers, and how early they are set.

use super::{Reference, integer};
use num_traits::ToPrimitive;

const LEAD_FIRST_NS: u64 = 30_000;
const LEAD_MIN_NS: u64 = 10_000;
pub(super) const LEAD_MAX_NS: u64 = 250_000;

pub(super) struct Lead {
    pub ns: u64,
    /// The wire idles: real time is the clock.
    pub idling: bool,
    /// When the armed timer expires.
    pub armed: Option<u64>,
    pub gapped: bool,
    /// Frames sent after a gap since the lead was set.
    pub frames: u32,
    pub waits: u64,
    pub late_max_ns: u64,
}

impl Lead {
    pub fn new() -> Self {
        Lead {
            ns: LEAD_FIRST_NS,
            idling: false,
            armed: None,
            gapped: false,
            frames: 0,
            waits: 0,
            late_max_ns: 0,
        }
    }

    pub fn handed_out(&mut self) {
        self.idling = false;
        self.armed = None;
    }

    /// Every 64th frame after a gap shortens the lead by a sixteenth.
    pub fn frame(&mut self) {
        if self.gapped {
            self.gapped = false;
            self.frames += 1;
            if self.frames == 64 {
                self.ns -= (self.ns - LEAD_MIN_NS) / 16;
                self.frames = 0;
            }
        }
    }

    fn observe(&mut self, late_ns: u64) {
        self.armed = None;
        self.waits += 1;
        self.late_max_ns = self.late_max_ns.max(late_ns);
        let seen = late_ns.min(LEAD_MAX_NS);
        let wanted = seen + seen / 8 + 1000;
        if wanted > self.ns {
            self.ns = wanted.min(LEAD_MAX_NS);
            self.frames = 0;
        }
    }
}

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
