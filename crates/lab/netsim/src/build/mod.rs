// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds a network from a cell of a scenario: the same file that the laboratory
//! runs. What cannot be modelled is refused, with its place in the file; what makes
//! no difference here, or only to a host's CPU, is reported in a note.

mod class;
mod cqf;
mod device_number;
mod filters;
pub mod isochronous;
mod period;
mod queues;
mod refusal;
mod streams;
mod tc_tokens;

use scenario::topology::{far_host, leaving, routes};
use scenario::{BottleneckKind, Cell, Direction, End, Flow, FlowKind, Pattern};
use units::clock::{Span, Time};
use units::ethernet::{HEADER_BYTES, IPV4_HEADER_BYTES, UDP_HEADER_BYTES, wire_bytes};

use crate::device::DeviceConfig;
use crate::network::{FlowConfig, NetworkConfig, TrafficConfig};
use crate::packet::{Header, Proto};
use crate::port::{Port, PortKind};
use crate::rate_arithmetic::Instant;
use crate::source::SourceConfig;

pub use device_number::device;
pub use queues::Change;
pub use refusal::Refusal;

/// Ethernet, IPv4 and UDP headers.
const UDP_FRAME_HEADER_BYTES: u32 = HEADER_BYTES + IPV4_HEADER_BYTES + UDP_HEADER_BYTES;
/// Socket buffer of UDP flows that specify none (docs/use/formats.md); Linux doubles
/// the requested size.
const BUFFER_BYTES: u32 = 1 << 20;
/// Defaults of a cable (docs/use/formats.md), and of its guest.
const RING: u32 = 256;
const COALESCE: (u32, u64) = (16, 20_000);
const MEMORY_BYTES: u64 = 1 << 30;

/// The network of a cell.
#[derive(Debug)]
pub struct Built {
    /// The network; device `2 x cable + end` sends from that end of that cable.
    pub network: NetworkConfig,
    /// Changes of classes while it runs, in order of time.
    pub changes: Vec<Change>,
    /// Remarks on what the scenario contains and the network does not model. The
    /// same remark has the same text in every cell.
    pub notes: Vec<String>,
}

/// Builds a cell's network. All its random numbers follow from `seed`.
///
/// # Errors
/// Returns the first thing that is not modelled.
pub fn build(cell: &Cell, seed: u64) -> Result<Built, Refusal> {
    if let Some(impairment) = cell.impairments.first() {
        return Err(Refusal {
            place: impairment.place.clone(),
            reason: "[[impairment]] is not modelled: pspacer lab run has it".to_owned(),
        });
    }
    let mut notes = notes(cell);
    let (queues, changes) = queues::read(cell)?;
    let mut network = NetworkConfig::default();
    let mut paces = Vec::new();
    for (index, queue) in queues.into_iter().enumerate() {
        paces.push(queue.paces_flows());
        let direction = Direction {
            cable: index / 2,
            end: End::BOTH[index % 2],
        };
        let qdisc = queue.qdisc(cell, direction, seed)?;
        network.devices.push(line(cell, direction, qdisc));
    }
    ports(cell, &mut network);
    let tuning = streams::sysctls(cell, &mut notes)?;
    for (index, flow) in cell.flows.iter().enumerate() {
        let path: Vec<u32> = flow.path.iter().map(|hop| device(*hop) as u32).collect();
        let reverse = path_back(cell, flow);
        let queue_paces = path.first().is_some_and(|d| paces[*d as usize]);
        let traffic = match &flow.kind {
            FlowKind::Tcp { .. } => {
                let trip = [path.as_slice(), &reverse].concat();
                let context = streams::Context {
                    tuning: &tuning,
                    round_trip: round_trip(&network, &trip),
                    queue_paces,
                    chance: (seed, index as u64),
                };
                TrafficConfig::Stream(Box::new(streams::stream(cell, flow, &context)?))
            }
            _ => TrafficConfig::Datagrams(datagrams(flow)?),
        };
        network.flows.push(FlowConfig {
            header: header(flow),
            path,
            reverse,
            traffic,
        });
    }
    Ok(Built {
        network,
        changes,
        notes,
    })
}

/// Returns remarks on what the scenario contains and the simulator does not model.
fn notes(cell: &Cell) -> Vec<String> {
    let mut notes = Vec::new();
    if !cell.freezes.is_empty() {
        notes.push("[[freeze]] is not modelled: a simulated program always runs".to_owned());
    }
    if cell.noise.is_some() {
        notes.push("[noise] is not modelled: a simulated host is never busy".to_owned());
    }
    if cell.memory_bytes != MEMORY_BYTES {
        notes.push("memory is not modelled: there is no guest".to_owned());
    }
    if cell.cpus > 1 {
        notes.push("cpus is not modelled: a simulated host has no processor".to_owned());
    }
    let is_plain = |c: &scenario::Cable| {
        c.bql_min_bytes.is_none()
            && c.ring == RING
            && (c.coalesce_frames, c.coalesce_ns) == COALESCE
    };
    if !cell.cables.iter().all(is_plain) {
        notes.push(
            "ring, bql_min and coalescing are not modelled: a queue is asked when the line is free"
                .to_owned(),
        );
    }
    if cell.cables.iter().any(|c| c.queues > 1) {
        notes.push("queues are not modelled: each device has one transmit queue".to_owned());
    }
    notes
}

fn line(cell: &Cell, direction: Direction, qdisc: crate::qdisc::Qdisc) -> DeviceConfig {
    let cable = &cell.cables[direction.cable];
    DeviceConfig {
        rate_bps: cable.rate_bps,
        delay: Span::from_ns(cable.delay_ns),
        port: None,
        sink: cable.sink,
        qdisc,
    }
}

/// Adds the ports of bottlenecks, and sets which devices send into them.
fn ports(cell: &Cell, network: &mut NetworkConfig) {
    for (index, cable) in cell.cables.iter().enumerate() {
        for (end, bottleneck) in End::BOTH.into_iter().zip(&cable.bottlenecks) {
            let Some(bottleneck) = bottleneck else {
                continue;
            };
            let kind = match bottleneck.kind {
                BottleneckKind::Fifo { bytes } => PortKind::Fifo { bytes },
                BottleneckKind::Policer {
                    burst_bytes,
                    refresh_ns,
                } => PortKind::Policer {
                    burst_bytes,
                    refresh: Span::from_ns(refresh_ns),
                },
            };
            let port = Some(network.ports.len());
            let delay = Span::from_ns(bottleneck.delay_ns);
            network
                .ports
                .push(Port::new(kind, bottleneck.rate_bps, delay));
            for cable in [Some(index), bottleneck.also].into_iter().flatten() {
                network.devices[device(Direction { cable, end })].port = port;
            }
        }
    }
}

fn header(flow: &Flow) -> Header {
    Header {
        proto: match flow.kind {
            FlowKind::Tcp { .. } => Proto::Tcp,
            FlowKind::Udp { .. } | FlowKind::Pktgen { .. } => Proto::Udp,
        },
        src: flow.source,
        dst: flow.destination,
        sport: flow.source_port,
        dport: flow.port,
    }
}

/// Returns the devices from a flow's receiver to its source address, according to
/// the hosts' routes.
fn path_back(cell: &Cell, flow: &Flow) -> Vec<u32> {
    let Some(first) = flow.path.first() else {
        return Vec::new();
    };
    let hosts = cell.hosts.len();
    let mut path = Vec::new();
    let mut host = flow.to;
    while host != flow.from && path.len() < 255 {
        let onto = leaving(&cell.cables, host).find(|hop| hop.cable == first.cable);
        let routed = || {
            let routes = routes(&cell.cables, hosts, host).into_iter();
            let mut routes = routes.filter(|route| route.to_cable == first.cable);
            routes.next().map(|route| route.via)
        };
        let Some(hop) = onto.or_else(routed) else {
            break;
        };
        path.push(device(hop) as u32);
        host = far_host(&cell.cables, hop);
    }
    path
}

/// Returns the time that a frame of the smallest size takes over these devices, all
/// of them idle.
fn round_trip(network: &NetworkConfig, trip: &[u32]) -> Span {
    let of = |device: &u32| {
        let d = &network.devices[*device as usize];
        let wire = Instant::default().after(wire_bytes(0), d.rate_bps.max(1));
        let port = d.port.map_or(Span::ZERO, |port| {
            let out = network.ports[port].clone().enter(Time::START, 0);
            out.map_or(Span::ZERO, |at| at.since(Time::START))
        });
        wire.time.since(Time::START) + d.delay + port
    };
    trip.iter().map(of).fold(Span::ZERO, |a, b| a + b)
}

fn datagrams(flow: &Flow) -> Result<SourceConfig, Refusal> {
    let start = Time::START + Span::from_ns(flow.start_ns);
    let stop = Time::START + Span::from_ns(flow.stop_ns);
    match &flow.kind {
        FlowKind::Udp {
            payload_bytes,
            batch,
            rate_bps,
            spread,
            buffer_bytes,
            on_off,
            pattern: Pattern {
                ahead: 0,
                slack_ns: 0,
            },
            launch: None,
        } if spread.turn_ns == 0 => Ok(SourceConfig {
            frame_bytes: payload_bytes + UDP_FRAME_HEADER_BYTES,
            burst: *batch,
            rate_bps: *rate_bps,
            buffer_bytes: Some(2 * u64::from(buffer_bytes.unwrap_or(BUFFER_BYTES))),
            on_off: on_off.map(|o| (Span::from_ns(o.on_ns), Span::from_ns(o.off_ns))),
            start,
            stop,
            class: spread.class.unwrap_or(0),
            classes: spread.classes,
            ports: spread.ports,
        }),
        FlowKind::Pktgen {
            payload_bytes,
            rate_bps: Some(rate_bps),
        } => Ok(SourceConfig {
            frame_bytes: payload_bytes + UDP_FRAME_HEADER_BYTES,
            burst: 1,
            rate_bps: Some(*rate_bps),
            buffer_bytes: None,
            on_off: None,
            start,
            stop,
            class: 0,
            classes: 1,
            ports: 1,
        }),
        FlowKind::Udp { .. } => Err(Refusal {
            place: flow.place.clone(),
            reason: format!(
                "flow `{}` has launch times, calls together or several sockets, which the \
                 simulator does not model: expected no `txtime`, `ahead`, `slack` or `sockets`",
                flow.name
            ),
        }),
        FlowKind::Pktgen { .. } | FlowKind::Tcp { .. } => Err(Refusal {
            place: flow.place.clone(),
            reason: format!(
                "flow `{}` is pktgen as fast as it goes, which is as fast as a CPU; the simulator \
                 has none: expected a `rate`",
                flow.name
            ),
        }),
    }
}
