// SPDX-License-Identifier: MIT OR Apache-2.0
//! The retransmission timeout (RFC 6298), with the ticks of a system's timers.

use crate::profile::Profile;

/// The estimate of a round trip, and the timeout by it.
#[derive(Clone, Debug)]
pub struct Rtt {
    initial_ns: u64,
    least_ns: u64,
    is_added: bool,
    most_ns: u64,
    tick_ns: u64,
    smoothed_ns: Option<u64>,
    variance_ns: u64,
    doublings: u32,
}

impl Rtt {
    /// Makes an estimate without samples.
    pub fn new(profile: &Profile) -> Self {
        Self {
            initial_ns: profile.rto_initial_ns,
            least_ns: profile.rto_min_ns,
            is_added: profile.rto_min_is_added,
            most_ns: profile.rto_max_ns,
            tick_ns: profile.timer_tick_ns.max(1),
            smoothed_ns: None,
            variance_ns: 0,
            doublings: 0,
        }
    }

    /// Takes a sample.
    pub fn sample(&mut self, rtt_ns: u64) {
        match self.smoothed_ns {
            None => {
                self.smoothed_ns = Some(rtt_ns);
                self.variance_ns = rtt_ns / 2;
            }
            Some(smoothed) => {
                self.variance_ns = (self.variance_ns * 3 + smoothed.abs_diff(rtt_ns)) / 4;
                self.smoothed_ns = Some((smoothed * 7 + rtt_ns) / 8);
            }
        }
        self.doublings = 0;
    }

    /// Returns the smoothed round trip.
    pub const fn smoothed_ns(&self) -> Option<u64> {
        self.smoothed_ns
    }

    /// Doubles the timeout.
    pub fn back_off(&mut self) {
        self.doublings = (self.doublings + 1).min(12);
    }

    /// Takes doublings back: new data was acknowledged.
    pub fn calm(&mut self) {
        self.doublings = 0;
    }

    pub fn timeout_ns(&self) -> u64 {
        let base = match self.smoothed_ns {
            None => self.initial_ns,
            Some(smoothed) if self.is_added => smoothed + (self.variance_ns * 4).max(self.least_ns),
            Some(smoothed) => {
                (smoothed + (self.variance_ns * 4).max(self.tick_ns)).max(self.least_ns)
            }
        };
        (base << self.doublings).min(self.most_ns)
    }

    /// Returns when a timer of `after_ns` fires: at the next tick.
    pub fn due_ns(&self, now_ns: u64, after_ns: u64) -> u64 {
        let exact = now_ns + after_ns;
        exact.div_ceil(self.tick_ns) * self.tick_ns
    }
}
