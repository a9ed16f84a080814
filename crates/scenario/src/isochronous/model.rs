// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts on segments that send by periods: what a cell with `[[segment]]` has in
//! place of cables and flows.

use units::ethernet::{self, HEADER_BYTES, IPV4_HEADER_BYTES, UDP_HEADER_BYTES};

/// Ethernet, IPv4 and UDP headers.
const HEADERS_BYTES: u32 = HEADER_BYTES + IPV4_HEADER_BYTES + UDP_HEADER_BYTES;

/// Segments, how their hosts work, and what is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Isochronous {
    /// Period of every host.
    pub period_ns: u64,
    /// Time slot of a periodic thread.
    pub slot_ns: u64,
    /// Share of a segment's rate that reservations and NRT budgets may take, per cent.
    pub budget_pct: u64,
    /// In the order of the scenario; at least one.
    pub segments: Vec<Segment>,
    /// By host, as many as the cell has.
    pub nodes: Vec<Node>,
    /// In the order of the scenario.
    pub streams: Vec<Stream>,
}

/// What several hosts send on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its name.
    pub name: String,
    /// Its stations: indices into the cell's hosts, each once; at least 2.
    pub hosts: Vec<usize>,
    /// Line rate.
    pub rate_bps: u64,
    /// Between any two stations, or a station and the switch.
    pub propagation_ns: u64,
    /// Half duplex with this back-off; `None`: a switch with full-duplex ports.
    pub backoff: Option<Backoff>,
    /// Frames that wait at each device, and at each port of a switch.
    pub queue_frames: usize,
}

/// What stations do after a collision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// As IEEE 802.3 has it.
    Standard,
    /// Who had the medium last waits 2 slots, then none.
    CaptureAvoiding,
}

/// How a host works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Sends by periods; else whatever comes goes to the device at once.
    pub itm: bool,
    /// RT packets beyond their reservation go first, and the NRT budget pays.
    pub late_first: bool,
    /// When its periods begin; `None`: by the seed.
    pub phase_ns: Option<u64>,
    /// Its period is longer by so many millionths.
    pub ppm: u64,
    /// Time that each thread needs for a packet.
    pub packet_cost_ns: u64,
    /// NRT budget of each of its devices, bytes on the wire a period; `None`: its
    /// share of what is left.
    pub nrt_bytes: Option<u64>,
    /// NRT packets that wait for it at each device.
    pub queue_frames: usize,
}

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Index into [`Isochronous::segments`].
    pub segment: usize,
    /// Index into the cell's hosts: who sends.
    pub from: usize,
    /// Who receives.
    pub to: usize,
}

/// What a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// Real time: packets each period, with a reservation at every node.
    Rt {
        /// Packets each period.
        packets: u32,
        /// Packets reserved each period.
        reserve: u32,
        /// The receiver sends each packet back; the sender's periodic thread takes
        /// it if `by_period`, else it counts when it comes.
        ping: Option<ByPeriod>,
    },
    /// Everything else, at a rate.
    Nrt {
        /// Link-layer rate.
        rate_bps: u64,
        /// Packets at a time.
        batch: u32,
    },
}

/// Whether what comes back is taken by the periodic thread.
pub type ByPeriod = bool;

/// Something that sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// What it sends.
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
    /// Of each packet: Ethernet header included, FCS not.
    #[must_use]
    pub fn frame_bytes(&self) -> u32 {
        self.payload_bytes + HEADERS_BYTES
    }

    /// Of each packet: padded, with FCS, preamble and gap.
    #[must_use]
    pub fn wire_bytes(&self) -> u32 {
        ethernet::wire_bytes(self.frame_bytes())
    }

    /// The path back of what is sent back; of others empty.
    #[must_use]
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

    /// Bytes on the wire reserved each period on each hop.
    #[must_use]
    pub fn reserved_bytes(&self) -> u64 {
        match self.kind {
            StreamKind::Rt { reserve, .. } => u64::from(reserve) * u64::from(self.wire_bytes()),
            StreamKind::Nrt { .. } => 0,
        }
    }
}

impl Isochronous {
    /// Bytes on the wire that may be sent in a period: on a shared segment by all
    /// of its stations, on a switched one on each line.
    #[must_use]
    pub fn budget_bytes(&self, segment: usize) -> u64 {
        let rate_bps = self.segments.get(segment).map_or(0, |s| s.rate_bps);
        let bits = u128::from(rate_bps) * u128::from(self.period_ns) * u128::from(self.budget_pct);
        u64::try_from(bits / 8 / 100 / 1_000_000_000).unwrap_or(u64::MAX)
    }

    /// Bytes on the wire reserved each period where `host` sends and receives on
    /// a segment: of a shared one all, of a switched one the fuller of its two lines.
    #[must_use]
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

    /// NRT budget of a host's device on a segment, bytes on the wire a period: its
    /// own, or an even share of what reservations and the others' own leave.
    #[must_use]
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
