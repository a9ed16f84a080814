// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulates hosts and routers that send periodically over segments: TTCP/ITM and
//! the Tactix router of paper 004 (2.2.1 and 3.1).
//!
//! Once a period each node's ITM thread hands a bounded amount to its devices: for
//! each real-time (RT) stream what is reserved for it, and for everything else
//! (NRT) what the node's NRT budget allows. A router's RT-IP thread runs one slot
//! earlier: it routes the RT packets that have arrived by then. With late-first,
//! late RT packets are sent first too, and their bytes are taken from the NRT
//! budget of that period. A packet is late if it uses its stream's unused
//! reservations of earlier periods; what a stream sends beyond these is excess, and
//! waits.

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

/// How the nodes on a stream's path treat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Real-time: the stream has a reservation.
    Rt,
    /// Not real-time: the stream has no reservation.
    Nrt,
}

/// One step of a path: from a node over a segment to the next node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The sending node.
    pub node: usize,
    pub segment: usize,
    /// The receiving node.
    pub to: usize,
}

/// The traffic of a stream.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// A number of packets each period of its sender, when its ITM thread runs.
    Periodic {
        /// Packets per period.
        packets: u32,
        /// When the stream begins.
        start: Time,
        /// When the stream stops: it sends nothing at this instant or later.
        stop: Time,
    },
    /// Datagrams at a rate.
    Datagrams(SourceConfig),
}

/// Configuration of a stream.
#[derive(Clone, Debug)]
pub struct StreamConfig {
    /// Whether the stream has a reservation.
    pub class: Class,
    /// Frame length of each packet, bytes: Ethernet header included, FCS not.
    pub frame_bytes: u32,
    /// RT: packets per period reserved at each node.
    pub reserve: u32,
    /// The path to its receiver; at least one hop.
    pub path: Vec<Hop>,
    /// The path from the receiver back to the sender. The receiver returns every
    /// packet as a router forwards it; empty: the stream ends at the receiver.
    pub back: Vec<Hop>,
    /// Whether returned packets are taken by the sender's periodic thread, and not
    /// as they arrive.
    pub taken_by_period: bool,
    pub traffic: Traffic,
}

/// The timing of a node's periodic threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The period; above zero.
    pub period: Span,
    /// When RT-IP runs first; it runs every period after that.
    pub phase: Span,
    /// Length of each thread's slot: ITM runs this long after RT-IP. Below the
    /// period.
    pub slot: Span,
}

/// Configuration of a host or router.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Segment and station number of each of its devices.
    pub ports: Vec<(usize, usize)>,
    /// Timing of its threads.
    pub clock: Clock,
    /// NRT budget of each device, bytes on the wire per period; `None`: the node
    /// has no ITM, and everything goes to the device at once.
    pub nrt_bytes: Option<Vec<u64>>,
    /// Whether late RT packets are sent first.
    pub late_first: bool,
    /// The period for which reservations are made. `clock.period` is longer than
    /// this at a node that is short of time.
    pub reserved_period: Span,
    /// Time that a thread needs per packet.
    pub packet_cost: Span,
    /// Number of NRT packets that may wait for the budget at each device.
    pub queue_frames: usize,
}

/// Segments, nodes and streams; the number of each is its index.
#[derive(Clone, Debug, Default)]
pub struct NetworkConfig {
    pub segments: Vec<SegmentConfig>,
    /// Hosts and routers.
    pub nodes: Vec<NodeConfig>,
    pub streams: Vec<StreamConfig>,
}
