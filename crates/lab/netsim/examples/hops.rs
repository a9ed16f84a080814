// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many packet-hops the engine does in a second on one core: frames that
//! leave a device, each with its queue, its line and its arrival.
//! `cargo run --release -p netsim --example hops`

use std::error::Error;
use std::time::{Duration, Instant};

use netsim::device::DeviceConfig;
use netsim::network::{FlowConfig, Network, NetworkConfig, TrafficConfig};
use netsim::packet::{Header, Proto};
use netsim::port::{Port, PortKind};
use netsim::qdisc::{Fifo, Limit, Psp, PspClass, PspConfig, PspType, Qdisc};
use netsim::source::SourceConfig;
use netsim::stream::{Pacing, StreamConfig};
use netsim::tcp::variant::RACK;
use netsim::tcp::{Congestion, ReceiverConfig, SenderConfig};
use units::clock::{Span, Time};

const GBIT: u64 = 1_000_000_000;
/// The best of so many runs: others may use the core too.
const RUNS: usize = 7;

fn device(rate_bps: u64, delay_ns: u64, qdisc: Qdisc) -> DeviceConfig {
    DeviceConfig {
        rate_bps,
        delay: Span::from_ns(delay_ns),
        port: None,
        sink: false,
        qdisc,
    }
}

fn fifo() -> Qdisc {
    Qdisc::Fifo(Fifo::new(Limit::Packets(1000)))
}

fn header(proto: Proto, flow: u16) -> Header {
    Header {
        proto,
        src: [10, 1, 1, 1].into(),
        dst: [10, 1, 2, 1].into(),
        sport: 20_001 + flow,
        dport: 5_001 + flow,
    }
}

fn source(start_ns: u64) -> SourceConfig {
    SourceConfig {
        frame_bytes: 1514,
        burst: 1,
        rate_bps: None,
        buffer_bytes: Some(1 << 20),
        on_off: None,
        start: Time::START + Span::from_ns(start_ns),
        stop: Time::from_ps(u64::MAX),
        class: 0,
        classes: 1,
        ports: 1,
    }
}

/// Eight flows over four switches, 20 ms of the line each.
fn switches() -> NetworkConfig {
    let flow = |i: u16| FlowConfig {
        header: header(Proto::Udp, i),
        path: (0..5).collect(),
        reverse: vec![],
        traffic: TrafficConfig::Datagrams(source(u64::from(i) * 1000)),
    };
    NetworkConfig {
        devices: (0..5)
            .map(|_| device(10 * GBIT, 20_000_000, fifo()))
            .collect(),
        ports: vec![],
        flows: (0..8).map(flow).collect(),
    }
}

/// Eight classes of psp that fill a line, gap frames between.
fn psp() -> Result<NetworkConfig, Box<dyn Error>> {
    let rate_bps = GBIT;
    let class = |i: u32| PspClass {
        minor: i + 1,
        kind: PspType::Static(pace::ClassConfig::Paced {
            rate_bps: rate_bps * (1 + u64::from(i)),
        }),
        limit: Limit::Packets(1000),
        deadline: None,
    };
    let flow = |i: u16| FlowConfig {
        header: header(Proto::Udp, i),
        path: vec![0],
        reverse: vec![],
        traffic: TrafficConfig::Datagrams(SourceConfig {
            class: 0x1_0001 + u32::from(i),
            ..source(0)
        }),
    };
    let qdisc = Psp::new(
        PspConfig {
            port: pace::Config {
                order: pace::Order::Next,
                ..pace::Config::ethernet(50 * GBIT, 1514)
            },
            gap: capture::record::Kind::Pause,
            major: 1,
            default: 0,
            classes: (0..8).map(class).collect(),
            filters: vec![],
            unclassified_packets: 1000,
        },
        Time::START,
    )
    .map_err(|(_, error)| error)?;
    Ok(NetworkConfig {
        devices: vec![device(50 * GBIT, 0, Qdisc::Psp(Box::new(qdisc)))],
        ports: vec![],
        flows: (0..8).map(flow).collect(),
    })
}

/// One TCP stream through a bottleneck, round trip 20 ms, ACKs and all.
fn tcp() -> NetworkConfig {
    let buffer = 8 << 20;
    let stream = StreamConfig {
        sender: SenderConfig {
            congestion: Congestion::Cubic,
            ..SenderConfig::new(RACK)
        },
        receiver: ReceiverConfig {
            buffer_bytes: buffer,
            window_scale: 8,
            ..ReceiverConfig::default()
        },
        bytes: None,
        cpu: netsim::cpu::CpuCost::default(),
        pacing_max_bps: None,
        pacing: Some(Pacing::default()),
        queue_paces: false,
        sample: None,
        connect: Time::START,
        start: Time::START,
        stop: Time::from_ps(u64::MAX),
    };
    let kind = PortKind::Fifo { bytes: 1 << 20 };
    NetworkConfig {
        devices: vec![
            DeviceConfig {
                port: Some(0),
                ..device(GBIT, 10_000_000, fifo())
            },
            device(GBIT, 10_000_000, fifo()),
        ],
        ports: vec![Port::new(kind, GBIT / 2, Span::ZERO)],
        flows: vec![FlowConfig {
            header: header(Proto::Tcp, 0),
            path: vec![0],
            reverse: vec![1],
            traffic: TrafficConfig::Stream(Box::new(stream)),
        }],
    }
}

fn measure(
    what: &str,
    until: Time,
    make: impl Fn() -> Result<NetworkConfig, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut best = Duration::MAX;
    let mut hops = 0;
    for _ in 0..RUNS {
        let mut network = Network::new(make()?)?;
        let begin = Instant::now();
        network.run(until, &mut ())?;
        best = best.min(begin.elapsed());
        hops = network.counts().frames;
    }
    let seconds = best.as_secs_f64();
    println!(
        "{what}: {hops} packet-hops in {seconds:.3} s, {:.2} million a second",
        hops as f64 / seconds / 1e6
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = |s: f64| Time::from_ps((s * 1e12) as u64);
    measure("eight flows over four switches", seconds(0.3), || {
        Ok(switches())
    })?;
    measure("psp, eight classes and gap frames", seconds(0.1), psp)?;
    measure("one TCP stream, CUBIC and RACK", seconds(8.0), || Ok(tcp()))
}
