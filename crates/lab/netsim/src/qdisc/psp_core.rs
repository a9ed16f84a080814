// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classes of psp, and the core's scheduler with the queues that it serves.

use pace::{ClassConfig, ClassId, Decision, Scheduler};
use units::clock::{Span, Time};

use super::answer::{Next, Verdict};
use super::fifo::{Fifo, Limit};
use crate::packet::Packet;

/// Type of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PspType {
    /// A class of the core: paced, borrowing, normal, rt or nrt.
    Static(ClassConfig),
    /// Paces each TCP flow at packet size x cwnd / RTT (paper 003), within these
    /// limits.
    Dynamic {
        /// Rate of packets without a flow, and of flows before there is an RTT,
        /// bit/s.
        rate_bps: u64,
        /// Lowest rate of a flow, unless its socket requests a lower one, bit/s.
        floor_bps: u64,
        /// Highest rate of a flow, bit/s.
        ceil_bps: u64,
    },
}

/// Options of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PspClass {
    /// Minor number.
    pub minor: u32,
    pub kind: PspType,
    /// Limit of its queue; in a dynamic class, of the queue of each flow.
    pub limit: Limit,
    /// A packet that has waited longer than this when it is selected is dropped.
    pub deadline: Option<Span>,
}

/// A class of the core, and its packets.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) id: ClassId,
    pub(super) packets: Fifo,
    pub(super) deadline: Option<Span>,
}

/// The scheduler and the queues that it serves.
pub(super) struct Core {
    pub(super) scheduler: Scheduler,
    pub(super) queues: Vec<Queue>,
    /// By the core's index of a class: the index of its queue in `queues`.
    pub(super) places: Vec<usize>,
    pub(super) packets: usize,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("queues", &self.queues)
            .field("stats", &self.scheduler.stats())
            .finish_non_exhaustive()
    }
}

impl Core {
    /// Adds a class with a queue, and returns the index of the queue.
    pub(super) fn add(
        &mut self,
        kind: &ClassConfig,
        limit: Limit,
        deadline: Option<Span>,
    ) -> Result<usize, pace::Error> {
        let id = self.scheduler.add_class(kind)?;
        let place = self.queues.len();
        self.queues.push(Queue {
            id,
            packets: Fifo::new(limit),
            deadline,
        });
        let index = id.index() as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, 0);
        }
        self.places[index] = place;
        Ok(place)
    }

    /// Changes the rate of the class of a queue.
    pub(super) fn set_rate(
        &mut self,
        place: usize,
        rate_bps: u64,
        now: Time,
    ) -> Result<(), pace::Error> {
        let id = self.queues[place].id;
        self.scheduler
            .change_class(id, &ClassConfig::Paced { rate_bps }, now.as_ns())
    }

    pub(super) fn enqueue(&mut self, place: usize, packet: Packet) -> Verdict {
        let queue = &mut self.queues[place];
        let verdict = queue.packets.enqueue(packet);
        if matches!(verdict, Verdict::Refused | Verdict::Lost) {
            return verdict;
        }
        if let Ok(wire_bytes) = self.scheduler.wire_bytes(packet.frame_bytes) {
            let now_ns = packet.queued.as_ns();
            let _ = self.scheduler.arrived(queue.id, wire_bytes, now_ns);
        }
        if let Verdict::Displaced(oldest) = verdict {
            if let Ok(wire_bytes) = self.scheduler.wire_bytes(oldest.frame_bytes) {
                let now_ns = packet.queued.as_ns();
                let _ = self.scheduler.dropped(queue.id, wire_bytes, now_ns);
            }
            self.show_head(place);
            return verdict;
        }
        self.packets += 1;
        if queue.packets.len() == 1 {
            self.show_head(place);
            let id = self.queues[place].id;
            // The class exists: nothing removes one.
            let _ = self.scheduler.activate(id, packet.queued.as_ns());
        }
        Verdict::Queued
    }

    /// Passes the length of a queue's first frame to the core, for the guard band.
    pub(super) fn show_head(&mut self, place: usize) {
        let queue = &self.queues[place];
        let head = queue.packets.head().map(|packet| packet.frame_bytes);
        let wire = head.and_then(|bytes| self.scheduler.wire_bytes(bytes).ok());
        if let Some(wire_bytes) = wire {
            let _ = self.scheduler.set_head(queue.id, wire_bytes);
        }
    }

    pub(super) fn next(&mut self, now: Time) -> Next {
        let now_ns = now.as_ns();
        match self.scheduler.next(now_ns) {
            Decision::Idle => Next::Idle,
            Decision::Gap { wire_bytes } => {
                self.scheduler.gap_sent(wire_bytes);
                Next::Gap { wire_bytes }
            }
            Decision::Wait { until_ns } => {
                // `now_ns` is rounded down, but the core's instants are whole
                // nanoseconds, so it is not before the instant of the last wake-up.
                // The next one must be later than now.
                let until_ns = until_ns.max(now_ns + 1);
                Next::Wait(Time::START + Span::from_ns(until_ns))
            }
            Decision::Send(id) => {
                let place = self.places.get(id.index() as usize).copied();
                place.map_or(Next::Idle, |place| self.send(place, now))
            }
        }
    }

    pub(super) fn send(&mut self, place: usize, now: Time) -> Next {
        let queue = &mut self.queues[place];
        let id = queue.id;
        let Some(packet) = queue.packets.pop() else {
            let _ = self.scheduler.deactivate(id, now.as_ns());
            return self.next(now);
        };
        self.packets -= 1;
        let more = !queue.packets.is_empty();
        let waited = now.since(packet.queued);
        if queue.deadline.is_some_and(|deadline| waited > deadline) {
            if more {
                if let Ok(wire_bytes) = self.scheduler.wire_bytes(packet.frame_bytes) {
                    let _ = self.scheduler.dropped(id, wire_bytes, now.as_ns());
                }
                self.show_head(place);
            } else {
                let _ = self.scheduler.deactivate(id, now.as_ns());
            }
            return Next::Drop(packet);
        }
        let _ = self
            .scheduler
            .sent(id, packet.frame_bytes, more, now.as_ns());
        if more {
            self.show_head(place);
        }
        Next::Send(packet)
    }
}
