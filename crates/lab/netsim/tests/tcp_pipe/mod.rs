// SPDX-License-Identifier: MIT OR Apache-2.0
//! The smallest network on which TCP can be tested: one stream through a line with a queue, a
//! token-bucket policer, random loss and a delay, and acknowledgements back. It is not the
//! simulator.

#![allow(dead_code)] // each user needs its own part

use std::collections::VecDeque;

use netsim::tcp::{Receiver, ReceiverConfig, Segment, Sender, SenderConfig};
use sender_log::variables::Observer;
use units::clock::{Span, Time};

/// Bytes on the wire beside each payload: preamble, header, check sequence and gap of Ethernet,
/// IP, and TCP with timestamps.
const OVERHEAD_BYTES: u64 = 8 + 14 + 4 + 12 + 20 + 20 + 12;
/// Bytes of a frame that a policer counts beside its payload.
const IP_OVERHEAD_BYTES: u64 = 20 + 20 + 12;

/// Drops packets that find no tokens; tokens come every `refresh`.
#[derive(Clone, Debug)]
pub struct Policer {
    pub rate_bps: u64,
    pub burst_bytes: u64,
    pub refresh: Span,
    /// When the first refresh comes.
    pub phase: Span,
}

#[derive(Clone, Debug)]
pub struct Path {
    pub rate_bps: u64,
    /// Delay in one direction, after the line.
    pub delay: Span,
    pub policer: Option<Policer>,
    /// Lost packets in a million.
    pub loss_ppm: u64,
    pub ack_loss_ppm: u64,
    /// Segments in a million that come a tenth of the delay late.
    pub reorder_ppm: u64,
    /// Room in the interface's queue, in segments.
    pub queue_segments: usize,
    /// Time of the sender's processor for an acknowledgement, and for each packet of the queue
    /// that the sender looks at.
    pub ack_cost: Span,
    pub step_cost: Span,
    /// Most acknowledgements that wait for the processor; further ones are lost.
    pub ack_ring: usize,
    pub seed: u64,
    /// Time after which the test gives up.
    pub limit: Span,
}

impl Default for Path {
    fn default() -> Path {
        Path {
            rate_bps: 1_000_000_000,
            delay: Span::from_ns(5_000_000),
            policer: None,
            loss_ppm: 0,
            ack_loss_ppm: 0,
            reorder_ppm: 0,
            queue_segments: 10_000,
            ack_cost: Span::ZERO,
            step_cost: Span::ZERO,
            ack_ring: usize::MAX,
            seed: 1,
            limit: Span::from_ns(3_600_000_000_000),
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub finished: bool,
    pub time: Span,
    pub dropped: u64,
    pub local_drops: u64,
    /// Acknowledgements that found no room at the sender's processor.
    pub lost_acks: u64,
    pub events: u64,
    pub sender: Sender,
    pub receiver: Receiver,
}

struct Bucket {
    policer: Policer,
    tokens: u64,
    next: Time,
}

impl Bucket {
    fn passes(&mut self, now: Time, bytes: u64) -> bool {
        let step = self.policer.refresh;
        let gain = (u128::from(self.policer.rate_bps) * u128::from(step.as_ps())
            / 8_000_000_000_000) as u64;
        while self.next <= now {
            self.tokens = (self.tokens + gain).min(self.policer.burst_bytes);
            self.next += step;
        }
        let passes = bytes <= self.tokens;
        self.tokens -= if passes { bytes } else { 0 };
        passes
    }
}

/// Draws a chance by hashing a counter, which is good enough for losses and the same on every
/// machine.
fn chance(state: &mut u64, ppm: u64) -> bool {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) % 1_000_000 < ppm
}

struct World<'a> {
    path: &'a Path,
    now: Time,
    line_free: Time,
    /// When each segment in the interface's queue ends its transmission.
    queue: VecDeque<Time>,
    data: VecDeque<(Time, Segment)>,
    acks: VecDeque<(Time, Segment)>,
    bucket: Option<Bucket>,
    cpu_free: Time,
    lost_acks: u64,
    chance: u64,
    dropped: u64,
    local_drops: u64,
}

impl World<'_> {
    /// Sends a segment. Returns `false` if the interface's queue is full.
    fn send(&mut self, segment: Segment) -> bool {
        while self.queue.front().is_some_and(|&end| end <= self.now) {
            self.queue.pop_front();
        }
        if self.queue.len() >= self.path.queue_segments {
            self.local_drops += 1;
            return false;
        }
        let bytes = u64::from(segment.len_bytes) + OVERHEAD_BYTES;
        let ps = bytes * 8 * 1_000_000_000_000 / self.path.rate_bps;
        self.line_free = self.line_free.max(self.now) + Span::from_ps(ps);
        self.queue.push_back(self.line_free);
        let at = self.line_free;
        let counted = u64::from(segment.len_bytes) + IP_OVERHEAD_BYTES;
        let policed = self.bucket.as_mut().is_none_or(|b| b.passes(at, counted));
        if !policed || chance(&mut self.chance, self.path.loss_ppm) {
            self.dropped += 1;
            return true;
        }
        let mut arrival = at + self.path.delay;
        if chance(&mut self.chance, self.path.reorder_ppm) {
            arrival += Span::from_ps(self.path.delay.as_ps() / 10);
        }
        let place = self.data.partition_point(|&(other, _)| other <= arrival);
        self.data.insert(place, (arrival, segment));
        true
    }

    /// Keeps the sender's processor busy with its last work.
    fn busy_with(&mut self, steps: u64) {
        let cost = self.path.step_cost.as_ps().saturating_mul(steps);
        self.cpu_free = self.cpu_free.max(self.now) + Span::from_ps(cost);
    }

    /// Returns the acknowledgement that the processor handles now, and drops those without room
    /// in the ring.
    fn next_ack(&mut self) -> Option<(Time, Segment)> {
        let first = self.acks.pop_front();
        self.cpu_free = self.cpu_free.max(self.now) + self.path.ack_cost;
        let arrived = self.acks.partition_point(|entry| entry.0 <= self.now);
        if arrived > self.path.ack_ring {
            self.lost_acks += (arrived - self.path.ack_ring) as u64;
            self.acks.drain(self.path.ack_ring..arrived);
        }
        first
    }

    fn acknowledge(&mut self, segment: Segment) {
        if !chance(&mut self.chance, self.path.ack_loss_ppm) {
            self.acks.push_back((self.now + self.path.delay, segment));
        }
    }
}

/// Sends `bytes` and runs until all are acknowledged.
pub fn run<O: Observer>(
    path: &Path,
    sender: &SenderConfig,
    receiver: &ReceiverConfig,
    bytes: u64,
    observer: &mut O,
) -> Outcome {
    let mut receiver = Receiver::new(receiver);
    let mut config = sender.clone();
    config.initial_window_bytes = receiver.window_bytes();
    let mut sender = Sender::new(&config);
    sender.write(bytes);
    sender.close();
    let mut world = World {
        path,
        now: Time::START,
        line_free: Time::START,
        queue: VecDeque::new(),
        data: VecDeque::new(),
        acks: VecDeque::new(),
        bucket: path.policer.clone().map(|policer| Bucket {
            tokens: policer.burst_bytes,
            next: Time::START + policer.phase,
            policer,
        }),
        cpu_free: Time::START,
        lost_acks: 0,
        chance: path.seed,
        dropped: 0,
        local_drops: 0,
    };
    let mut events = 0;
    let mut steps_before = 0;
    loop {
        while let Some(segment) = sender.poll_transmit(world.now) {
            if !world.send(segment) {
                sender.on_local_drop(world.now, observer);
            }
        }
        if let Some(ack) = receiver.poll_transmit(world.now) {
            world.acknowledge(ack);
        }
        let steps = sender.counters().scoreboard_steps - steps_before;
        world.busy_with(steps);
        // Acknowledgements and timers wait for the sender's processor.
        let idle = |at: Time| at.max(world.cpu_free);
        let ack = world.acks.front().map(|entry| idle(entry.0));
        let timer = sender.next_timer().map(idle);
        let data = world.data.front().map(|entry| entry.0);
        let next = [data, ack, timer, receiver.next_timer()];
        let next = next.into_iter().flatten().min();
        let over = next.is_none_or(|at| at.since(Time::START) > path.limit);
        if sender.is_finished() || over {
            break;
        }
        world.now = next.unwrap_or(world.now).max(world.now);
        events += 1;
        steps_before = sender.counters().scoreboard_steps;
        if data.is_some_and(|at| at <= world.now) {
            if let Some((_, segment)) = world.data.pop_front() {
                receiver.on_segment(world.now, &segment);
            }
        } else if ack.is_some_and(|at| at <= world.now) {
            if let Some((_, ack)) = world.next_ack() {
                sender.on_segment(world.now, &ack, observer);
            }
        } else {
            if timer.is_some_and(|at| at <= world.now) {
                sender.on_timer(world.now, observer);
            }
            receiver.on_timer(world.now);
        }
    }
    Outcome {
        finished: sender.is_finished(),
        time: world.now.since(Time::START),
        dropped: world.dropped,
        local_drops: world.local_drops,
        lost_acks: world.lost_acks,
        events,
        sender,
        receiver,
    }
}
