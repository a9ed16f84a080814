// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts on segments that send by periods: a cell with `[[segment]]` has them in place of
//! cables and flows.

use units::ethernet::{self, HEADER_BYTES, IPV4_HEADER_BYTES, UDP_HEADER_BYTES};

/// Length of the Ethernet, IPv4 and UDP headers.
const HEADERS_BYTES: u32 = HEADER_BYTES + IPV4_HEADER_BYTES + UDP_HEADER_BYTES;

/// Segments, the behaviour of their hosts, and the streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Isochronous {
    /// Period of every host.
    pub period_ns: u64,
    /// Time slot of a periodic thread.
    pub slot_ns: u64,
    /// Share of a segment's rate that reservations and NRT budgets may take, per cent.
    pub budget_pct: u64,
    /// Segments in the order of the scenario; at least one.
    pub segments: Vec<Segment>,
    /// Behaviour of the hosts, one entry for each host of the cell.
    pub nodes: Vec<Node>,
    /// Streams in the order of the scenario.
    pub streams: Vec<Stream>,
}

/// A medium or switch that several hosts send on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Name of the segment.
    pub name: String,
    /// Hosts on the segment: indices into the cell's hosts, each once; at least 2.
    pub hosts: Vec<usize>,
    /// Line rate.
    pub rate_bps: u64,
    /// Propagation delay between any two hosts, or between a host and the switch.
    pub propagation_ns: u64,
    /// Half duplex with this back-off; `None`: a switch with full-duplex ports.
    pub backoff: Option<Backoff>,
    /// Most frames that wait at each device, and at each port of a switch.
    pub queue_frames: usize,
}

/// How long a host waits after a collision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// The back-off of IEEE 802.3.
    Standard,
    /// The host that had the medium last waits 2 slots, then none.
    CaptureAvoiding,
    /// The back-off of IEEE 802.3, but a host that has sent a frame keeps the medium until it
    /// has no more to send.
    WholeBursts,
}

/// How a host on segments sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Whether the host sends by periods; else each packet goes to the device at once.
    pub itm: bool,
    /// Whether RT packets beyond their reservation are sent first, on the NRT budget.
    pub late_first: bool,
    /// Begin of its periods; `None`: the seed chooses it.
    pub phase_ns: Option<u64>,
    /// Millionths by which its period is longer.
    pub ppm: u64,
    /// Time that each thread needs for a packet.
    pub packet_cost_ns: u64,
    /// NRT budget of each of its devices, wire bytes per period; `None`: the device's share of
    /// the bytes that are left.
    pub nrt_bytes: Option<u64>,
    /// Most NRT packets that wait for their budget at each device.
    pub queue_frames: usize,
}

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Index into [`Isochronous::segments`].
    pub segment: usize,
    /// Sending host: index into the cell's hosts.
    pub from: usize,
    /// Receiving host: index into the cell's hosts.
    pub to: usize,
}

/// Type of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// Real time: packets each period, with a reservation at every node.
    Rt {
        /// Packets each period.
        packets: u32,
        /// Packets reserved each period.
        reserve: u32,
        /// The receiver sends each packet back. The sender's periodic thread takes it if
        /// `by_period`; else it counts at its arrival.
        ping: Option<ByPeriod>,
    },
    /// Best-effort traffic at a fixed rate.
    Nrt {
        /// Link-layer rate.
        rate_bps: u64,
        /// Packets sent at once.
        batch: u32,
    },
}

/// Whether the periodic thread takes the packets that come back.
pub type ByPeriod = bool;

/// A stream of packets from one host to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Name of the stream.
    pub name: String,
    /// Type of the stream.
    pub kind: StreamKind,
    /// Payload of each packet.
    pub payload_bytes: u32,
    /// The path to its receiver; at least one hop.
    pub path: Vec<Hop>,
    /// Start after t = 0.
    pub start_ns: u64,
    /// Stop after t = 0.
    pub stop_ns: u64,
}

impl Stream {
    /// Returns the frame length of each packet: Ethernet header included, FCS not.
    pub fn frame_bytes(&self) -> u32 {
        self.payload_bytes + HEADERS_BYTES
    }

    /// Returns the wire length of each packet: with padding, FCS, preamble and gap.
    pub fn wire_bytes(&self) -> u32 {
        ethernet::wire_bytes(self.frame_bytes())
    }

    /// Returns the path back of a stream whose receiver sends it back; empty for others.
    pub fn back(&self) -> Vec<Hop> {
        match self.kind {
            StreamKind::Rt { ping: Some(_), .. } => {
                let turned = |hop: &Hop| Hop {
                    segment: hop.segment,
                    from: hop.to,
                    to: hop.from,
                };
                self.path.iter().rev().map(turned).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the wire bytes reserved each period on each hop.
    pub fn reserved_bytes(&self) -> u64 {
        match self.kind {
            StreamKind::Rt { reserve, .. } => u64::from(reserve) * u64::from(self.wire_bytes()),
            StreamKind::Nrt { .. } => 0,
        }
    }
}

impl Isochronous {
    /// Returns the wire bytes that reservations and NRT budgets may take in a period: on a
    /// shared segment those of all hosts, on a switched one those of each line.
    pub fn budget_bytes(&self, segment: usize) -> u64 {
        let rate_bps = self.segments.get(segment).map_or(0, |s| s.rate_bps);
        let bits = u128::from(rate_bps) * u128::from(self.period_ns) * u128::from(self.budget_pct);
        u64::try_from(bits / 8 / 100 / 1_000_000_000).unwrap_or(u64::MAX)
    }

    /// Returns the wire bytes reserved each period where `host` sends and receives on a
    /// segment: on a shared one all, on a switched one those of the fuller of its two lines.
    pub fn reserved_bytes(&self, segment: usize, host: usize) -> u64 {
        let sum = |counts: &dyn Fn(&Hop) -> bool| {
            let hops = |stream: &Stream| {
                let on = |hop: &Hop| hop.segment == segment && counts(hop);
                let back = stream.back();
                let hops = stream
                    .path
                    .iter()
                    .chain(&back)
                    .filter(|hop| on(hop))
                    .count();
                hops as u64 * stream.reserved_bytes()
            };
            self.streams.iter().map(hops).sum::<u64>()
        };
        match self.segments.get(segment).map(|s| s.backoff) {
            Some(Some(_)) => sum(&|_| true),
            _ => sum(&|hop| hop.from == host).max(sum(&|hop| hop.to == host)),
        }
    }

    /// Returns the NRT budget of a host's device on a segment, wire bytes per period: the
    /// configured one, or an even share of the bytes that reservations and configured budgets
    /// leave.
    pub fn nrt_bytes(&self, segment: usize, host: usize) -> u64 {
        let own = |host: usize| self.nodes.get(host).and_then(|node| node.nrt_bytes);
        if let Some(bytes) = own(host) {
            return bytes;
        }
        let rest = self
            .budget_bytes(segment)
            .saturating_sub(self.reserved_bytes(segment, host));
        match self.segments.get(segment) {
            Some(of) if of.backoff.is_some() => {
                let taken = of.hosts.iter().filter_map(|host| own(*host)).sum::<u64>();
                let others = of.hosts.iter().filter(|host| own(**host).is_none()).count();
                rest.saturating_sub(taken) / others.max(1) as u64
            }
            _ => rest,
        }
    }
}
