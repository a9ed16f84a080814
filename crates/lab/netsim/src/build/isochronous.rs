// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds hosts on segments that send periodically, from a cell of a scenario.

use scenario::Cell;
use scenario::isochronous::{self, Isochronous, StreamKind};
use units::clock::{Span, Time};

use crate::itm::{Class, Clock, Hop, NetworkConfig, NodeConfig, StreamConfig, Traffic};
use crate::rate_arithmetic::Instant;
use crate::rng::Rng;
use crate::segment::{Backoff, SegmentConfig};
use crate::source::SourceConfig;

/// Numbers of the random streams: those of stations begin at 0, as many per segment
/// as it may have stations; then those of nodes, then those of traffic.
const STATIONS: u64 = 64;
const PHASES: u64 = 1 << 32;
const STARTS: u64 = 2 << 32;

const MILLION: u64 = 1_000_000;

/// Builds the network of a cell that has segments and streams in place of cables
/// and flows. All its random numbers follow from `seed`: back-offs, phases that are
/// not given, and the delay of each NRT stream's start, which is less than the time
/// between two of its bursts.
pub fn network(cell: &Cell, of: &Isochronous, seed: u64) -> NetworkConfig {
    let segments = of.segments.iter().enumerate();
    let streams = of.streams.iter().enumerate();
    NetworkConfig {
        segments: segments
            .map(|(number, segment)| SegmentConfig {
                stations: segment.hosts.len(),
                rate_bps: segment.rate_bps,
                propagation: Span::from_ns(segment.propagation_ns),
                queue_frames: segment.queue_frames,
                backoff: segment.backoff.map(|backoff| match backoff {
                    isochronous::Backoff::Standard => Backoff::Standard,
                    isochronous::Backoff::CaptureAvoiding => Backoff::CaptureAvoiding,
                    isochronous::Backoff::WholeBursts => Backoff::WholeBursts,
                }),
                seed,
                stream: STATIONS * number as u64,
            })
            .collect(),
        nodes: (0..cell.hosts.len())
            .map(|host| node(of, host, seed))
            .collect(),
        streams: streams
            .map(|(number, stream)| config(stream, Rng::new(seed, STARTS + number as u64)))
            .collect(),
    }
}

fn node(of: &Isochronous, host: usize, seed: u64) -> NodeConfig {
    let node = &of.nodes[host];
    let ports = of
        .segments
        .iter()
        .enumerate()
        .filter_map(|(number, segment)| {
            let station = segment.hosts.iter().position(|at| *at == host)?;
            Some((number, station))
        });
    let ports: Vec<_> = ports.collect();
    let period_ps = Span::from_ns(of.period_ns).as_ps();
    let period = Span::from_ps(period_ps + period_ps / MILLION * node.ppm);
    let phase = match node.phase_ns {
        Some(phase_ns) => Span::from_ns(phase_ns),
        None => Rng::new(seed, PHASES + host as u64).within(period),
    };
    let budgets = ports.iter().map(|(number, _)| of.nrt_bytes(*number, host));
    NodeConfig {
        nrt_bytes: node.itm.then(|| budgets.collect()),
        ports,
        clock: Clock {
            period,
            phase,
            slot: Span::from_ns(of.slot_ns),
        },
        late_first: node.late_first,
        reserved_period: Span::from_ns(of.period_ns),
        packet_cost: Span::from_ns(node.packet_cost_ns),
        queue_frames: node.queue_frames,
    }
}

fn config(stream: &isochronous::Stream, mut chance: Rng) -> StreamConfig {
    let hops = |hops: &[isochronous::Hop]| {
        let hop = |hop: &isochronous::Hop| Hop {
            node: hop.from,
            segment: hop.segment,
            to: hop.to,
        };
        hops.iter().map(hop).collect()
    };
    let start = Time::START + Span::from_ns(stream.start_ns);
    let stop = Time::START + Span::from_ns(stream.stop_ns);
    let frame_bytes = stream.frame_bytes();
    let (class, reserve, by_period, traffic) = match stream.kind {
        StreamKind::Rt {
            packets,
            reserve,
            ping,
        } => {
            let traffic = Traffic::Periodic {
                packets,
                start,
                stop,
            };
            (Class::Rt, reserve, ping == Some(true), traffic)
        }
        StreamKind::Nrt { rate_bps, batch } => {
            let between = Instant::default().after(frame_bytes.saturating_mul(batch), rate_bps);
            let late = chance.within(between.time.since(Time::START));
            let source = SourceConfig {
                frame_bytes,
                burst: batch,
                rate_bps: Some(rate_bps),
                buffer_bytes: None,
                on_off: None,
                start: start + late,
                stop,
                class: 0,
                classes: 1,
                ports: 1,
            };
            (Class::Nrt, 0, false, Traffic::Datagrams(source))
        }
    };
    StreamConfig {
        class,
        frame_bytes,
        reserve,
        path: hops(&stream.path),
        back: hops(&stream.back()),
        taken_by_period: by_period,
        traffic,
    }
}
