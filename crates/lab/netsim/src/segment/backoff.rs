// SPDX-License-Identifier: MIT OR Apache-2.0
//! Back-off: how long a station waits after a collision.

use crate::rng::Rng;

/// Number of collisions beyond which the wait does not grow.
const DOUBLINGS_MAX: u32 = 10;

/// Algorithm that chooses the wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backoff {
    /// IEEE 802.3, 4.2.3.2.5: after the nth collision the wait is uniform in 0 to
    /// 2^min(n, 10) - 1 slots.
    #[default]
    Standard,
    /// Capture avoidance (Ramakrishnan and Yang, 1994): a station that sent the
    /// last frame on the medium waits 2 slots after the first collision of its next
    /// frame and none after the second; otherwise as in the standard.
    CaptureAvoiding,
    /// As the standard, but a station that has sent a frame keeps the medium until
    /// its queue is empty: a station that meets a burst waits until its end.
    WholeBursts,
}

impl Backoff {
    /// Returns the slots to wait after `collisions` collisions, counted from 1.
    /// `won`: the station sent the last frame on the medium.
    pub fn slots(self, collisions: u32, won: bool, rng: &mut Rng) -> u64 {
        match (self, collisions, won) {
            (Self::CaptureAvoiding, 1, true) => 2,
            (Self::CaptureAvoiding, 2, true) => 0,
            _ => rng.below(1 << collisions.min(DOUBLINGS_MAX)),
        }
    }
}
