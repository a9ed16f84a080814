// SPDX-License-Identifier: MIT OR Apache-2.0
//! CoDel: drops the first packets of a queue in which packets have waited for too
//! long, ever more often until they wait less (RFC 8289).

use units::clock::{Span, Time};

use crate::packet::Packet;

/// A queue that has been left is remembered for this many intervals: dropping then
/// resumes about as often as it ended.
const REMEMBERED_INTERVALS: u64 = 16;

/// When a queue is too long (RFC 8289, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelConfig {
    /// Longest time that packets may wait.
    pub target: Span,
    /// For how long all packets must have waited longer.
    pub interval: Span,
    /// Bytes that may wait for any time.
    pub frame_bytes: u32,
}

/// What takes packets out of the queue: the first one, and the bytes behind it.
pub(super) trait Head {
    fn take(&mut self) -> Option<(Packet, u64)>;
    fn discard(&mut self, packet: Packet);
}

/// CoDel's state for one queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Codel {
    /// When all packets will have waited too long for an interval, unless one does
    /// not; `None`: the last one did not.
    above_until: Option<Time>,
    /// When to drop next.
    drop_next: Time,
    is_dropping: bool,
    /// Drops since dropping began: the interval is divided by the square root.
    count: u32,
    /// `count` after the first drop of the last time.
    first_count: u32,
}

impl Codel {
    pub fn new() -> Self {
        Self {
            above_until: None,
            drop_next: Time::START,
            is_dropping: false,
            count: 0,
            first_count: 0,
        }
    }

    /// Counts packets that were dropped because the queue was full.
    pub fn count_overflow(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// Takes the next packet to send out of the queue, and discards those before it
    /// that are to be dropped. Amortised O(1) a packet.
    pub fn pop(&mut self, config: CodelConfig, now: Time, queue: &mut impl Head) -> Option<Packet> {
        let (mut packet, mut is_late) = self.take(config, now, queue);
        if self.is_dropping {
            self.is_dropping = is_late;
            while let Some(late) = packet.filter(|_| self.is_dropping && now >= self.drop_next) {
                self.count = self.count.saturating_add(1);
                queue.discard(late);
                (packet, is_late) = self.take(config, now, queue);
                self.is_dropping = is_late;
                if is_late {
                    self.drop_next = self.after(config, self.drop_next);
                }
            }
        } else if let Some(late) = packet.filter(|_| is_late) {
            queue.discard(late);
            (packet, _) = self.take(config, now, queue);
            self.begin(config, now);
        }
        self.is_dropping &= packet.is_some();
        packet
    }

    /// Begins to drop, after the first drop.
    fn begin(&mut self, config: CodelConfig, now: Time) {
        self.is_dropping = true;
        let more = self.count.saturating_sub(self.first_count);
        let left_ps = now.as_ps().saturating_sub(self.drop_next.as_ps());
        let is_recent = left_ps < REMEMBERED_INTERVALS * config.interval.as_ps();
        self.count = if more > 1 && is_recent { more } else { 1 };
        self.first_count = self.count;
        self.drop_next = self.after(config, now);
    }

    /// Returns the time of the drop after one at `at`: section 5.3's control law,
    /// interval / sqrt(count).
    fn after(&self, config: CodelConfig, at: Time) -> Time {
        let interval_ps = u128::from(config.interval.as_ps());
        let square = interval_ps * interval_ps / u128::from(self.count.max(1));
        // The root of a span's square is a span.
        at + Span::from_ps(u64::try_from(square.isqrt()).unwrap_or(u64::MAX))
    }

    /// Takes a packet, and returns whether all have waited too long for an interval.
    fn take(
        &mut self,
        config: CodelConfig,
        now: Time,
        queue: &mut impl Head,
    ) -> (Option<Packet>, bool) {
        let Some((packet, bytes_behind)) = queue.take() else {
            self.above_until = None;
            return (None, false);
        };
        let waited = now.since(packet.queued);
        if waited < config.target || bytes_behind <= u64::from(config.frame_bytes) {
            self.above_until = None;
            return (Some(packet), false);
        }
        let until = *self.above_until.get_or_insert(now + config.interval);
        (Some(packet), now > until)
    }
}
