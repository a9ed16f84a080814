// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a station waits after a collision.

use crate::rng::Rng;

/// More collisions than these do not make the wait longer.
const DOUBLINGS_MAX: u32 = 10;

/// A way to choose the wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backoff {
    /// IEEE 802.3, 4.2.3.2.5: after the nth collision uniform in 0 to
    /// 2^min(n, 10) - 1 slots.
    #[default]
    Standard,
    /// Capture avoidance (Ramakrishnan and Yang, 1994): a station whose frame was
    /// the last on the medium waits 2 slots after the first collision of its
    /// next one and none after the second; else as the standard has it.
    CaptureAvoiding,
}

impl Backoff {
    /// Slots to wait after so many collisions, from 1; `won`: the last frame on
    /// the medium was the station's.
    pub fn slots(self, collisions: u32, won: bool, rng: &mut Rng) -> u64 {
        match (self, collisions, won) {
            (Self::CaptureAvoiding, 1, true) => 2,
            (Self::CaptureAvoiding, 2, true) => 0,
            _ => rng.below(1 << collisions.min(DOUBLINGS_MAX)),
        }
    }
}
