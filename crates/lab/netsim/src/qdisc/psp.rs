// SPDX-License-Identifier: MIT OR Apache-2.0
//! psp: queues of packets around the scheduler of `core/`, the same code that the
//! kernel module runs.

use capture::record::Kind;
use pace::{ClassConfig, Scheduler};
use units::clock::Time;

use super::answer::{Next, Verdict, classify};
use super::fifo::Limit;
use super::psp_core::{Core, PspClass, PspType};
use super::psp_flows::Flows;
use crate::filter::Filter;
use crate::packet::{Header, Packet};

/// Options of the qdisc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PspConfig {
    /// Configuration of the port.
    pub port: pace::Config,
    /// Type of its gap frames: PAUSE, or another one.
    pub gap: Kind,
    /// Major number of its classes.
    pub major: u32,
    /// Minor number of the class of packets that no filter matches; 0: none.
    pub default: u32,
    pub classes: Vec<PspClass>,
    /// Filters, in order of preference.
    pub filters: Vec<Filter>,
    /// Number of packets without a class that may wait; they are sent as from a
    /// normal class.
    pub unclassified_packets: u32,
}

#[derive(Debug)]
struct Class {
    config: PspClass,
    /// Index of its queue in [`Core::queues`].
    queue: usize,
}

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

impl Psp {
    /// Makes an empty qdisc, with its byte clock at 0 at `now`.
    ///
    /// # Errors
    /// Returns the core's error, and the minor number of the class that it
    /// concerns, if it concerns one.
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
                PspType::Static(kind) => kind,
                PspType::Dynamic { rate_bps, .. } => ClassConfig::Paced { rate_bps },
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

    /// Changes the type of a class from `now` on.
    ///
    /// # Errors
    /// Returns the core's error; [`pace::Error::UnknownClass`] also if there is no
    /// such class or it is a dynamic one.
    pub fn change(&mut self, minor: u32, kind: ClassConfig, now: Time) -> Result<(), pace::Error> {
        let class = self.classes.iter_mut().find(|c| c.config.minor == minor);
        let Some(class) = class.filter(|c| matches!(c.config.kind, PspType::Static(_))) else {
            return Err(pace::Error::UnknownClass);
        };
        let id = self.core.queues[class.queue].id;
        self.core.scheduler.change_class(id, &kind, now.as_ns())?;
        class.config.kind = PspType::Static(kind);
        Ok(())
    }

    pub(super) fn gap_kind(&self) -> Kind {
        self.gap
    }

    /// Returns the core's counters.
    pub fn stats(&self) -> pace::Stats {
        self.core.scheduler.stats()
    }

    /// Enqueues a packet. O(log classes + filters + classes of the configuration).
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
