// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queueing disciplines of a host's devices. The caller passes in packets and the
//! time, and asks what to send next; a qdisc has neither a clock nor a timer of its
//! own.

mod answer;
mod codel;
mod cqf;
mod fifo;
mod fq;
mod fq_codel;
mod htb;
mod netem;
mod psp;
mod psp_core;
mod psp_flows;
mod rate_table;
mod tbf;

pub use answer::{Next, Verdict};
pub use codel::CodelConfig;
pub use cqf::{CQF_STREAMS, Cqf, CqfConfig};
pub use fifo::{Fifo, Limit};
pub use fq::{Fq, FqConfig};
pub use fq_codel::{FqCodel, FqCodelConfig};
pub use htb::{Htb, HtbClass, HtbConfig};
pub use netem::{Netem, NetemConfig};
pub use psp::{Psp, PspConfig};
pub use psp_core::{PspClass, PspType};
pub use rate_table::RateTable;
pub use tbf::{Tbf, TbfConfig};

use capture::record::Kind;

use crate::packet::{Header, Packet};
use units::clock::Time;

/// A queueing discipline of a device. The names and options are those of tc(8);
/// differences from Linux are documented with each.
#[derive(Debug)]
pub enum Qdisc {
    /// pfifo, bfifo.
    Fifo(Fifo),
    /// tbf, or a shaper that runs only at timer ticks.
    Tbf(Box<Tbf>),
    Htb(Box<Htb>),
    Fq(Box<Fq>),
    FqCodel(Box<FqCodel>),
    Netem(Box<Netem>),
    /// Cyclic queuing and forwarding.
    Cqf(Box<Cqf>),
    /// psp: the scheduler of `core/`.
    Psp(Box<Psp>),
}

impl Qdisc {
    /// Enqueues a packet that arrives at `packet.queued`.
    pub fn enqueue(&mut self, packet: Packet, header: &Header) -> Verdict {
        match self {
            Self::Fifo(q) => q.enqueue(packet),
            Self::Tbf(q) => q.enqueue(packet),
            Self::Htb(q) => q.enqueue(packet, header),
            Self::Fq(q) => q.enqueue(packet),
            Self::FqCodel(q) => q.enqueue(packet),
            Self::Netem(q) => q.enqueue(packet),
            Self::Cqf(q) => q.enqueue(packet, header),
            Self::Psp(q) => q.enqueue(packet, header),
        }
    }

    /// Returns what to do at `now`, when the wire is free. `Send`, `Gap` and `Drop`
    /// are then already accounted for: the next call returns what follows.
    pub fn next(&mut self, now: Time) -> Next {
        match self {
            Self::Fifo(q) => q.pop().map_or(Next::Idle, Next::Send),
            Self::Tbf(q) => q.next(now),
            Self::Htb(q) => q.next(now),
            Self::Fq(q) => q.next(now),
            Self::FqCodel(q) => q.next(now),
            Self::Netem(q) => q.next(now),
            Self::Cqf(q) => q.next(now),
            Self::Psp(q) => q.next(now),
        }
    }

    /// Returns the name that tc has for it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fifo(q) => q.name(),
            Self::Tbf(_) => "tbf",
            Self::Htb(_) => "htb",
            Self::Fq(_) => "fq",
            Self::FqCodel(_) => "fq_codel",
            Self::Netem(_) => "netem",
            Self::Cqf(_) => "cqf",
            Self::Psp(_) => "psp",
        }
    }

    /// Returns the type of its gap frames, if it sends any.
    pub fn gap_kind(&self) -> Kind {
        match self {
            Self::Psp(q) => q.gap_kind(),
            _ => Kind::Pause,
        }
    }

    /// Returns the number of packets in it.
    pub fn len(&self) -> usize {
        match self {
            Self::Fifo(q) => q.len(),
            Self::Tbf(q) => q.len(),
            Self::Htb(q) => q.len(),
            Self::Fq(q) => q.len(),
            Self::FqCodel(q) => q.len(),
            Self::Netem(q) => q.len(),
            Self::Cqf(q) => q.len(),
            Self::Psp(q) => q.len(),
        }
    }

    /// Returns whether it holds no packet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
