// SPDX-License-Identifier: MIT OR Apache-2.0
//! fq: a queue for each flow, served in deficit round robin, each limited to the
//! rate that its socket requests and to `maxrate`.
//!
//! Unlike in Linux, a packet whose socket requests a rate is paced by the queue
//! itself rather than by a departure time in the packet, and there are no GSO
//! bursts: see docs/use/simulator.md.

use std::collections::{HashMap, VecDeque};

use units::clock::{Span, Time};

use super::answer::{Next, Verdict};
use crate::packet::{Connection, Packet};
use crate::rate_arithmetic::{BYTE, span_up};

/// Options, as in tc-fq(8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqConfig {
    /// Limit of all packets.
    pub limit: u32,
    /// Limit of the packets of one flow.
    pub flow_limit: u32,
    /// Bytes that one flow may send in a round.
    pub quantum_bytes: u32,
    /// Bytes that a new flow may send in its first round.
    pub initial_quantum_bytes: u32,
    /// Highest rate of any flow, bit/s; 0: no limit.
    pub maxrate_bps: u64,
}

#[derive(Debug)]
struct Flow {
    queue: VecDeque<Packet>,
    credit: i64,
    /// Earliest instant at which the flow may send.
    next: Time,
    /// Whether the flow is in one of the lists of active flows, or throttled.
    listed: bool,
}

#[derive(Debug)]
pub struct Fq {
    config: FqConfig,
    flows: Vec<Flow>,
    indices: HashMap<Connection, usize>,
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    throttled: Vec<usize>,
    packets: usize,
}

/// Longest time that a flow waits after one packet.
const WAIT_MAX: Span = Span::from_ns(1_000_000_000);

impl Fq {
    /// Makes an empty qdisc.
    pub fn new(config: FqConfig) -> Self {
        Self {
            config,
            flows: Vec::new(),
            indices: HashMap::new(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            throttled: Vec::new(),
            packets: 0,
        }
    }

    pub(super) fn enqueue(&mut self, packet: Packet) -> Verdict {
        if self.packets >= self.config.limit as usize {
            return Verdict::Refused;
        }
        let flows = &mut self.flows;
        let index = *self.indices.entry(packet.connection()).or_insert_with(|| {
            flows.push(Flow {
                queue: VecDeque::new(),
                credit: 0,
                next: Time::START,
                listed: false,
            });
            flows.len() - 1
        });
        let flow = &mut self.flows[index];
        if flow.queue.len() >= self.config.flow_limit as usize {
            return Verdict::Refused;
        }
        flow.queue.push_back(packet);
        self.packets += 1;
        if !flow.listed {
            flow.listed = true;
            flow.credit = flow.credit.max(self.config.initial_quantum_bytes.into());
            self.new_flows.push_back(index);
        }
        Verdict::Queued
    }

    /// Decides what to send at `now`. O(throttled flows).
    pub(super) fn next(&mut self, now: Time) -> Next {
        self.wake(now);
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new {
                &mut self.new_flows
            } else {
                &mut self.old_flows
            };
            let Some(&index) = list.front() else {
                break;
            };
            let flow = &mut self.flows[index];
            if flow.credit <= 0 {
                flow.credit += i64::from(self.config.quantum_bytes);
                list.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            let Some(head) = flow.queue.front().copied() else {
                list.pop_front();
                // An empty new flow moves to the list of old flows once, so that
                // its next packet does not make it a new flow again.
                if is_new && !self.old_flows.is_empty() {
                    self.old_flows.push_back(index);
                } else {
                    flow.listed = false;
                }
                continue;
            };
            if flow.next > now {
                list.pop_front();
                self.throttled.push(index);
                continue;
            }
            flow.queue.pop_front();
            self.packets -= 1;
            flow.credit -= i64::from(head.frame_bytes);
            self.space(index, &head, now);
            return Next::Send(head);
        }
        let next = self.throttled.iter().map(|i| self.flows[*i].next).min();
        next.map_or(Next::Idle, Next::Wait)
    }

    fn wake(&mut self, now: Time) {
        let mut at = 0;
        while let Some(&index) = self.throttled.get(at) {
            if self.flows[index].next <= now {
                self.throttled.remove(at);
                self.old_flows.push_back(index);
            } else {
                at += 1;
            }
        }
    }

    /// Sets the flow's next instant after a packet that left at `now`.
    fn space(&mut self, index: usize, packet: &Packet, now: Time) {
        let flow = &mut self.flows[index];
        let caps = [packet.pacing_bps, self.config.maxrate_bps];
        let Some(rate_bps) = caps.into_iter().filter(|rate| *rate > 0).min() else {
            return;
        };
        let mut bytes = packet.frame_bytes;
        if packet.pacing_bps == 0 {
            // A flow whose socket requests no rate sends a whole round at once.
            if flow.credit > 0 {
                return;
            }
            bytes = bytes.max(self.config.quantum_bytes);
        }
        let span = span_up(u128::from(bytes) * BYTE, rate_bps).min(WAIT_MAX);
        // A delay of the timer is made up for, up to half of the spacing.
        let late = if flow.next > Time::START {
            now.since(flow.next).min(Span::from_ps(span.as_ps() / 2))
        } else {
            Span::ZERO
        };
        flow.next = now + (span - late);
    }

    pub(super) fn len(&self) -> usize {
        self.packets
    }
}
