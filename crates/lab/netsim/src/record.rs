// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records what happens in a network, in the laboratory's formats: timelines, flow
//! tables, the first bytes of frames, and the state of TCP senders
//! (docs/use/formats.md).

use std::net::IpAddr;
use std::ops::Range;

use capture::flows::{FlowKey, FlowTable};
use capture::record::{NO_FLOW, Record};
use scenario::{Cell, Direction, End, Flow, FlowKind, Window};
use sender_log::epool::Epool;
use sender_log::sample::{self, Line, TcpSample};
use sender_log::variables::{self, Moment};
use units::clock::{Span, Time};

use crate::observe::{Content, Frame, Observer, QueueDrop, StreamSample};
use crate::packet::{Header, Packet, Proto};
use crate::stops::Stops;
use crate::synth_frame;

/// The frames that one end of one cable sent.
#[derive(Debug, Default)]
pub struct Sent {
    /// Records of the frames, in order of departure.
    pub records: Vec<Record>,
    /// The flows to which [`Record::flow`] refers.
    pub flows: FlowTable,
    /// The first bytes of each data frame.
    pub snap: Vec<u8>,
    snap_bytes: usize,
    /// Indices in `flows`, by flow and direction, of packets with port offset 0.
    known: Vec<Option<u32>>,
}

/// A TCP sender's state over time.
#[derive(Debug, Default)]
pub struct Sampled {
    /// The samples, in order of time.
    pub samples: Vec<TcpSample>,
    /// The same samples as the text of `flow-NAME.tcp`.
    pub csv: String,
}

/// Records a cell. Its memory grows with the number of frames sent.
#[derive(Debug)]
pub struct Recorder {
    /// Frames sent, by device.
    pub sent: Vec<Sent>,
    /// Samples of TCP senders, by flow.
    pub tcp: Vec<Sampled>,
    /// For each sampled flow, the variables at each acknowledgement; records are
    /// thinned out if there are too many.
    pub epools: Vec<Option<Epool>>,
    /// The same within each closeup, where few records have to be dropped: the
    /// indices of flow and closeup in the cell, and the records.
    pub closeups: Vec<(usize, usize, Epool)>,
    /// How long each TCP sender stalled, by flow.
    pub stops: Vec<Stops>,
    /// Packets that queues refused or lost, by flow.
    pub refused: Vec<u64>,
    /// Packets that queues dropped for others that came later, by window and flow of the cell.
    pub displaced: Vec<Vec<u64>>,
    /// The cell's windows.
    windows: Vec<Range<Time>>,
}

/// Most records kept of one sender; each takes about 150 bytes.
const EPOOL_RECORDS: usize = 20_000;

impl Recorder {
    /// Makes a recorder for one cell. With `details`, the first bytes of frames and
    /// the variables of senders are recorded too.
    pub fn new(cell: &Cell, details: bool) -> Self {
        let is_kept = |flow: &Flow| match flow.kind {
            FlowKind::Tcp { sample_ns, .. } => details && sample_ns.is_some(),
            _ => false,
        };
        let epool = |flow| is_kept(flow).then(|| Epool::new(EPOOL_RECORDS, Moment::Ack));
        let places = (0..cell.flows.len()).filter(|flow| is_kept(&cell.flows[*flow]));
        let closeups = places.flat_map(|flow| {
            let closeups = cell.closeups.iter().enumerate();
            closeups.map(move |(place, closeup)| {
                let at = |ns| Time::START + Span::from_ns(ns);
                let (from, to) = (at(closeup.from_ns), at(closeup.to_ns));
                let epool = Epool::between(EPOOL_RECORDS, Moment::Ack, from, to);
                (flow, place, epool)
            })
        });
        let window = |window: &Window| {
            let at = |ns| Time::START + Span::from_ns(ns);
            at(window.from_ns)..at(window.to_ns)
        };
        let device = |index: usize| Sent {
            snap_bytes: if details {
                cell.cables[index / 2].snap_bytes as usize
            } else {
                0
            },
            known: vec![None; 2 * cell.flows.len()],
            ..Sent::default()
        };
        Self {
            sent: (0..2 * cell.cables.len()).map(device).collect(),
            tcp: cell.flows.iter().map(|_| Sampled::default()).collect(),
            epools: cell.flows.iter().map(epool).collect(),
            closeups: closeups.collect(),
            stops: vec![Stops::default(); cell.flows.len()],
            refused: vec![0; cell.flows.len()],
            displaced: vec![vec![0; cell.flows.len()]; cell.windows.len()],
            windows: cell.windows.iter().map(window).collect(),
        }
    }

    /// Returns the direction in which the device with this number sends.
    pub fn direction(device: usize) -> Direction {
        Direction {
            cable: device / 2,
            end: End::BOTH[device % 2],
        }
    }
}

impl Sent {
    fn flow(&mut self, content: &Content<'_>) -> u32 {
        let packet = content.packet;
        let place = 2 * packet.flow as usize + usize::from(packet.reverse);
        if packet.port > 0 {
            return self.flows.index_of(key(&content.header));
        }
        match self.known.get(place).copied().flatten() {
            Some(index) => index,
            None => {
                let index = self.flows.index_of(key(&content.header));
                if let Some(slot) = self.known.get_mut(place) {
                    *slot = Some(index);
                }
                index
            }
        }
    }
}

fn key(header: &Header) -> FlowKey {
    FlowKey::Ports {
        proto: match header.proto {
            Proto::Tcp => capture::flows::Proto::Tcp,
            Proto::Udp => capture::flows::Proto::Udp,
        },
        src: IpAddr::V4(header.src),
        sport: header.sport,
        dst: IpAddr::V4(header.dst),
        dport: header.dport,
    }
}

impl Observer for Recorder {
    fn frame(&mut self, frame: &Frame<'_>) {
        let device = frame.device as usize;
        let Some(sent) = self.sent.get_mut(device) else {
            return;
        };
        let flow = match &frame.content {
            Some(content) => sent.flow(content),
            None => NO_FLOW,
        };
        sent.records.push(Record {
            start_ps: frame.start.as_ps(),
            arrive_ps: frame.arrive.map_or(0, Time::as_ps),
            frame_bytes: frame.frame_bytes,
            wire_bytes: frame.wire_bytes,
            flow,
            kind: frame.kind,
            fate: frame.fate,
            queue: 0,
        });
        if let (Some(content), true) = (&frame.content, sent.snap_bytes > 0) {
            let end = sent.snap.len() + sent.snap_bytes;
            synth_frame::write(&mut sent.snap, content, Self::direction(device));
            sent.snap.resize(end, 0);
        }
    }

    fn dropped(&mut self, now: Time, _device: u32, packet: &Packet, why: QueueDrop) {
        let flow = packet.flow as usize;
        if let Some(count) = self.refused.get_mut(flow) {
            *count += 1;
        }
        if why != QueueDrop::Displaced || packet.reverse {
            return;
        }
        for (window, counts) in self.windows.iter().zip(&mut self.displaced) {
            if let (true, Some(count)) = (window.contains(&now), counts.get_mut(flow)) {
                *count += 1;
            }
        }
    }

    fn tcp(&mut self, now: Time, flow: u32, moment: Moment, vars: &variables::Vars) {
        if let Some(stops) = self.stops.get_mut(flow as usize) {
            stops.observe(now, vars);
        }
        if let Some(Some(epool)) = self.epools.get_mut(flow as usize) {
            variables::Observer::observe(epool, now, moment, vars);
        }
        for (of, _, epool) in &mut self.closeups {
            if *of == flow as usize {
                variables::Observer::observe(epool, now, moment, vars);
            }
        }
    }

    fn sample(&mut self, now: Time, flow: u32, stream: &StreamSample) {
        let Some(sampled) = self.tcp.get_mut(flow as usize) else {
            return;
        };
        if sampled.csv.is_empty() {
            sampled.csv.push_str(sample::HEADER);
        }
        let v = &stream.vars;
        let line = Line {
            time_ns: now.as_ns(),
            cwnd_segments: v.cwnd,
            ssthresh_segments: v.ssthresh,
            srtt_us: v.srtt.as_ns() / 1000,
            // The simulator models neither the RTT deviation nor the delivery rate.
            rttvar_us: 0,
            mss_bytes: stream.mss_bytes,
            unacked_segments: v.packets_out,
            lost_segments: v.lost_out,
            retrans_segments: stream.counters.retransmits,
            pacing_rate_bps: stream.pacing_bps,
            delivery_rate_bps: 0,
            acked_bytes: stream.acked_bytes,
            sent_bytes: stream.sent_bytes,
        };
        line.write(&mut sampled.csv);
        sampled.samples.push(line.sample());
    }
}
