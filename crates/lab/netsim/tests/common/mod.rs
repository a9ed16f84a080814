// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small networks, and a log of their frames.

#![allow(dead_code)]

use capture::record::{Fate, Kind};
use netsim::device::DeviceConfig;
use netsim::network::{FlowConfig, Network, NetworkConfig, TrafficConfig};
use netsim::observe::{Frame, Observer, QueueDrop};
use netsim::packet::{Header, Packet, Proto};
use netsim::qdisc::{Fifo, Limit, Qdisc};
use netsim::source::SourceConfig;
use units::clock::{Span, Time};

pub const GBIT: u64 = 1_000_000_000;

pub fn us(us: u64) -> Time {
    Time::from_ps(us * 1_000_000)
}

pub fn ms(ms: u64) -> Time {
    us(ms * 1_000)
}

/// A frame that the log has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub device: u32,
    pub start_ps: u64,
    pub arrive_ps: Option<u64>,
    pub wire_bytes: u32,
    pub kind: Kind,
    pub fate: Fate,
    pub flow: Option<u32>,
    pub number: Option<u64>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Log {
    pub frames: Vec<Seen>,
    pub dropped: Vec<(u32, u32, u64)>,
    /// Flow and number of packets that were dropped for others.
    pub displaced: Vec<(u32, u64)>,
}

impl Observer for Log {
    fn frame(&mut self, frame: &Frame<'_>) {
        self.frames.push(Seen {
            device: frame.device,
            start_ps: frame.start.as_ps(),
            arrive_ps: frame.arrive.map(Time::as_ps),
            wire_bytes: frame.wire_bytes,
            kind: frame.kind,
            fate: frame.fate,
            flow: frame.content.map(|c| c.packet.flow),
            number: frame.content.map(|c| c.packet.number),
        });
    }

    fn dropped(&mut self, _now: Time, device: u32, packet: &Packet, why: QueueDrop) {
        if why == QueueDrop::Displaced {
            self.displaced.push((packet.flow, packet.number));
        }
        self.dropped.push((device, packet.flow, packet.number));
    }
}

pub fn header(flow: u16) -> Header {
    Header {
        proto: Proto::Udp,
        src: [10, 1, 1, 1].into(),
        dst: [10, 1, 2, 1].into(),
        sport: 20_001 + flow,
        dport: 5_001 + flow,
    }
}

pub fn pfifo() -> Qdisc {
    Qdisc::Fifo(Fifo::new(Limit::Packets(1000)))
}

pub fn line(rate_bps: u64, qdisc: Qdisc) -> DeviceConfig {
    DeviceConfig {
        rate_bps,
        delay: Span::ZERO,
        port: None,
        sink: false,
        qdisc,
    }
}

/// Makes a source that sends as fast as the queue accepts frames.
pub fn greedy(stop: Time) -> SourceConfig {
    SourceConfig {
        frame_bytes: 1514,
        burst: 1,
        rate_bps: None,
        buffer_bytes: Some(2 << 20),
        on_off: None,
        start: Time::START,
        stop,
        class: 0,
        classes: 1,
        ports: 1,
    }
}

pub fn datagrams(flow: u16, path: &[u32], source: SourceConfig) -> FlowConfig {
    FlowConfig {
        header: header(flow),
        path: path.to_vec(),
        reverse: vec![],
        traffic: TrafficConfig::Datagrams(source),
    }
}

/// Runs a network and checks that every frame sent was delivered or dropped.
pub fn run(config: NetworkConfig, until: Time) -> (Network, Log) {
    let mut network = Network::new(config).unwrap();
    let mut log = Log::default();
    network.run(until, &mut log).unwrap();
    check_conservation(&network);
    (network, log)
}

pub fn check_conservation(network: &Network) {
    let c = network.counts();
    let ended = c.delivered + c.sunk + c.refused + c.lost + c.dropped;
    assert_eq!(c.offered, ended + network.under_way(), "{c:?}");
    assert!(network.segments_under_way() as u64 <= network.under_way());
}
