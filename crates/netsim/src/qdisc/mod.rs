// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues of a host's devices. Each is told of packets and of time, and
//! answers what is to be sent; none has a clock or a timer of its own.

mod cqf;
mod fifo;
mod fq;
mod htb;
mod netem;
mod psp;
mod psp_flows;
mod tbf;

pub use cqf::{CQF_STREAMS, Cqf, CqfConfig};
pub use fifo::{Fifo, Limit};
pub use fq::{Fq, FqConfig};
pub use htb::{Htb, HtbClass, HtbConfig};
pub use netem::{Netem, NetemConfig};
pub use psp::{Psp, PspClass, PspConfig, PspKind};
pub use tbf::{Tbf, TbfConfig};

use capture::record::Kind;

use crate::filter::Filter;
use crate::packet::{Header, Packet};
use units::clock::Time;

/// What became of a packet given to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is in the queue.
    Queued,
    /// There was no room, and its sender knows (NET_XMIT_DROP).
    Refused,
    /// It is gone, and its sender does not know (netem's loss).
    Lost,
}

/// What a device should do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the queue is empty.
    Idle,
    /// Send this packet.
    Send(Packet),
    /// Fill so much of the wire, overhead included.
    Gap {
        /// Wire bytes.
        wire_bytes: u32,
    },
    /// Ask again at this instant, later than now.
    Wait(Time),
    /// This packet is dropped; ask again.
    Drop(Packet),
}

/// A host's queueing discipline. The names and their options are those of
/// tc(8); what differs from Linux stands with each.
#[derive(Debug)]
pub enum Qdisc {
    /// pfifo, bfifo.
    Fifo(Fifo),
    /// tbf, or a shaper that a timer tick serves.
    Tbf(Box<Tbf>),
    /// htb.
    Htb(Box<Htb>),
    /// fq.
    Fq(Box<Fq>),
    /// netem.
    Netem(Box<Netem>),
    /// Cyclic queuing and forwarding.
    Cqf(Box<Cqf>),
    /// psp: the scheduler of `core/`.
    Psp(Box<Psp>),
}

impl Qdisc {
    /// Takes a packet, which comes at `packet.queued`.
    pub fn enqueue(&mut self, packet: Packet, header: &Header) -> Verdict {
        match self {
            Self::Fifo(q) => q.enqueue(packet),
            Self::Tbf(q) => q.enqueue(packet),
            Self::Htb(q) => q.enqueue(packet, header),
            Self::Fq(q) => q.enqueue(packet),
            Self::Netem(q) => q.enqueue(packet),
            Self::Cqf(q) => q.enqueue(packet, header),
            Self::Psp(q) => q.enqueue(packet, header),
        }
    }

    /// What to do at `now`, when the wire is free. After `Send`, `Gap` and
    /// `Drop` it has been done: the next call answers what comes after.
    pub fn next(&mut self, now: Time) -> Next {
        match self {
            Self::Fifo(q) => q.pop().map_or(Next::Idle, Next::Send),
            Self::Tbf(q) => q.next(now),
            Self::Htb(q) => q.next(now),
            Self::Fq(q) => q.next(now),
            Self::Netem(q) => q.next(now),
            Self::Cqf(q) => q.next(now),
            Self::Psp(q) => q.next(now),
        }
    }

    /// What its gap frames are, if it sends any.
    #[must_use]
    pub fn gap_kind(&self) -> Kind {
        match self {
            Self::Psp(q) => q.gap_kind(),
            _ => Kind::Pause,
        }
    }

    /// Packets in it.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Fifo(q) => q.len(),
            Self::Tbf(q) => q.len(),
            Self::Htb(q) => q.len(),
            Self::Fq(q) => q.len(),
            Self::Netem(q) => q.len(),
            Self::Cqf(q) => q.len(),
            Self::Psp(q) => q.len(),
        }
    }

    /// There is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The minor number of the class a packet belongs to: what its socket asks for,
/// then the first filter that matches, then `default`.
fn classify(
    major: u32,
    packet: &Packet,
    header: &Header,
    filters: &[Filter],
    default: u32,
    exists: impl Fn(u32) -> bool,
) -> u32 {
    let asked = packet.class & 0xffff;
    if packet.class >> 16 == major && packet.class != 0 && exists(asked) {
        return asked;
    }
    let found = filters.iter().find(|filter| filter.matches(header));
    found.map_or(default, |filter| filter.minor)
}
