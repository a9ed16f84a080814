// SPDX-License-Identifier: MIT OR Apache-2.0
//! A node: its threads and the queues between them (paper 004, figure 4).

use std::collections::VecDeque;

use units::clock::{Span, Time};
use units::ethernet::wire_bytes;

use super::measure::LostTime;
use super::{Clock, NodeConfig, NodeCounts};

/// A packet, as nodes and segments pass it on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub stream: usize,
    pub number: u64,
    pub frame_bytes: u32,
    /// When its sender's ITM thread handed it over.
    pub born: Time,
    /// When the last node handed it to a device.
    pub released: Time,
    /// When RT-IP would have taken it if the last segment had been idle.
    pub expected: Time,
    /// Time that it has lost so far.
    pub lost: LostTime,
    /// Number of hops completed, the path back included.
    pub hop: usize,
    /// Periods that it has lost so far.
    pub late: u64,
}

/// Number of periods whose unused reservations may be used later: packets can be
/// late by as many nodes as each delay them by a period.
const SAVED_PERIODS: u64 = 8;

/// Packets of one stream, in one direction, that wait for ITM.
#[derive(Debug)]
pub(super) struct RtQueue {
    pub port: usize,
    pub reserve: u32,
    pub packets: VecDeque<Packet>,
    /// Credit of the stream, in packets x ps of a reserved period: each run of ITM
    /// adds `reserve` x the time since the run before.
    credit: u64,
}

impl RtQueue {
    /// Makes the queue of a stream that was silent before, and so has full credit.
    pub fn new(port: usize, reserve: u32) -> Self {
        Self {
            port,
            reserve,
            packets: VecDeque::new(),
            credit: u64::MAX,
        }
    }

    /// Adds the credit of a run of ITM, `since` after the last.
    fn begin(&mut self, since: Span, reserved_period: Span) {
        let reserve = u64::from(self.reserve);
        let brought = reserve.saturating_mul(since.as_ps());
        let most = reserve.saturating_mul(reserved_period.as_ps());
        let most = most.saturating_mul(SAVED_PERIODS + 1);
        self.credit = self.credit.saturating_add(brought).min(most);
    }

    /// Removes and returns the first packet, if the stream has credit for it.
    fn pop(&mut self, reserved_period: Span) -> Option<Packet> {
        let left = self.credit.checked_sub(reserved_period.as_ps())?;
        let packet = self.packets.pop_front()?;
        self.credit = left;
        Some(packet)
    }
}

/// A node and its state.
#[derive(Debug)]
pub(super) struct Node {
    pub config: NodeConfig,
    /// Packets that SLIH has received, with the instant at which it has queued
    /// each.
    pub received: VecDeque<(Time, Packet)>,
    pub rt: Vec<RtQueue>,
    /// By port: packets from the IP thread, with the instant at which it has queued
    /// each.
    pub nrt: Vec<VecDeque<(Time, Packet)>>,
    pub counts: NodeCounts,
    /// By port: index in `rt` of the stream whose late packets are the first to use
    /// the NRT budget. Streams behind it may find the budget spent.
    late_first_from: Vec<usize>,
    slih_free: Time,
    ip_free: Time,
}

fn pop_if<T>(queue: &mut VecDeque<T>, fits: impl Fn(&T) -> bool) -> Option<T> {
    queue.front().filter(|of| fits(of))?;
    queue.pop_front()
}

impl Clock {
    /// Returns the first run of RT-IP at or after `at`.
    pub(super) fn run_from(&self, at: Time) -> Time {
        let since = at.since(Time::START + self.phase).as_ps();
        let runs = since.div_ceil(self.period.as_ps().max(1));
        Time::START + self.phase + Span::from_ps(runs * self.period.as_ps())
    }

    /// Returns how many whole periods lie between.
    pub(super) fn periods(&self, from: Time, to: Time) -> u64 {
        to.since(from).as_ps() / self.period.as_ps().max(1)
    }

    /// Returns `at`, or the end of the periodic threads' slots if `at` falls into
    /// them.
    fn outside_slots(&self, at: Time) -> Time {
        let Some(before) = at.as_ps().checked_sub(self.phase.as_ps()) else {
            return at;
        };
        let into = before % self.period.as_ps().max(1);
        let slots = 2 * self.slot.as_ps();
        at + Span::from_ps(slots.saturating_sub(into))
    }
}

impl Node {
    pub fn new(config: NodeConfig) -> Self {
        let ports = config.ports.len();
        Self {
            config,
            received: VecDeque::new(),
            rt: Vec::new(),
            nrt: (0..ports).map(|_| VecDeque::new()).collect(),
            counts: NodeCounts::default(),
            late_first_from: vec![0; ports],
            slih_free: Time::START,
            ip_free: Time::START,
        }
    }

    pub fn has_itm(&self) -> bool {
        self.config.nrt_bytes.is_some()
    }

    /// SLIH receives the packet that arrived at `now`. Returns when it has put it
    /// into a queue.
    pub fn slih(&mut self, now: Time) -> Time {
        self.slih_free = self.slih_free.max(now) + self.config.packet_cost;
        self.slih_free
    }

    /// The IP thread takes the packet that SLIH queued at `at`. Returns when it has
    /// routed it.
    pub fn ip(&mut self, at: Time) -> Time {
        let begin = at.max(self.ip_free);
        let cost = self.config.packet_cost;
        if cost > Span::ZERO {
            self.ip_free = self.config.clock.outside_slots(begin) + cost;
            return self.ip_free;
        }
        begin
    }

    /// Runs RT-IP: takes the packets that have arrived, as many as its slot has
    /// time for.
    pub fn rt_ip(&mut self, now: Time, taken: &mut Vec<Packet>) {
        let most = match self.config.packet_cost.as_ps() {
            0 => u64::MAX,
            cost => self.config.clock.slot.as_ps() / cost,
        };
        let has_come = |(at, _): &(Time, Packet)| *at <= now;
        for _ in 0..most {
            let Some((_, packet)) = pop_if(&mut self.received, has_come) else {
                return;
            };
            taken.push(packet);
        }
        let period = self.config.clock.period;
        for (_, packet) in self.received.iter_mut().take_while(|of| has_come(of)) {
            packet.lost.deferred = packet.lost.deferred + period;
            self.counts.slot_overruns += 1;
        }
    }

    /// Runs ITM: takes the packets that a device may send in this period, in order.
    ///
    /// If the NRT budget was too small for all late packets, the next run begins
    /// behind the stream that was served last, as the router's ITM thread does.
    pub fn itm(&mut self, now: Time, port: usize, taken: &mut Vec<Packet>) {
        let Some(budgets) = &self.config.nrt_bytes else {
            return;
        };
        let mut nrt_bytes = budgets.get(port).copied().unwrap_or(0);
        let first = self.late_first_from.get(port).copied().unwrap_or(0);
        let counts = &mut self.counts;
        let (period, reserved) = (self.config.clock.period, self.config.reserved_period);
        for queue in self.rt.iter_mut().filter(|queue| queue.port == port) {
            queue.begin(period, reserved);
            let own = (0..queue.reserve).map_while(|_| queue.pop(reserved));
            taken.extend(own);
        }
        let streams = self.rt.len();
        let (mut next_first, mut is_short) = (0, false);
        for index in (0..streams).map(|number| (first + number) % streams) {
            let Some(queue) = self.rt.get_mut(index).filter(|of| of.port == port) else {
                continue;
            };
            // At most one period's backlog is sent.
            let late = if self.config.late_first {
                queue.reserve
            } else {
                0
            };
            for _ in 0..late {
                let next = queue.packets.front();
                let bytes = next.map_or(0, |next| u64::from(wire_bytes(next.frame_bytes)));
                let Some(left) = nrt_bytes.checked_sub(bytes) else {
                    break;
                };
                let Some(packet) = queue.pop(reserved) else {
                    break;
                };
                nrt_bytes = left;
                counts.late_first += 1;
                counts.late_first_bytes += bytes;
                taken.push(packet);
                next_first = (index + 1) % streams;
            }
            let may_send = queue.credit / reserved.as_ps().max(1);
            is_short |= may_send > 0 && !queue.packets.is_empty();
            for (packet, number) in queue.packets.iter_mut().zip(0..) {
                packet.lost.deferred = packet.lost.deferred + period;
                if number < may_send {
                    counts.deferred += 1;
                } else {
                    counts.excess += 1;
                }
            }
        }
        if let Some(of_port) = self.late_first_from.get_mut(port) {
            *of_port = if is_short { next_first } else { 0 };
        }
        let queue = &mut self.nrt[port];
        loop {
            let fits = |(at, packet): &(Time, Packet)| {
                *at <= now && u64::from(wire_bytes(packet.frame_bytes)) <= nrt_bytes
            };
            let Some((_, packet)) = pop_if(queue, fits) else {
                break;
            };
            nrt_bytes -= u64::from(wire_bytes(packet.frame_bytes));
            taken.push(packet);
        }
        let waits = queue.iter().take_while(|(at, _)| *at <= now).count();
        counts.nrt_deferred += waits as u64;
    }

    /// Queues an NRT packet for the budget of a device; `false`: there is no room.
    pub fn queue_nrt(&mut self, port: usize, at: Time, packet: Packet) -> bool {
        let queue = &mut self.nrt[port];
        let has_room = queue.len() < self.config.queue_frames;
        if has_room {
            queue.push_back((at, packet))
        } else {
            self.counts.nrt_dropped += 1
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRE_BYTES: u64 = 1_538;

    fn packet(stream: usize, number: u64) -> Packet {
        Packet {
            stream,
            number,
            frame_bytes: 1_514,
            born: Time::START,
            released: Time::START,
            expected: Time::START,
            lost: LostTime::default(),
            hop: 1,
            late: 0,
        }
    }

    /// Makes a node with two RT streams, 2 packets reserved each, and a budget of
    /// `nrt_packets`.
    fn node(late_first: bool, nrt_packets: u64) -> Node {
        let span = Span::from_ns;
        let mut node = Node::new(NodeConfig {
            ports: vec![(0, 0)],
            clock: Clock {
                period: span(10_000_000),
                phase: span(3_000_000),
                slot: span(1_000_000),
            },
            nrt_bytes: Some(vec![nrt_packets * WIRE_BYTES + WIRE_BYTES / 2]),
            late_first,
            reserved_period: span(10_000_000),
            packet_cost: Span::ZERO,
            queue_frames: 8,
        });
        for _ in 0..2 {
            node.rt.push(RtQueue::new(0, 2));
        }
        node
    }

    fn run(node: &mut Node) -> Vec<(usize, u64)> {
        let mut taken = vec![];
        node.itm(Time::START, 0, &mut taken);
        taken.iter().map(|p| (p.stream, p.number)).collect()
    }

    fn fill(node: &mut Node, rt: [u64; 2], nrt: u64) {
        for (stream, count) in rt.into_iter().enumerate() {
            let packets = (0..count).map(|number| packet(stream, number));
            node.rt[stream].packets.extend(packets);
        }
        for number in 0..nrt {
            node.queue_nrt(0, Time::START, packet(2, number));
        }
    }

    #[test]
    fn reservations_first_then_what_the_budget_allows() {
        let mut node = node(true, 3);
        fill(&mut node, [1, 2], 5);
        let first = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)];
        assert_eq!(run(&mut node), first);
        assert_eq!(node.counts.nrt_deferred, 2);
        assert_eq!(run(&mut node), [(2, 3), (2, 4)]);
        assert_eq!(node.counts.late_first, 0);
    }

    #[test]
    fn late_packets_go_first_and_the_nrt_budget_pays() {
        let mut node = node(true, 3);
        fill(&mut node, [4, 3], 5);
        // Two packets within and one beyond each reservation leave nothing of a budget of
        // three.
        let first = [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2)];
        assert_eq!(run(&mut node), first);
        assert_eq!(node.counts.late_first, 3);
        assert_eq!(node.counts.late_first_bytes, 3 * WIRE_BYTES);
        assert_eq!((node.counts.deferred, node.counts.nrt_deferred), (0, 5));
    }

    #[test]
    fn late_packets_beyond_the_budget_wait_and_are_counted() {
        let mut node = node(true, 1);
        fill(&mut node, [4, 0], 0);
        assert_eq!(run(&mut node), [(0, 0), (0, 1), (0, 2)]);
        assert_eq!((node.counts.late_first, node.counts.deferred), (1, 1));
        let period = node.config.clock.period;
        assert_eq!(node.rt[0].packets[0].lost.deferred, period);
    }

    /// A stream offers 30 times its reservation in every period. Once its credit is used it
    /// gets its reservation alone, and NRT all of its budget.
    #[test]
    fn excess_gets_no_more_than_is_reserved() {
        let mut node = node(true, 3);
        let mut sent = [0; 3];
        let periods = 30;
        for _ in 0..periods {
            fill(&mut node, [60, 0], 3);
            run(&mut node).iter().for_each(|(s, _)| sent[*s] += 1);
        }
        let saved = 2 * SAVED_PERIODS;
        assert_eq!(sent[0], 2 * periods + saved);
        // The budget paid for late packets, at most two in a period.
        assert_eq!(node.counts.late_first, saved);
        assert_eq!(sent[2], 3 * periods - saved);
        assert!(node.counts.excess > 0);
    }

    /// The NRT budget pays for one late packet a period. Two streams send packets in pairs,
    /// alternately, so one of them has a late packet in each period. A third stream behind them
    /// is late once, and must not stay late for good.
    #[test]
    fn each_stream_has_a_share_of_what_the_nrt_budget_pays() {
        let mut node = node(true, 1);
        node.rt = (0..3).map(|_| RtQueue::new(0, 1)).collect();
        let arrive = |node: &mut Node, stream: usize, packets: u64| {
            let packets = (0..packets).map(|number| packet(stream, number));
            node.rt[stream].packets.extend(packets);
        };
        arrive(&mut node, 2, 1);
        let mut waiting = vec![];
        for run_number in 0..12 {
            arrive(&mut node, run_number % 2, 2);
            arrive(&mut node, 2, 1);
            run(&mut node);
            waiting.push(node.rt[2].packets.len());
        }
        assert_eq!(waiting.last(), Some(&0), "{waiting:?}");
    }

    #[test]
    fn without_late_first_a_stream_sends_only_its_reservation() {
        let mut node = node(false, 3);
        fill(&mut node, [3, 0], 1);
        assert_eq!(run(&mut node), [(0, 0), (0, 1), (2, 0)]);
        assert_eq!((node.counts.late_first, node.counts.deferred), (0, 1));
        fill(&mut node, [2, 0], 0);
        // A stream that is one period behind stays one period behind.
        assert_eq!(run(&mut node), [(0, 2), (0, 0)]);
        assert_eq!(node.counts.deferred, 2);
    }

    #[test]
    fn a_full_queue_drops_nrt() {
        let mut node = node(true, 1);
        fill(&mut node, [0, 0], 10);
        assert_eq!(node.counts.nrt_dropped, 2);
    }

    #[test]
    fn a_slot_has_time_for_a_number_of_packets() {
        let mut node = node(true, 1);
        node.config.packet_cost = Span::from_ns(300_000);
        for number in 0..5 {
            let at = node.slih(Time::START);
            node.received.push_back((at, packet(0, number)));
        }
        let mut taken = vec![];
        // The fifth packet comes at 1.5 ms, after this run.
        node.rt_ip(Time::from_ps(1_400_000_000), &mut taken);
        assert_eq!(taken.len(), 3);
        assert_eq!(node.counts.slot_overruns, 1);
        node.rt_ip(Time::from_ps(1_500_000_000), &mut taken);
        assert_eq!(taken.len(), 5);
    }

    #[test]
    fn the_ip_thread_waits_for_the_end_of_slots() {
        let mut node = node(true, 1);
        let at = |us: u64| Time::from_ps(us * 1_000_000);
        assert_eq!(node.ip(at(3_500)), at(3_500));
        node.config.packet_cost = Span::from_ns(100_000);
        assert_eq!(node.ip(at(2_000)), at(2_100));
        // The slots are from 3 to 5 ms and from 13 to 15 ms.
        assert_eq!(node.ip(at(3_500)), at(5_100));
        assert_eq!(node.ip(at(14_999)), at(15_100));
    }

    #[test]
    fn runs_and_periods() {
        let clock = node(true, 1).config.clock;
        let at = |us: u64| Time::from_ps(us * 1_000_000);
        assert_eq!(clock.run_from(at(0)), at(3_000));
        assert_eq!(clock.run_from(at(3_000)), at(3_000));
        assert_eq!(clock.run_from(at(3_001)), at(13_000));
        assert_eq!(clock.periods(at(3_000), at(23_000)), 2);
        assert_eq!(clock.periods(at(23_000), at(3_000)), 0);
    }
}
