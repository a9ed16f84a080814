// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cyclic queuing and forwarding: a frame leaves in the cycle after the one it came in, or is
//! dropped.

use netsim::filter::Filter;
use netsim::network::NetworkConfig;
use netsim::qdisc::{CQF_STREAMS, Cqf, CqfConfig, Qdisc};
use netsim::source::SourceConfig;
use proptest::prelude::*;
use units::clock::Span;

use crate::common::{GBIT, Log, Seen, datagrams, greedy, line, ms, pfifo, run};

const CYCLE_PS: u64 = 1_000_000_000;
const LINE_BPS: u64 = GBIT / 10;
/// Flow 0 is the stream, of frames of 250 bytes.
const STREAM_BYTES: u32 = 250;

fn cqf(budget_bytes: u64) -> Qdisc {
    let stream = Filter {
        dport: Some((5001, 0xffff)),
        minor: CQF_STREAMS,
        ..Filter::default()
    };
    Qdisc::Cqf(Box::new(Cqf::new(CqfConfig {
        cycle: Span::from_ps(CYCLE_PS),
        budget_bytes,
        line_bps: LINE_BPS,
        major: 1,
        filters: vec![stream],
        others_packets: 1000,
    })))
}

fn stream(rate_bps: u64, burst: u32) -> SourceConfig {
    SourceConfig {
        frame_bytes: STREAM_BYTES,
        burst,
        rate_bps: Some(rate_bps),
        ..greedy(ms(50))
    }
}

/// Makes a stream that comes over a line without a queue and crosses `ports` ports. From each
/// port another flow sends as fast as it can.
fn chain(ports: u16, budget_bytes: u64, source: SourceConfig) -> Log {
    let mut devices = vec![line(LINE_BPS, pfifo())];
    let mut flows = vec![datagrams(
        0,
        &(0..=ports.into()).collect::<Vec<_>>(),
        source,
    )];
    for port in 1..=ports {
        devices.push(line(LINE_BPS, cqf(budget_bytes)));
        flows.push(datagrams(port, &[port.into()], greedy(ms(50))));
    }
    let config = NetworkConfig {
        devices,
        ports: vec![],
        flows,
    };
    run(config, ms(100)).1
}

/// Returns when the stream's frames left a device, by number.
fn left(log: &Log, device: u32) -> Vec<&Seen> {
    let of = |f: &&Seen| f.flow == Some(0) && f.device == device;
    log.frames.iter().filter(of).collect()
}

#[test]
fn a_frame_leaves_in_the_cycle_after_its_own() {
    let log = chain(3, 5_000, stream(10_000_000, 1));
    assert!(log.dropped.iter().all(|(_, flow, _)| *flow > 0));
    for device in 1..=3 {
        let before = left(&log, device - 1);
        let after = left(&log, device);
        assert_eq!((before.len(), after.len()), (250, 250));
        for (came, went) in before.iter().zip(&after) {
            let came_ps = came.arrive_ps.unwrap();
            assert_eq!(came.number, went.number);
            assert_eq!(went.start_ps / CYCLE_PS, came_ps / CYCLE_PS + 1);
        }
    }
    // Three ports add more than two cycles and at most four, whatever else is sent.
    let first = left(&log, 0);
    for (came, went) in first.iter().zip(left(&log, 3)) {
        let wait_ps = went.arrive_ps.unwrap() - came.arrive_ps.unwrap();
        assert!(
            (2 * CYCLE_PS..=4 * CYCLE_PS).contains(&wait_ps),
            "{wait_ps}"
        );
    }
}

#[test]
fn frames_beyond_the_budget_are_dropped() {
    // 5 frames come in a cycle; 4 fit.
    let log = chain(1, 1_000, stream(10_000_000, 5));
    let dropped = log.dropped.iter().filter(|(_, flow, _)| *flow == 0);
    assert_eq!((dropped.count(), left(&log, 1).len()), (50, 200));
}

#[test]
fn frames_that_do_not_end_within_the_cycle_are_dropped() {
    // A cycle holds 45 frames of 274 bytes on the wire; the ingress accepts a burst of 46.
    let log = chain(1, 12_500, stream(10_000_000, 46));
    let went = left(&log, 1);
    assert!(!went.is_empty() && went.len() < left(&log, 0).len());
    for frame in went {
        let end_ps = frame.start_ps + u64::from(frame.wire_bytes) * 8_000_000_000_000 / LINE_BPS;
        assert_eq!(frame.start_ps / CYCLE_PS, (end_ps - 1) / CYCLE_PS);
    }
}

proptest! {
    #![proptest_config(testkit::properties())]

    /// With any stream, a frame leaves in the next cycle or is dropped, and frames stay in
    /// order.
    #[test]
    fn no_frame_is_late(rate_mbps in 1u64..100, burst in 1u32..60, budget in 250u64..12_500) {
        let log = chain(1, budget, stream(rate_mbps * 1_000_000, burst));
        let came = left(&log, 0);
        let went = left(&log, 1);
        prop_assert!(went.iter().map(|f| f.number).is_sorted());
        for frame in went {
            let number = usize::try_from(frame.number.unwrap()).unwrap();
            let came_ps = came[number].arrive_ps.unwrap();
            prop_assert_eq!(frame.start_ps / CYCLE_PS, came_ps / CYCLE_PS + 1);
        }
    }
}
