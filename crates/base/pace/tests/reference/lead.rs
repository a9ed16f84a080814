// SPDX-License-Identifier: MIT OR Apache-2.0
//! How early a timer is set before the instant that it waits for.

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

    pub fn observe(&mut self, late_ns: u64) {
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
