// SPDX-License-Identifier: MIT OR Apache-2.0
//! fq_codel: a queue for each flow, served in deficit round robin, new flows first
//! (RFC 8290), each held short by CoDel.
//!
//! Unlike in Linux, no two flows share a queue, and packets are marked by no flow:
//! the simulator's TCP has no ECN.

use std::collections::{HashMap, VecDeque};

use units::clock::Time;

use super::answer::{Next, Verdict};
use super::codel::{Codel, CodelConfig, Head};
use crate::packet::{Connection, Packet};

/// Options, as in tc-fq_codel(8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelConfig {
    /// Limit of all packets.
    pub limit: u32,
    /// Bytes that a flow may send in a round.
    pub quantum_bytes: u32,
    /// Most packets that are dropped at once if the limit is exceeded.
    pub drop_batch: u32,
    /// When a flow's queue is too long.
    pub codel: CodelConfig,
}

#[derive(Debug)]
struct Flow {
    queue: VecDeque<Packet>,
    bytes: u64,
    deficit: i64,
    /// Whether the flow is in one of the lists.
    listed: bool,
    codel: Codel,
}

#[derive(Debug)]
pub struct FqCodel {
    config: FqCodelConfig,
    flows: Vec<Flow>,
    indices: HashMap<Connection, usize>,
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    packets: usize,
    bytes: u64,
    /// Dropped, and not yet reported.
    dropped: VecDeque<Packet>,
    /// Leaves as soon as what was dropped before it is reported.
    taken: Option<Packet>,
}

/// The queue of one flow, for CoDel.
struct FlowHead<'a> {
    qdisc: &'a mut FqCodel,
    index: usize,
}

impl Head for FlowHead<'_> {
    /// As in Linux, the bytes behind it are those of all flows.
    fn take(&mut self) -> Option<(Packet, u64)> {
        let flow = &mut self.qdisc.flows[self.index];
        let packet = flow.queue.pop_front()?;
        flow.bytes -= u64::from(packet.frame_bytes);
        self.qdisc.bytes -= u64::from(packet.frame_bytes);
        self.qdisc.packets -= 1;
        Some((packet, self.qdisc.bytes))
    }

    fn discard(&mut self, packet: Packet) {
        self.qdisc.dropped.push_back(packet);
    }
}

impl FqCodel {
    /// Makes an empty qdisc.
    pub fn new(config: FqCodelConfig) -> Self {
        Self {
            config,
            flows: Vec::new(),
            indices: HashMap::new(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            packets: 0,
            bytes: 0,
            dropped: VecDeque::new(),
            taken: None,
        }
    }

    /// Enqueues a packet; if there are too many then, drops the first ones of the
    /// flow that has most bytes. O(1), and O(flows) at the limit.
    pub(super) fn enqueue(&mut self, packet: Packet) -> Verdict {
        let flows = &mut self.flows;
        let index = *self.indices.entry(packet.connection()).or_insert_with(|| {
            flows.push(Flow {
                queue: VecDeque::new(),
                bytes: 0,
                deficit: 0,
                listed: false,
                codel: Codel::new(),
            });
            flows.len() - 1
        });
        let flow = &mut self.flows[index];
        flow.queue.push_back(packet);
        flow.bytes += u64::from(packet.frame_bytes);
        self.bytes += u64::from(packet.frame_bytes);
        self.packets += 1;
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.config.quantum_bytes.into();
            self.new_flows.push_back(index);
        }
        if self.packets <= self.config.limit as usize {
            return Verdict::Queued;
        }
        if self.drop_from_fattest() != index {
            return Verdict::Queued;
        }
        let own = self.dropped.pop_back();
        own.map_or(Verdict::Queued, Verdict::Displaced)
    }

    /// Drops up to half of the bytes of the flow that has most, and returns it.
    fn drop_from_fattest(&mut self) -> usize {
        // The first of equals.
        let indices = (0..self.flows.len()).rev();
        let fattest = indices.max_by_key(|index| self.flows[*index].bytes);
        let fattest = fattest.unwrap_or_default();
        let most = self.config.drop_batch.max(1);
        let enough = self.flows[fattest].bytes / 2;
        let mut head = FlowHead {
            qdisc: self,
            index: fattest,
        };
        let (mut count, mut dropped_bytes) = (0, 0);
        while count < most && (count == 0 || dropped_bytes < enough) {
            let Some((packet, _)) = head.take() else {
                break;
            };
            head.discard(packet);
            dropped_bytes += u64::from(packet.frame_bytes);
            count += 1;
        }
        self.flows[fattest].codel.count_overflow(count);
        fattest
    }

    /// Decides what to send at `now`. Amortised O(1) a packet.
    pub(super) fn next(&mut self, now: Time) -> Next {
        if let Some(packet) = self.dropped.pop_front() {
            return Next::Drop(packet);
        }
        if let Some(packet) = self.taken.take() {
            return Next::Send(packet);
        }
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
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.config.quantum_bytes);
                list.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            let mut codel = flow.codel;
            let mut head = FlowHead { qdisc: self, index };
            let packet = codel.pop(head.qdisc.config.codel, now, &mut head);
            self.flows[index].codel = codel;
            let Some(packet) = packet else {
                self.leave_list(index, is_new);
                continue;
            };
            self.flows[index].deficit -= i64::from(packet.frame_bytes);
            // What was dropped before it is reported first.
            match self.dropped.pop_front() {
                None => return Next::Send(packet),
                Some(dropped) => {
                    self.taken = Some(packet);
                    return Next::Drop(dropped);
                }
            }
        }
        self.dropped.pop_front().map_or(Next::Idle, Next::Drop)
    }

    /// Takes a flow without packets out of its list: a new one goes to the end of the
    /// old ones once, so that its next packet does not make it new again.
    fn leave_list(&mut self, index: usize, is_new: bool) {
        if is_new {
            self.new_flows.pop_front();
        } else {
            self.old_flows.pop_front();
        }
        if is_new && !self.old_flows.is_empty() {
            self.old_flows.push_back(index);
        } else {
            self.flows[index].listed = false;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.packets + self.dropped.len() + usize::from(self.taken.is_some())
    }
}
