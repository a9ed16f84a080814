// SPDX-License-Identifier: MIT OR Apache-2.0
//! netem: random delay, loss and reordering, determined by the seed.

use std::collections::VecDeque;

use units::clock::{Span, Time};

use super::answer::{Next, Verdict};
use crate::packet::Packet;
use crate::rng::{Chance, Rng};

/// Options, as in tc-netem(8); the probabilities are independent of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetemConfig {
    /// Mean delay of each packet.
    pub delay: Span,
    /// Largest deviation from the mean delay, uniformly distributed; packets may
    /// then overtake each other.
    pub jitter: Span,
    /// Probability that a packet is lost without its sender being informed.
    pub loss: Chance,
    /// Probability that a packet is not delayed and overtakes those that are.
    pub reorder: Chance,
    /// Only every `gap`-th packet may overtake others; at least 1.
    pub gap: u32,
    /// Number of packets that may be held.
    pub limit: u32,
}

#[derive(Debug)]
pub struct Netem {
    config: NetemConfig,
    rng: Rng,
    /// Packets held, by the time at which they may leave, then in order of arrival.
    held: VecDeque<(Time, Packet)>,
    since_passed: u32,
}

impl Netem {
    /// Makes an empty qdisc.
    pub fn new(config: NetemConfig, rng: Rng) -> Self {
        Self {
            config,
            rng,
            held: VecDeque::new(),
            since_passed: 0,
        }
    }

    /// Enqueues a packet. O(packets that it overtakes).
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
        // Without jitter no packet is overtaken, and this is one comparison.
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
