// SPDX-License-Identifier: MIT OR Apache-2.0
//! psp: the scheduler of `core/`, the same code that the kernel module runs,
//! around queues of packets.

use capture::record::Kind;
use pace::{ClassConfig, ClassId, Decision, Scheduler};
use units::clock::{Span, Time};

use super::psp_flows::Flows;
use super::{Fifo, Limit, Next, Verdict, classify};
use crate::filter::Filter;
use crate::packet::{Header, Packet};

/// Kind of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PspKind {
    /// As the core knows it: paced, sharing, normal, rt or nrt.
    Static(ClassConfig),
    /// Each TCP flow at packet size x cwnd / RTT (paper 003), within these.
    Dynamic {
        /// Of what is no flow, and of flows before there is an RTT.
        rate_bps: u64,
        /// No flow is slower, unless its socket asks for it.
        floor_bps: u64,
        /// No flow is faster.
        ceil_bps: u64,
    },
}

/// One class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PspClass {
    /// Minor number.
    pub minor: u32,
    /// Kind.
    pub kind: PspKind,
    /// What its queue holds; of a dynamic class, the queue of each flow.
    pub limit: Limit,
    /// A packet that has waited for longer when its turn comes is dropped.
    pub deadline: Option<Span>,
}

/// The whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PspConfig {
    /// The port.
    pub port: pace::Config,
    /// What its gap frames are: PAUSE, or another kind.
    pub gap: Kind,
    /// Major number of its classes.
    pub major: u32,
    /// Minor number of the class of what no filter claims; 0: none.
    pub default: u32,
    /// Classes.
    pub classes: Vec<PspClass>,
    /// In order of preference.
    pub filters: Vec<Filter>,
    /// Packets of no class that may wait; they are sent as from a normal class.
    pub unclassified_packets: u32,
}

/// A class of the core and its packets.
#[derive(Debug)]
struct Queue {
    id: ClassId,
    packets: Fifo,
    deadline: Option<Span>,
}

#[derive(Debug)]
struct Class {
    config: PspClass,
    /// Place in [`Psp::queues`].
    queue: usize,
}

/// The qdisc.
#[derive(Debug)]
pub struct Psp {
    core: Core,
    gap: Kind,
    major: u32,
    default: u32,
    filters: Vec<Filter>,
    classes: Vec<Class>,
    flows: Flows,
    unclassified: usize,
}

/// The scheduler and the queues it decides among.
pub(super) struct Core {
    scheduler: Scheduler,
    queues: Vec<Queue>,
    /// By the core's own number of a class: place of its queue.
    places: Vec<usize>,
    packets: usize,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("queues", &self.queues)
            .field("stats", &self.scheduler.stats())
            .finish_non_exhaustive()
    }
}

impl Psp {
    /// Silent, its byte clock at 0 at `now`.
    ///
    /// # Errors
    /// What the core refuses: the minor number of the class it is about, if it
    /// is one, and why.
    pub fn new(config: PspConfig, now: Time) -> Result<Self, (Option<u32>, pace::Error)> {
        let scheduler = Scheduler::new(&config.port, now.as_ns()).map_err(|e| (None, e))?;
        let mut core = Core {
            scheduler,
            queues: Vec::new(),
            places: Vec::new(),
            packets: 0,
        };
        let mut classes = Vec::with_capacity(config.classes.len());
        for class in config.classes {
            let kind = match class.kind {
                PspKind::Static(kind) => kind,
                PspKind::Dynamic { rate_bps, .. } => ClassConfig::Paced { rate_bps },
            };
            let queue = core
                .add(&kind, class.limit, class.deadline)
                .map_err(|e| (Some(class.minor), e))?;
            classes.push(Class {
                config: class,
                queue,
            });
        }
        let normal = ClassConfig::Normal {
            quantum_bytes: None,
        };
        let limit = Limit::Packets(config.unclassified_packets);
        let unclassified = core.add(&normal, limit, None).map_err(|e| (None, e))?;
        Ok(Self {
            core,
            gap: config.gap,
            major: config.major,
            default: config.default,
            filters: config.filters,
            classes,
            flows: Flows::default(),
            unclassified,
        })
    }

    /// Another kind for a class, from now on.
    ///
    /// # Errors
    /// What the core refuses; [`pace::Error::UnknownClass`] too if there is no
    /// such class or it is a dynamic one.
    pub fn change(&mut self, minor: u32, kind: ClassConfig) -> Result<(), pace::Error> {
        let class = self.classes.iter_mut().find(|c| c.config.minor == minor);
        let Some(class) = class.filter(|c| matches!(c.config.kind, PspKind::Static(_))) else {
            return Err(pace::Error::UnknownClass);
        };
        let id = self.core.queues[class.queue].id;
        self.core.scheduler.change_class(id, &kind)?;
        class.config.kind = PspKind::Static(kind);
        Ok(())
    }

    pub(super) fn gap_kind(&self) -> Kind {
        self.gap
    }

    /// The core's counters.
    #[must_use]
    pub fn stats(&self) -> pace::Stats {
        self.core.scheduler.stats()
    }

    /// O(log classes + filters + classes of the configuration).
    pub(super) fn enqueue(&mut self, packet: Packet, header: &Header) -> Verdict {
        let exists = |minor| self.classes.iter().any(|c| c.config.minor == minor);
        let (filters, default) = (&self.filters, self.default);
        let minor = classify(self.major, &packet, header, filters, default, exists);
        let class = self.classes.iter().find(|c| c.config.minor == minor);
        let queue = match class {
            None => self.unclassified,
            Some(class) => {
                let own = self.flows.queue(&class.config, &packet, &mut self.core);
                own.unwrap_or(class.queue)
            }
        };
        self.core.enqueue(queue, packet)
    }

    pub(super) fn next(&mut self, now: Time) -> Next {
        self.core.next(now)
    }

    pub(super) fn len(&self) -> usize {
        self.core.packets
    }
}

impl Core {
    /// A class with a queue: its place.
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

    /// Another rate for the class of a queue.
    pub(super) fn set_rate(&mut self, place: usize, rate_bps: u64) -> Result<(), pace::Error> {
        let id = self.queues[place].id;
        self.scheduler
            .change_class(id, &ClassConfig::Paced { rate_bps })
    }

    fn enqueue(&mut self, place: usize, packet: Packet) -> Verdict {
        let queue = &mut self.queues[place];
        let verdict = queue.packets.enqueue(packet);
        if verdict != Verdict::Queued {
            return verdict;
        }
        if let Ok(wire_bytes) = self.scheduler.wire_bytes(packet.frame_bytes) {
            let now_ns = packet.queued.as_ns();
            let _ = self.scheduler.arrived(queue.id, wire_bytes, now_ns);
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

    /// Tells the core how long the first frame of a queue is, for guard.
    fn show_head(&mut self, place: usize) {
        let queue = &self.queues[place];
        let head = queue.packets.head().map(|packet| packet.frame_bytes);
        let wire = head.and_then(|bytes| self.scheduler.wire_bytes(bytes).ok());
        if let Some(wire_bytes) = wire {
            let _ = self.scheduler.set_head(queue.id, wire_bytes);
        }
    }

    fn next(&mut self, now: Time) -> Next {
        let now_ns = now.as_ns();
        match self.scheduler.next(now_ns) {
            Decision::Idle => Next::Idle,
            Decision::Gap { wire_bytes } => {
                self.scheduler.gap_sent(wire_bytes);
                Next::Gap { wire_bytes }
            }
            Decision::Wait { until_ns } => {
                // Rounded down, now is not before the instant it was woken at.
                let until_ns = until_ns.max(now_ns + 1);
                Next::Wait(Time::START + Span::from_ns(until_ns))
            }
            Decision::Send(id) => {
                let place = self.places.get(id.index() as usize).copied();
                place.map_or(Next::Idle, |place| self.send(place, now))
            }
        }
    }

    fn send(&mut self, place: usize, now: Time) -> Next {
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
