// SPDX-License-Identifier: MIT OR Apache-2.0
//! netem: delay, loss and reordering by seed.

use std::collections::VecDeque;

use units::clock::{Span, Time};

use super::answer::{Next, Verdict};
use crate::packet::Packet;
use crate::rng::{Chance, Rng};

/// Options, as of tc-netem(8): chances are independent of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetemConfig {
    /// Every packet is held for so long ...
    pub delay: Span,
    /// ... more or less by up to this, uniform; packets pass each other then.
    pub jitter: Span,
    /// Dropped, and its sender does not know.
    pub loss: Chance,
    /// Not held at all: passes those that are.
    pub reorder: Chance,
    /// Only every so many-th packet may pass the others; at least 1.
    pub gap: u32,
    /// Packets that may be held.
    pub limit: u32,
}

/// The emulator.
#[derive(Debug)]
pub struct Netem {
    config: NetemConfig,
    rng: Rng,
    /// By the time at which they may go, then as they came.
    held: VecDeque<(Time, Packet)>,
    since_passed: u32,
}

impl Netem {
    /// Holds nothing.
    #[must_use]
    pub fn new(config: NetemConfig, rng: Rng) -> Self {
        Self {
            config,
            rng,
            held: VecDeque::new(),
            since_passed: 0,
        }
    }

    /// O(packets that it passes).
    pub(super) fn enqueue(&mut self, packet: Packet) -> Verdict {
        if self.rng.happens(self.config.loss) {
            return Verdict::Lost;
        }
        if self.held.len() >= self.config.limit as usize {
            return Verdict::Refused;
        }
        self.since_passed += 1;
        let may_pass = self.since_passed >= self.config.gap;
        if may_pass && self.rng.happens(self.config.reorder) {
            self.since_passed = 0;
            self.held.push_front((packet.queued, packet));
            return Verdict::Queued;
        }
        let jitter = self.config.jitter;
        let spread = self.rng.within(jitter + jitter);
        let at = packet.queued + ((self.config.delay + spread) - jitter);
        // Without jitter nothing is passed and this is one comparison.
        let place = self
            .held
            .iter()
            .rposition(|(other, _)| *other <= at)
            .map_or(0, |last| last + 1);
        self.held.insert(place, (at, packet));
        Verdict::Queued
    }

    pub(super) fn next(&mut self, now: Time) -> Next {
        match self.held.front() {
            None => Next::Idle,
            Some((at, _)) if *at > now => Next::Wait(*at),
            Some(_) => self
                .held
                .pop_front()
                .map_or(Next::Idle, |(_, p)| Next::Send(p)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }
}
