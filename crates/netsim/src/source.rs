// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who sends datagrams: at a constant rate, in bursts, on and off, or as fast
//! as the host's queue takes them.

use units::clock::{Span, Time};

use crate::rate_arithmetic::Instant;

/// What its socket's buffer counts for a packet beyond its frame: about what
/// Linux does (`skb->truesize`), so that a buffer holds about as many.
const BOOKKEEPING_BYTES: u64 = 768;

/// How a source sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceConfig {
    /// Each frame, Ethernet header included, FCS not.
    pub frame_bytes: u32,
    /// Frames at a time; at least 1.
    pub burst: u32,
    /// Link-layer rate of the bursts, start to start; `None`: whenever there is room.
    pub rate_bps: Option<u64>,
    /// Bytes that its socket lets be in the host's queue; `None`: it does not
    /// wait for room, and what the queue refuses is lost.
    pub buffer_bytes: Option<u64>,
    /// Sends for so long, then is silent for so long; `None`: never silent.
    pub on_off: Option<(Span, Span)>,
    /// First instant.
    pub start: Time,
    /// Not from here on.
    pub stop: Time,
    /// The first class the frames ask for, major number above minor; 0: none.
    pub class: u32,
    /// Bursts go to so many classes in turn; at least 1.
    pub classes: u16,
    /// And to so many ports, from the flow's own on; at least 1.
    pub ports: u16,
}

/// Where a frame of a source wants to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Its class, major number above minor; 0: none.
    pub class: u32,
    /// Added to the flow's port.
    pub port: u16,
}

/// A source. Ask [`Source::next`] when, and call [`Source::take`] then.
#[derive(Clone, Debug)]
pub struct Source {
    config: SourceConfig,
    /// The next burst by the rate.
    due: Instant,
    /// Frames of the burst under way that are still to be given.
    left: u32,
    in_queue_bytes: u64,
    /// Bursts that had to wait for room begin anew when there is some.
    blocked: bool,
    bursts: u64,
}

impl Source {
    /// Silent until its start.
    #[must_use]
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
            // What is larger than the whole buffer goes when it is empty.
            self.in_queue_bytes == 0 || self.in_queue_bytes + burst <= bytes
        })
    }

    /// When the next burst is due; `None`: when there is room, or never.
    #[must_use]
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

    /// `at`, or the begin of the next time on.
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

    /// Takes one frame of the burst that is due at `now`; `None`: no more now.
    pub fn take(&mut self, now: Time) -> Option<Wish> {
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
        // Turns are below the 16 bits of what they count.
        let turn = |of: u16| ((self.bursts - 1) % u64::from(of.max(1))) as u16;
        let class = match self.config.class {
            0 => 0,
            first => first + u32::from(turn(self.config.classes)),
        };
        Some(Wish {
            class,
            port: turn(self.config.ports),
        })
    }

    /// Bytes of each of its frames.
    #[must_use]
    pub fn frame_bytes(&self) -> u32 {
        self.config.frame_bytes
    }

    fn schedule(&mut self, now: Time) {
        let Some(rate_bps) = self.config.rate_bps else {
            return;
        };
        // A silence is not made up for.
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

    /// The queue refused what was taken last. A source that would try again at
    /// once tries after `pause`: it is not infinitely fast.
    pub fn refused(&mut self, now: Time, pause: Span) {
        self.in_queue_bytes = self.in_queue_bytes.saturating_sub(self.cost());
        self.left = 0;
        if self.config.rate_bps.is_none() {
            self.due = Instant {
                time: now + pause,
                frac: 0,
            };
        }
    }

    /// One of its frames has left the host's queue. `true`: the source has
    /// waited for this.
    pub fn left_queue(&mut self) -> bool {
        self.in_queue_bytes = self.in_queue_bytes.saturating_sub(self.cost());
        std::mem::take(&mut self.blocked)
    }
}
