// SPDX-License-Identifier: MIT OR Apache-2.0
//! tbf: a queue behind a token bucket. With a tick it is the shaper of the papers'
//! time, which checks its tokens only at timer ticks.

use units::clock::{Span, Time};

use super::answer::{Next, Verdict};
use super::fifo::{Fifo, Limit};
use crate::packet::Packet;
use crate::rate_arithmetic::Bucket;

/// Options, as in tc-tbf(8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TbfConfig {
    /// Rate, bit/s; above 0.
    pub rate_bps: u64,
    /// Depth of the bucket; a larger frame is dropped.
    pub burst_bytes: u64,
    /// Limit of the queue, bytes.
    pub limit_bytes: u64,
    /// Bytes added to the length of each frame.
    pub overhead_bytes: u32,
    /// Minimum length that a frame counts, overhead included, bytes.
    pub mpu_bytes: u32,
    /// The timer expires only at whole multiples of this, as in a kernel without
    /// high-resolution timers; zero: at the exact instant.
    pub tick: Span,
}

#[derive(Debug)]
pub struct Tbf {
    config: TbfConfig,
    bucket: Bucket,
    queue: Fifo,
}

impl Tbf {
    /// Makes an empty qdisc with a full bucket.
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

/// Returns the first tick that is not before `at`.
fn at_tick(at: Time, tick: Span) -> Time {
    match tick.as_ps() {
        0 => at,
        tick => Time::from_ps(at.as_ps().div_ceil(tick).saturating_mul(tick)),
    }
}
