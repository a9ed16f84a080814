// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models the far port of a line: a drop-tail queue that drains at a rate, or a
//! policer. Both are computed from the instants at which frames enter: no timer
//! serves a queue, and nothing is rounded.
//!
//! As in the laboratory (docs/decisions/laboratory.md, "The bottleneck counts bytes
//! as time"), a port counts frames padded to 60 bytes, without preamble, FCS and
//! gap; the unsent part of the frame in service belongs to the queue.

use capture::record::Fate;
use units::clock::{Span, Time};
use units::ethernet::FRAME_MIN_BYTES;

use crate::rate_arithmetic::{BYTE, Instant};

/// The type of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// A drop-tail queue. Its size includes the unsent part of the frame in
    /// service.
    Fifo {
        /// Size of the queue, bytes.
        bytes: u64,
    },
    /// A token bucket without a queue; it begins full.
    Policer {
        /// Depth of the bucket, bytes.
        burst_bytes: u64,
        /// Tokens arrive at whole multiples of this; zero: continuously.
        refresh: Span,
    },
}

/// A port and its state. Frames must enter in order of time; each costs O(1).
#[derive(Clone, Debug)]
pub struct Port {
    kind: PortKind,
    rate_bps: u64,
    delay: Span,
    /// FIFO: when the last byte in it will have left.
    empty_at: Instant,
    /// Policer: the tokens, in the units of [`crate::rate_arithmetic`].
    tokens: u128,
    /// Policer: the time up to which tokens have been added.
    filled: Time,
}

impl Port {
    /// Makes a port. `rate_bps`, above 0, is the rate at which the FIFO drains or
    /// the tokens arrive; `delay` is added after the FIFO or the policer.
    pub fn new(kind: PortKind, rate_bps: u64, delay: Span) -> Self {
        let tokens = match kind {
            PortKind::Policer { burst_bytes, .. } => u128::from(burst_bytes) * BYTE,
            PortKind::Fifo { .. } => 0,
        };
        Self {
            kind,
            rate_bps: rate_bps.max(1),
            delay,
            empty_at: Instant::default(),
            tokens,
            filled: Time::START,
        }
    }

    /// Passes a frame, whose last bit arrives at `now`, through the port. Returns
    /// when its last bit arrives behind the port's delay.
    pub fn enter(&mut self, now: Time, frame_bytes: u32) -> Result<Time, Fate> {
        let bytes = frame_bytes.max(FRAME_MIN_BYTES);
        match self.kind {
            PortKind::Fifo { bytes: room } => self.queue(now, bytes, room),
            PortKind::Policer {
                burst_bytes,
                refresh,
            } => self.police(now, bytes, burst_bytes, refresh),
        }
    }

    /// Returns the bytes that wait in the FIFO at `now`, rounded up.
    pub fn backlog_bytes(&self, now: Time) -> u64 {
        u64::try_from(self.unsent(now).div_ceil(BYTE)).unwrap_or(u64::MAX)
    }

    fn unsent(&self, now: Time) -> u128 {
        let at = self.empty_at.or_now(now);
        let span = u128::from(at.time.since(now).as_ps());
        span * u128::from(self.rate_bps) + u128::from(at.frac)
    }

    fn queue(&mut self, now: Time, bytes: u32, room: u64) -> Result<Time, Fate> {
        if self.unsent(now) + u128::from(bytes) * BYTE > u128::from(room) * BYTE {
            return Err(Fate::DroppedFifo);
        }
        self.empty_at = self.empty_at.or_now(now).after(bytes, self.rate_bps);
        Ok(self.empty_at.time + self.delay)
    }

    fn police(
        &mut self,
        now: Time,
        bytes: u32,
        burst_bytes: u64,
        refresh: Span,
    ) -> Result<Time, Fate> {
        let until = match refresh.as_ps() {
            0 => now,
            refresh_ps => Time::from_ps(now.as_ps() - now.as_ps() % refresh_ps),
        };
        let come = u128::from(until.since(self.filled).as_ps()) * u128::from(self.rate_bps);
        self.tokens = (self.tokens + come).min(u128::from(burst_bytes) * BYTE);
        self.filled = self.filled.max(until);
        let need = u128::from(bytes) * BYTE;
        if self.tokens < need {
            return Err(Fate::DroppedPolicer);
        }
        self.tokens -= need;
        Ok(now + self.delay)
    }
}
