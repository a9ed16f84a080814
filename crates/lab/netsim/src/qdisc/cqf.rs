// SPDX-License-Identifier: MIT OR Apache-2.0
//! cqf: cyclic queuing and forwarding at one port, IEEE 802.1Q-2022, annex T
//! (802.1Qch). No kernel has it as a single qdisc; only the simulator has one of
//! this name.
//!
//! Time is divided into cycles that begin at whole multiples of their length, on
//! every port at once. Stream frames that arrive in one cycle leave in the next,
//! through two queues that swap roles between cycles. A frame that does not keep to
//! its cycle is dropped: on input if it exceeds the budget (the stream filter of
//! 802.1Qci), on output if it would not end within the cycle (the gate). Other
//! frames are sent when no stream frame may be; their gate is always open.

use std::collections::VecDeque;

use units::clock::{Span, Time};
use units::ethernet::wire_bytes;

use super::answer::{Next, Verdict, classify};
use super::fifo::{Fifo, Limit};
use crate::filter::Filter;
use crate::packet::{Header, Packet};
use crate::rate_arithmetic::Instant;

/// Minor number of the class of stream frames.
pub const CQF_STREAMS: u32 = 1;

/// Options of the qdisc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CqfConfig {
    /// Length of a cycle, above 0.
    pub cycle: Span,
    /// Bytes of stream frames accepted in one cycle.
    pub budget_bytes: u64,
    /// Line rate, bit/s, by which it is decided whether a frame ends within a
    /// cycle.
    pub line_bps: u64,
    /// Major number of its one class, [`CQF_STREAMS`].
    pub major: u32,
    /// Filters, in order of preference.
    pub filters: Vec<Filter>,
    /// Number of other frames that may wait.
    pub others_packets: u32,
}

/// The qdisc: the queues of one port.
#[derive(Debug)]
pub struct Cqf {
    config: CqfConfig,
    /// Number of the current cycle of the queues.
    cycle: u64,
    /// Stream frames that arrived in this cycle, and their bytes.
    coming: VecDeque<Packet>,
    came_bytes: u64,
    /// Stream frames of the cycle before, which may leave now.
    going: VecDeque<Packet>,
    /// Stream frames that did not leave in their cycle.
    missed: VecDeque<Packet>,
    others: Fifo,
}

impl Cqf {
    /// Makes an empty qdisc, in the cycle that begins with the simulation.
    pub fn new(config: CqfConfig) -> Self {
        Self {
            cycle: 0,
            coming: VecDeque::new(),
            came_bytes: 0,
            going: VecDeque::new(),
            missed: VecDeque::new(),
            others: Fifo::new(Limit::Packets(config.others_packets)),
            config,
        }
    }

    fn cycle_ps(&self) -> u64 {
        self.config.cycle.as_ps().max(1)
    }

    /// Returns when the next cycle begins.
    fn end(&self) -> Time {
        Time::from_ps((self.cycle + 1).saturating_mul(self.cycle_ps()))
    }

    /// Advances the queues to `now`. O(frames that missed their cycle).
    fn advance(&mut self, now: Time) {
        let cycle = now.as_ps() / self.cycle_ps();
        for _ in self.cycle..cycle.min(self.cycle + 2) {
            self.missed.append(&mut self.going);
            std::mem::swap(&mut self.coming, &mut self.going);
            self.came_bytes = 0;
        }
        self.cycle = cycle;
    }

    /// Enqueues a packet. O(filters), plus O(frames that missed their cycle).
    pub(super) fn enqueue(&mut self, packet: Packet, header: &Header) -> Verdict {
        let is_there = |minor| minor == CQF_STREAMS;
        let (major, filters) = (self.config.major, &self.config.filters);
        if classify(major, &packet, header, filters, 0, is_there) != CQF_STREAMS {
            return self.others.enqueue(packet);
        }
        self.advance(packet.queued);
        let bytes = self.came_bytes + u64::from(packet.frame_bytes);
        if bytes > self.config.budget_bytes {
            return Verdict::Refused;
        }
        self.came_bytes = bytes;
        self.coming.push_back(packet);
        Verdict::Queued
    }

    pub(super) fn next(&mut self, now: Time) -> Next {
        self.advance(now);
        if let Some(packet) = self.missed.pop_front() {
            return Next::Drop(packet);
        }
        if let Some(packet) = self.going.pop_front() {
            let sending = Instant::default().after(wire_bytes(packet.frame_bytes), self.line_bps());
            return if now + sending.time.since(Time::START) <= self.end() {
                Next::Send(packet)
            } else {
                Next::Drop(packet)
            };
        }
        match self.others.pop() {
            Some(packet) => Next::Send(packet),
            None if self.coming.is_empty() => Next::Idle,
            None => Next::Wait(self.end()),
        }
    }

    fn line_bps(&self) -> u64 {
        self.config.line_bps.max(1)
    }

    pub(super) fn len(&self) -> usize {
        self.coming.len() + self.going.len() + self.missed.len() + self.others.len()
    }
}
