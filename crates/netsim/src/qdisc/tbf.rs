// SPDX-License-Identifier: MIT OR Apache-2.0
//! tbf: a token bucket before a queue; and, with a tick, the shaper of the
//! papers' time, which looks at its tokens only when the timer tick comes.

use units::clock::{Span, Time};

use super::answer::{Next, Verdict};
use super::fifo::{Fifo, Limit};
use crate::packet::Packet;
use crate::rate_arithmetic::Bucket;

/// Options, as of tc-tbf(8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TbfConfig {
    /// Rate, above 0.
    pub rate_bps: u64,
    /// Depth of the bucket; a larger frame is dropped.
    pub burst_bytes: u64,
    /// Bytes that may wait.
    pub limit_bytes: u64,
    /// Counted for each frame on top of its bytes.
    pub overhead_bytes: u32,
    /// The least a frame counts, overhead included.
    pub mpu_bytes: u32,
    /// Wakes at whole multiples of this only, as a kernel without
    /// high-resolution timers does; zero: at the right instant.
    pub tick: Span,
}

/// The shaper.
#[derive(Debug)]
pub struct Tbf {
    config: TbfConfig,
    bucket: Bucket,
    queue: Fifo,
}

impl Tbf {
    /// Its bucket is full.
    #[must_use]
    pub fn new(config: TbfConfig) -> Self {
        Self {
            config,
            bucket: Bucket::full(config.rate_bps, config.burst_bytes),
            queue: Fifo::new(Limit::Bytes(config.limit_bytes)),
        }
    }

    fn counted(&self, packet: &Packet) -> u32 {
        (packet.frame_bytes + self.config.overhead_bytes).max(self.config.mpu_bytes)
    }

    pub(super) fn enqueue(&mut self, packet: Packet) -> Verdict {
        if u64::from(self.counted(&packet)) > self.config.burst_bytes {
            return Verdict::Refused;
        }
        self.queue.enqueue(packet)
    }

    pub(super) fn next(&mut self, now: Time) -> Next {
        let Some(head) = self.queue.head() else {
            return Next::Idle;
        };
        let counted = self.counted(head);
        self.bucket.fill(now);
        if !self.bucket.has(counted) {
            return Next::Wait(at_tick(self.bucket.when(counted), self.config.tick));
        }
        self.bucket.take(counted);
        self.queue.pop().map_or(Next::Idle, Next::Send)
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
}

/// The first tick that is not before `at`.
fn at_tick(at: Time, tick: Span) -> Time {
    match tick.as_ps() {
        0 => at,
        tick => Time::from_ps(at.as_ps().div_ceil(tick).saturating_mul(tick)),
    }
}
