// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts and routers that send by periods over segments: TTCP/ITM and the
//! Tactix router of paper 004 (2.2.1 and 3.1).
//!
//! Once a period each node's ITM thread hands a bounded amount to its devices:
//! of each real-time (RT) stream what is reserved for it, and of everything
//! else (NRT) what the node's NRT budget allows. A router's RT-IP thread runs
//! one slot before: it routes what RT packets have come by then. With
//! late-first, RT packets that are late go first too, and the NRT budget of that
//! period pays. Late is what a stream has not sent of its reservations of the
//! periods before; what it sends beyond that is excess, and waits.

mod measure;
mod network;
mod node;
mod run;

pub use measure::{Delays, NodeCounts, Overs, Stage, StreamMeasure};
pub use network::{ConfigError, Network};
pub use run::{Ran, run_cell};

use crate::segment::SegmentConfig;
use crate::source::SourceConfig;
use units::clock::{Span, Time};

/// What a stream is to nodes on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Has a reservation.
    Rt,
    /// Has none.
    Nrt,
}

/// One step of a path: from a node over a segment to the next node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Who sends.
    pub node: usize,
    /// On which segment.
    pub segment: usize,
    /// Who receives.
    pub to: usize,
}

/// What a stream sends.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// So many packets each period of its sender, as its ITM thread runs.
    Periodic {
        /// Packets.
        packets: u32,
        /// From here on.
        start: Time,
        /// Not from here on.
        stop: Time,
    },
    /// Datagrams at a rate.
    Datagrams(SourceConfig),
}

/// A stream.
#[derive(Clone, Debug)]
pub struct StreamConfig {
    /// Whether it has a reservation.
    pub class: Class,
    /// Each packet, Ethernet header included, FCS not.
    pub frame_bytes: u32,
    /// Packets a period reserved at each node; of RT.
    pub reserve: u32,
    /// To its receiver; at least one hop.
    pub path: Vec<Hop>,
    /// From there back to its sender, where every packet is sent back as a router
    /// forwards; empty: it ends at the receiver.
    pub back: Vec<Hop>,
    /// What comes back is taken by the sender's periodic thread, not as it comes.
    pub taken_by_period: bool,
    /// What is sent.
    pub traffic: Traffic,
}

/// A node's periodic threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Above zero.
    pub period: Span,
    /// RT-IP runs at `phase` and every period after it.
    pub phase: Span,
    /// ITM runs so long after RT-IP, and each has so long; below the period.
    pub slot: Span,
}

/// A host or router.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Segment and station number of each device.
    pub ports: Vec<(usize, usize)>,
    /// Its threads.
    pub clock: Clock,
    /// NRT budget of each device, bytes on the wire a period; `None`: no ITM,
    /// everything goes to the device at once.
    pub nrt_bytes: Option<Vec<u64>>,
    /// Late RT packets go first.
    pub late_first: bool,
    /// Period that reservations are of. `clock.period` is longer at a node that is
    /// short of time.
    pub reserved_period: Span,
    /// Time that a thread needs for a packet.
    pub packet_cost: Span,
    /// NRT packets that wait for the budget at each device.
    pub queue_frames: usize,
}

/// Segments, nodes and streams; their numbers are their places.
#[derive(Clone, Debug, Default)]
pub struct NetworkConfig {
    /// What is sent on.
    pub segments: Vec<SegmentConfig>,
    /// Hosts and routers.
    pub nodes: Vec<NodeConfig>,
    /// What is sent.
    pub streams: Vec<StreamConfig>,
}
