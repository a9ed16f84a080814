// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources of datagrams: they send at a constant rate, in bursts, on and off, or as
//! fast as the host's queue accepts packets.

use units::clock::{Span, Time};

use crate::rate_arithmetic::Instant;

/// Bytes that the socket's send buffer accounts for a packet beyond its frame.
/// About what Linux accounts (`skb->truesize`), so that a buffer holds about as
/// many packets.
const BOOKKEEPING_BYTES: u64 = 768;

/// How a source sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceConfig {
    /// Length of each frame, bytes: Ethernet header included, FCS not.
    pub frame_bytes: u32,
    /// Frames per burst; at least 1.
    pub burst: u32,
    /// Link-layer rate of the bursts, from the start of one to the start of the
    /// next, bit/s; `None`: a burst is sent whenever there is room.
    pub rate_bps: Option<u64>,
    /// Bytes that its socket allows in the host's queue; `None`: the source does
    /// not wait for room, and packets that the queue refuses are lost.
    pub buffer_bytes: Option<u64>,
    /// Durations of the alternating on and off phases; `None`: always on.
    pub on_off: Option<(Span, Span)>,
    /// When the source begins to send.
    pub start: Time,
    /// When the source stops: it sends nothing at this instant or later.
    pub stop: Time,
    /// The first class to which the frames are addressed, major number above minor;
    /// 0: none.
    pub class: u32,
    /// Number of classes to which bursts go in round-robin order; at least 1.
    pub classes: u16,
    /// Number of destination ports to which bursts go in round-robin order, from
    /// the flow's own on; at least 1.
    pub ports: u16,
}

/// The class and port to which a source addresses a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameAddress {
    /// Its class, major number above minor; 0: none.
    pub class: u32,
    /// Offset that is added to the flow's destination port.
    pub port: u16,
}

/// A source of datagrams. [`Source::next`] returns when it sends next; call
/// [`Source::take`] at that time.
#[derive(Clone, Debug)]
pub struct Source {
    config: SourceConfig,
    /// When the next burst is due according to the rate.
    due: Instant,
    /// Frames of the current burst that are still to be sent.
    left: u32,
    in_queue_bytes: u64,
    /// Whether the source waits for room in the host's queue.
    blocked: bool,
    bursts: u64,
}

impl Source {
    /// Makes a source; it is silent until `config.start`.
    pub fn new(config: SourceConfig) -> Self {
        Self {
            config,
            due: Instant {
                time: config.start,
                frac: 0,
            },
            left: 0,
            in_queue_bytes: 0,
            blocked: false,
            bursts: 0,
        }
    }

    fn cost(&self) -> u64 {
        u64::from(self.config.frame_bytes) + BOOKKEEPING_BYTES
    }

    fn has_room(&self) -> bool {
        let burst = self.cost() * u64::from(self.config.burst.max(1));
        self.config.buffer_bytes.is_none_or(|bytes| {
            // A burst larger than the whole buffer is sent when the buffer is
            // empty.
            self.in_queue_bytes == 0 || self.in_queue_bytes + burst <= bytes
        })
    }

    /// Returns when the next burst is due; `None`: not before there is room, or
    /// never.
    pub fn next(&self, now: Time) -> Option<Time> {
        if self.left > 0 {
            return Some(now);
        }
        if !self.has_room() {
            return None;
        }
        let at = self.awake(self.due.time.max(now));
        (at < self.config.stop).then_some(at)
    }

    /// Returns `at` if it lies in an on phase, otherwise the begin of the next on
    /// phase.
    fn awake(&self, at: Time) -> Time {
        let Some((on, off)) = self.config.on_off else {
            return at;
        };
        if on == Span::ZERO {
            return Time::from_ps(u64::MAX);
        }
        let period = on + off;
        let into = at.since(self.config.start).as_ps() % period.as_ps().max(1);
        if into < on.as_ps() {
            at
        } else {
            at + (period - Span::from_ps(into))
        }
    }

    /// Returns the next frame of the burst that is due at `now`; `None`: there is
    /// no more to send now.
    pub fn take(&mut self, now: Time) -> Option<FrameAddress> {
        if self.left == 0 {
            if self.next(now).is_none_or(|at| at > now) {
                self.blocked = !self.has_room();
                return None;
            }
            self.left = self.config.burst.max(1);
            self.bursts += 1;
            self.schedule(now);
        }
        self.left -= 1;
        self.in_queue_bytes += self.cost();
        // The remainder is below `of`, so it fits 16 bits.
        let round_robin = |of: u16| ((self.bursts - 1) % u64::from(of.max(1))) as u16;
        let class = match self.config.class {
            0 => 0,
            first => first + u32::from(round_robin(self.config.classes)),
        };
        Some(FrameAddress {
            class,
            port: round_robin(self.config.ports),
        })
    }

    /// Returns the length of each frame, bytes.
    pub fn frame_bytes(&self) -> u32 {
        self.config.frame_bytes
    }

    fn schedule(&mut self, now: Time) {
        let Some(rate_bps) = self.config.rate_bps else {
            return;
        };
        // Bursts missed during an off phase are not sent later.
        let from = if self.config.on_off.is_some() {
            self.due.or_now(now)
        } else {
            self.due
        };
        let bytes = self
            .config
            .frame_bytes
            .saturating_mul(self.config.burst.max(1));
        self.due = from.after(bytes, rate_bps.max(1));
    }

    /// Handles the refusal, by the host's queue, of the frame that was taken last.
    /// A source without a rate, which would retry at once, waits for `pause`: it is
    /// not infinitely fast.
    pub fn refused(&mut self, now: Time, pause: Span) {
        self.in_queue_bytes = self.in_queue_bytes.saturating_sub(self.cost());
        self.left = 0;
        self.pause(now, pause);
    }

    /// Handles a full queue: a source without a rate waits for `pause` before its next
    /// burst.
    pub fn pause(&mut self, now: Time, pause: Span) {
        if self.config.rate_bps.is_none() {
            self.due = Instant {
                time: now + pause,
                frac: 0,
            };
        }
    }

    /// Handles a frame of this source that left the host's queue. Returns `true` if
    /// the source was waiting for room.
    pub fn left_queue(&mut self) -> bool {
        self.in_queue_bytes = self.in_queue_bytes.saturating_sub(self.cost());
        std::mem::take(&mut self.blocked)
    }
}
