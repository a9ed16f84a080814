// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of any network: no frame is delivered twice or lost without being counted, lines
//! keep order, and the same seed gives the same bytes on any thread.

use std::collections::{BTreeMap, BTreeSet};

use netsim::device::DeviceConfig;
use netsim::network::{FlowConfig, Network, NetworkConfig, TrafficConfig};
use netsim::packet::{Header, Proto};
use netsim::port::{Port, PortKind};
use netsim::qdisc::{
    CodelConfig, Fifo, FqCodel, FqCodelConfig, Limit, Netem, NetemConfig, Qdisc, Tbf, TbfConfig,
};
use netsim::rng::{Chance, Rng};
use netsim::source::SourceConfig;
use netsim::stream::{Pacing, StreamConfig};
use netsim::tcp::variant::{RACK, V2_6_17};
use netsim::tcp::{ReceiverConfig, SenderConfig, Variant};
use proptest::prelude::*;
use units::clock::{Span, Time};

use crate::common::{GBIT, Log, check_conservation, datagrams, greedy, header, line, ms};

/// A random network's numbers.
#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    queue_packets: u32,
    fifo_bytes: u64,
    policer: bool,
    loss_per_million: u64,
    burst: u32,
    rate_bps: u64,
    modern: bool,
    bytes: u64,
    first: First,
}

/// The queue of the first host.
#[derive(Clone, Copy, Debug)]
enum First {
    Plain,
    Shaped,
    Codel,
}

fn plan() -> impl Strategy<Value = Plan> {
    (
        (any::<u64>(), 5u32..200, 3_000u64..100_000, any::<bool>()),
        (0u64..20_000, 1u32..20, 1_000_000u64..900_000_000),
        (
            any::<bool>(),
            100_000u64..2_000_000,
            prop_oneof![Just(First::Plain), Just(First::Shaped), Just(First::Codel)],
        ),
    )
        .prop_map(|(a, b, c)| Plan {
            seed: a.0,
            queue_packets: a.1,
            fifo_bytes: a.2,
            policer: a.3,
            loss_per_million: b.0,
            burst: b.1,
            rate_bps: b.2,
            modern: c.0,
            bytes: c.1,
            first: c.2,
        })
}

fn stream(variant: Variant, bytes: u64) -> StreamConfig {
    StreamConfig {
        sender: SenderConfig::new(variant),
        receiver: ReceiverConfig::default(),
        bytes: Some(bytes),
        cpu: netsim::cpu::CpuCost::default(),
        pacing_max_bps: None,
        pacing: (variant == RACK).then(Pacing::default),
        queue_paces: false,
        sample: None,
        connect: Time::START,
        start: Time::START,
        stop: ms(60_000),
    }
}

/// Makes tx -- switch -- rx: a queue, then a line with loss and a port. A TCP stream and
/// datagrams share both.
fn network(plan: &Plan) -> NetworkConfig {
    let queue = || Fifo::new(Limit::Packets(plan.queue_packets));
    let kind = if plan.policer {
        PortKind::Policer {
            burst_bytes: plan.fifo_bytes,
            refresh: Span::from_ns(500_000),
        }
    } else {
        PortKind::Fifo {
            bytes: plan.fifo_bytes,
        }
    };
    let first = match plan.first {
        First::Shaped => Qdisc::Tbf(Box::new(Tbf::new(TbfConfig {
            rate_bps: GBIT / 4,
            burst_bytes: 20_000,
            limit_bytes: u64::from(plan.queue_packets) * 1514,
            overhead_bytes: 24,
            mpu_bytes: 84,
            tick: Span::from_ns(1_000_000),
        }))),
        First::Codel => Qdisc::FqCodel(Box::new(FqCodel::new(FqCodelConfig {
            limit: plan.queue_packets,
            quantum_bytes: 300 * plan.burst,
            drop_batch: plan.burst,
            codel: CodelConfig {
                target: Span::from_ns(100_000),
                interval: Span::from_ns(2_000_000),
                frame_bytes: 1514,
            },
        }))),
        First::Plain => Qdisc::Fifo(queue()),
    };
    let netem = Netem::new(
        NetemConfig {
            delay: Span::from_ns(1_000_000),
            jitter: Span::from_ns(100_000),
            loss: Chance::per_million(plan.loss_per_million),
            reorder: Chance::per_million(plan.loss_per_million),
            gap: 1,
            limit: 10_000,
        },
        Rng::new(plan.seed, 1),
    );
    let tcp = Header {
        proto: Proto::Tcp,
        ..header(0)
    };
    NetworkConfig {
        devices: vec![
            line(GBIT, first),
            DeviceConfig {
                delay: Span::from_ns(2_000_000),
                port: Some(0),
                ..line(GBIT, Qdisc::Netem(Box::new(netem)))
            },
            line(GBIT, Qdisc::Fifo(queue())),
        ],
        ports: vec![Port::new(kind, GBIT / 5, Span::ZERO)],
        flows: vec![
            FlowConfig {
                header: tcp,
                path: vec![0, 1],
                reverse: vec![2],
                traffic: TrafficConfig::Stream(Box::new(stream(
                    if plan.modern { RACK } else { V2_6_17 },
                    plan.bytes,
                ))),
            },
            datagrams(
                1,
                &[0, 1],
                SourceConfig {
                    burst: plan.burst,
                    rate_bps: Some(plan.rate_bps),
                    buffer_bytes: None,
                    ..greedy(ms(30))
                },
            ),
        ],
    }
}

fn run(plan: &Plan) -> (Network, Log) {
    let mut log = Log::default();
    let mut network = Network::new(network(plan)).unwrap();
    for step in 1..=60 {
        network.run(ms(step * 1000), &mut log).unwrap();
        check_conservation(&network);
    }
    (network, log)
}

proptest! {
    #![proptest_config(testkit::cases(24))]

    #[test]
    fn every_frame_is_delivered_once_or_counted_as_lost(plan in plan()) {
        let (network, log) = run(&plan);
        let mut seen = BTreeSet::new();
        let mut last = BTreeMap::new();
        for frame in &log.frames {
            if let (Some(flow), Some(number)) = (frame.flow, frame.number) {
                // Numbers count up for each flow and direction; device 2 is the path back.
                prop_assert!(seen.insert((frame.device, flow, number)), "{frame:?} twice");
            }
            // A line sends one frame after the other, and they arrive in that order.
            let end = frame.start_ps + u64::from(frame.wire_bytes) * 8_000;
            let (before, arrived) = last.insert(frame.device, (end, frame.arrive_ps)).unwrap_or_default();
            prop_assert!(frame.start_ps >= before);
            if let (Some(now), Some(earlier)) = (frame.arrive_ps, arrived) {
                prop_assert!(now >= earlier, "{frame:?} passed another");
            }
        }
        let lost = log.frames.iter().filter(|f| f.fate.is_dropped()).count() as u64;
        prop_assert_eq!(lost, network.counts().dropped);
        // In the end nothing is under way.
        prop_assert_eq!(network.under_way(), 0);
        prop_assert_eq!(network.segments_under_way(), 0);
        let (sender, finished) = network.stream(0).unwrap();
        prop_assert!(network.received_bytes(0).unwrap() >= sender.acked_bytes);
        if finished.is_some() {
            prop_assert_eq!(sender.acked_bytes, plan.bytes);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_on_every_thread(plan in plan()) {
        let here = run(&plan);
        let there = std::thread::scope(|s| {
            let threads: Vec<_> = (0..2).map(|_| s.spawn(|| run(&plan))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>()
        });
        for (network, log) in there {
            prop_assert_eq!(network.counts(), here.0.counts());
            prop_assert_eq!(&log, &here.1);
        }
    }
}

/// A network's memory depends on what is under way, not on how long it has run.
#[test]
fn memory_does_not_grow_with_time() {
    let plan = Plan {
        seed: 1,
        queue_packets: 50,
        fifo_bytes: 30_000,
        policer: false,
        loss_per_million: 1_000,
        burst: 1,
        rate_bps: 10_000_000,
        modern: true,
        bytes: u64::MAX / 4,
        first: First::Plain,
    };
    let mut network = Network::new(network(&plan)).unwrap();
    let mut most = 0;
    for step in 1..=40 {
        network.run(ms(step * 100), &mut ()).unwrap();
        most = most.max(network.under_way());
    }
    let frames = network.counts().frames;
    let early = network.capacity();
    network.run(ms(20_000), &mut ()).unwrap();
    assert!(network.counts().frames > 4 * frames);
    assert!(network.under_way() < 2 * most + 100, "{most}");
    assert!(network.capacity() <= 2 * early, "{early}");
}
