// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every part of a link agrees with arithmetic by hand.

use capture::record::Fate;
use netsim::device::DeviceConfig;
use netsim::network::NetworkConfig;
use netsim::port::{Port, PortKind};
use netsim::source::SourceConfig;
use units::clock::{Span, Time};

use crate::common::{GBIT, Log, datagrams, greedy, line, ms, pfifo, run, us};

/// Returns a port's answers for frames of 1514 bytes at these instants, in ns.
fn ask(port: &mut Port, at_ns: &[u64]) -> Vec<Result<u64, Fate>> {
    let enter = |ns: &u64| {
        let out = port.enter(Time::START + Span::from_ns(*ns), 1514);
        out.map(|at| at.as_ps())
    };
    at_ns.iter().map(enter).collect()
}

#[test]
fn a_line_keeps_its_rate_to_the_picosecond() {
    // At 3 Gbit/s a byte takes 2666 2/3 ps, so 1538 bytes take 4,101,333 1/3 ps.
    let config = NetworkConfig {
        devices: vec![DeviceConfig {
            delay: Span::from_ns(5_000),
            ..line(3 * GBIT, pfifo())
        }],
        ports: vec![],
        flows: vec![datagrams(0, &[0], greedy(us(100)))],
    };
    let (_, log) = run(config, ms(10));
    assert!(log.frames.len() > 24);
    for (i, frame) in (0u64..).zip(&log.frames) {
        assert_eq!(frame.start_ps, i * 1538 * 8_000 / 3, "frame {i}");
        let end = (i * 1538 + 1526) * 8_000 / 3 + 5_000_000;
        assert_eq!(frame.arrive_ps, Some(end), "frame {i}");
        assert_eq!((frame.wire_bytes, frame.fate), (1538, Fate::Delivered));
    }
}

#[test]
fn a_fifo_holds_exactly_its_bytes() {
    // At 8 Mbit/s a byte takes a microsecond. Three frames fit, including the one in service.
    let fifo = |bytes| Port::new(PortKind::Fifo { bytes }, 8_000_000, Span::from_ns(7_000));
    let frame = 1_514_000_000;
    let out = |n: u64| Ok(n * frame + 7_000_000);
    let full = Err(Fate::DroppedFifo);
    let mut port = fifo(3 * 1514);
    assert_eq!(ask(&mut port, &[0; 4]), [out(1), out(2), out(3), full]);
    assert_eq!(port.backlog_bytes(Time::START), 3 * 1514);
    // First a frame's bytes less a nanosecond have left, then all of them.
    assert_eq!(ask(&mut port, &[1_513_999]), [full]);
    assert_eq!(ask(&mut port, &[1_514_000]), [out(4)]);
    assert_eq!(
        ask(&mut fifo(3 * 1514 - 1), &[0; 3]),
        [out(1), out(2), full]
    );
    // After a silence the FIFO is empty.
    assert_eq!(
        ask(&mut port, &[10_000_000]),
        [Ok(10_000_000_000 + frame + 7_000_000)]
    );
    // Small frames count with their padding.
    let mut port = fifo(119);
    assert!(port.enter(Time::START, 42).is_ok());
    assert_eq!(port.enter(Time::START, 42), Err(Fate::DroppedFifo));
}

#[test]
fn a_policer_gets_its_tokens_at_multiples_of_the_refresh() {
    let kind = |refresh_ns| PortKind::Policer {
        burst_bytes: 2 * 1514,
        refresh: Span::from_ns(refresh_ns),
    };
    let none = Err(Fate::DroppedPolicer);
    let at = |ns: u64| Ok(ns * 1000);
    // A frame of 1514 bytes takes 1.514 ms. 2000 bytes of tokens come every 2 ms.
    let mut port = Port::new(kind(2_000_000), 8_000_000, Span::ZERO);
    assert_eq!(ask(&mut port, &[0, 0, 0]), [at(0), at(0), none]);
    assert_eq!(ask(&mut port, &[1_999_999]), [none]);
    assert_eq!(
        ask(&mut port, &[2_000_000, 2_000_000]),
        [at(2_000_000), none]
    );
    // 486 bytes of tokens are left and 2000 more come; the bucket never holds more than its
    // burst.
    assert_eq!(
        ask(&mut port, &[4_100_000, 4_100_000]),
        [at(4_100_000), none]
    );
    assert_eq!(ask(&mut port, &[99_000_000; 3])[2], none);
    // Tokens that come continuously are exact to the nanosecond.
    let mut port = Port::new(kind(0), 8_000_000, Span::ZERO);
    assert_eq!(ask(&mut port, &[0, 0, 1_513_999]), [at(0), at(0), none]);
    assert_eq!(ask(&mut port, &[1_514_000]), [at(1_514_000)]);
}

#[test]
fn sources_keep_their_rate_and_their_silences() {
    let send = |source: SourceConfig| {
        let config = NetworkConfig {
            devices: vec![line(10 * GBIT, pfifo())],
            ports: vec![],
            flows: vec![datagrams(0, &[0], source)],
        };
        let starts = |log: &Log| log.frames.iter().map(|f| f.start_ps).collect::<Vec<_>>();
        starts(&run(config, ms(50)).1)
    };
    // 1514 bytes at 3 Gbit/s take 4037 1/3 ns.
    let even = SourceConfig {
        rate_bps: Some(3 * GBIT),
        ..greedy(us(100))
    };
    let starts = send(even);
    assert_eq!(starts.len(), 25);
    for (i, start) in (0u64..).zip(&starts) {
        assert_eq!(*start, i * 1514 * 8_000 / 3);
    }
    // The source sends the same rate in bursts of five.
    let starts = send(SourceConfig { burst: 5, ..even });
    assert_eq!(starts.len(), 25);
    assert_eq!(starts[5], 5 * 1514 * 8_000 / 3);
    assert_eq!(starts[4], 4 * 1_230_400);
    // The source is on for 10 us and off for 30 us.
    let on_off = Some((Span::from_ns(10_000), Span::from_ns(30_000)));
    let starts = send(SourceConfig { on_off, ..even });
    let expected = [0, 40_000_000, 80_000_000];
    let expected = expected.map(|at| [at, at + 4_037_333, at + 8_074_666]);
    assert_eq!(starts, expected.concat());
}

#[test]
fn a_sender_fills_its_queue_up_to_its_buffer() {
    let config = |buffer| NetworkConfig {
        devices: vec![line(GBIT, pfifo())],
        ports: vec![],
        flows: vec![datagrams(
            0,
            &[0],
            SourceConfig {
                buffer_bytes: buffer,
                ..greedy(ms(5))
            },
        )],
    };
    // The socket buffer holds ten frames with their bookkeeping.
    let (network, log) = run(config(Some(10 * (1514 + 768))), ms(2));
    assert_eq!(network.under_way(), 10 + 1); // and the one on the line
    assert!(log.dropped.is_empty());
    // The source does not wait: the queue refuses what does not fit, one frame at a time.
    let (network, log) = run(config(None), ms(20));
    assert!(!log.dropped.is_empty());
    assert_eq!(network.under_way(), 0);
    let gaps = log.frames.windows(2).map(|w| w[1].start_ps - w[0].start_ps);
    assert!(gaps.take(400).all(|gap| gap == 12_304_000));
}

#[test]
fn two_lines_share_a_port_in_the_order_of_arrival() {
    let device = |delay_ns| DeviceConfig {
        delay: Span::from_ns(delay_ns),
        port: Some(0),
        ..line(GBIT, pfifo())
    };
    let config = NetworkConfig {
        devices: vec![device(0), device(50_000)],
        ports: vec![Port::new(
            PortKind::Fifo { bytes: 8 * 1514 },
            GBIT / 2,
            Span::ZERO,
        )],
        flows: vec![
            datagrams(0, &[0], greedy(ms(3))),
            datagrams(1, &[1], greedy(ms(3))),
        ],
    };
    let (network, log) = run(config, ms(30));
    let mut through: Vec<_> = log
        .frames
        .iter()
        .filter(|f| f.arrive_ps.is_some())
        .collect();
    assert_eq!(network.counts().delivered, through.len() as u64);
    assert!(network.counts().dropped > 0);
    let delay_ps = |device| [0, 50_000_000][device as usize];
    through.sort_by_key(|f| f.start_ps + delay_ps(f.device));
    // Frames leave the port in the order in which they came, one after the other.
    let out: Vec<_> = through.iter().filter_map(|f| f.arrive_ps).collect();
    assert!(out.windows(2).all(|w| w[1] - w[0] >= 1514 * 16_000));
}

#[test]
fn hosts_forward_frames_of_others() {
    // 1 Gbit/s comes in and 100 Mbit/s go out, so a switch's queue of 50 packets overflows.
    use netsim::qdisc::{Fifo, Limit, Qdisc};
    let queue = Qdisc::Fifo(Fifo::new(Limit::Packets(50)));
    let config = NetworkConfig {
        devices: vec![line(GBIT, pfifo()), line(GBIT / 10, queue)],
        ports: vec![],
        flows: vec![datagrams(0, &[0, 1], greedy(ms(5)))],
    };
    let (network, log) = run(config, ms(5));
    assert!(!log.dropped.is_empty());
    assert!(log.dropped.iter().all(|(device, ..)| *device == 1));
    // The second line is ten times slower and never idle.
    let starts = log
        .frames
        .iter()
        .filter(|f| f.device == 1)
        .map(|f| f.start_ps);
    let starts: Vec<_> = starts.collect();
    assert!(starts.windows(2).all(|w| w[1] - w[0] == 123_040_000));
    // Of 406 frames sent, 40 were delivered, the queue is full and one is on the line.
    assert_eq!(network.counts().delivered, 40);
    assert_eq!(log.dropped.len(), 406 - 41 - 50);
}
