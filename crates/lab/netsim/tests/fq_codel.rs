// SPDX-License-Identifier: MIT OR Apache-2.0
//! fq_codel, seen by the frames that leave it.

use netsim::network::NetworkConfig;
use netsim::qdisc::{CodelConfig, FqCodel, FqCodelConfig, Qdisc};
use netsim::source::SourceConfig;
use units::clock::{Span, Time};

use crate::common::{Log, datagrams, greedy, line, ms, run};

const LINE_BPS: u64 = 10_000_000;
/// A full frame on that line.
const FRAME_MS: f64 = 1.2304;

fn fq_codel(limit: u32) -> Qdisc {
    Qdisc::FqCodel(Box::new(FqCodel::new(FqCodelConfig {
        limit,
        quantum_bytes: 1514,
        drop_batch: 64,
        codel: CodelConfig {
            target: Span::from_ns(5_000_000),
            interval: Span::from_ns(100_000_000),
            frame_bytes: 1514,
        },
    })))
}

/// Datagrams that wait for no room.
fn at_rate(rate_bps: u64, stop: Time) -> SourceConfig {
    SourceConfig {
        rate_bps: Some(rate_bps),
        buffer_bytes: None,
        ..greedy(stop)
    }
}

fn through(limit: u32, flows: &[SourceConfig], until: Time) -> Log {
    let config = NetworkConfig {
        devices: vec![line(LINE_BPS, fq_codel(limit))],
        ports: vec![],
        flows: (0..)
            .zip(flows)
            .map(|(i, source)| datagrams(i, &[0], *source))
            .collect(),
    };
    run(config, until).1
}

/// When each packet of a flow left, by its number, ms.
fn left_ms(log: &Log, flow: u32) -> Vec<(u64, f64)> {
    let of_flow = log.frames.iter().filter(|f| f.flow == Some(flow));
    let left = of_flow.map(|f| (f.number.unwrap(), f.start_ps as f64 / 1e9));
    left.collect()
}

/// RFC 8289, section 3: the first drop is an interval after packets began to wait
/// too long, and the next ones are that far apart, divided by the square root of
/// their number.
#[test]
fn drops_come_at_the_interval_by_the_root_of_their_number() {
    let stop = ms(700);
    let log = through(10_240, &[at_rate(2 * LINE_BPS, stop)], stop);
    let left = left_ms(&log, 0);
    let born_ms = |number: u64| number as f64 * 1514.0 * 8.0 / (2 * LINE_BPS) as f64 * 1e3;
    let too_long = left.iter().find(|(n, at)| at - born_ms(*n) >= 5.0).unwrap();
    let mut due = too_long.1 + 100.0;
    assert!(log.dropped.len() > 10, "{}", log.dropped.len());
    for (at, (_, _, number)) in log.dropped.iter().enumerate() {
        // A packet is dropped when its successor leaves.
        let (_, found) = left.iter().find(|(n, _)| n > number).unwrap();
        let late = found - due;
        assert!(
            (0.0..=FRAME_MS).contains(&late),
            "drop {at}: {late} ms late"
        );
        if at == 0 {
            due = *found;
        }
        due += 100.0 / ((at + 1) as f64).sqrt();
    }
}

#[test]
fn a_queue_that_empties_in_time_loses_nothing() {
    // Bursts of 60 frames, 74 ms, with as much time between them.
    let stop = ms(2_000);
    let bursts = SourceConfig {
        burst: 60,
        ..at_rate(LINE_BPS / 2, stop)
    };
    assert_eq!(through(10_240, &[bursts], stop).dropped, []);
}

#[test]
fn a_thin_flow_does_not_wait_for_a_fat_one() {
    let stop = ms(500);
    let flows = [at_rate(2 * LINE_BPS, stop), at_rate(LINE_BPS / 10, stop)];
    let log = through(10_240, &flows, stop);
    let thin = left_ms(&log, 1);
    assert!(thin.len() > 40, "{}", thin.len());
    let born_ms = |number: u64| number as f64 * 1514.0 * 8.0 / (LINE_BPS / 10) as f64 * 1e3;
    for (number, at) in thin {
        let waited = at - born_ms(number);
        assert!(waited < 1.01 * FRAME_MS, "packet {number}: {waited} ms");
    }
    assert!(log.dropped.iter().all(|(_, flow, _)| *flow == 0));
}

#[test]
fn flows_share_the_line_alike() {
    let stop = ms(3_000);
    let rates = [2, 3, 5].map(|times| at_rate(times * LINE_BPS, stop));
    let log = through(10_240, &rates, stop);
    let counts = [0, 1, 2].map(|flow| left_ms(&log, flow).len());
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(most - least <= 2, "{counts:?}");
}

/// Beyond the limit half of the longest queue goes, and at most a batch; other flows
/// lose nothing.
#[test]
fn the_longest_queue_makes_room() {
    let stop = ms(80);
    let flows = [at_rate(20 * LINE_BPS, stop), at_rate(LINE_BPS / 10, stop)];
    for (limit, dropped_at_once) in [(100, 51), (1_000, 64)] {
        let log = through(limit, &flows, stop);
        assert!(log.dropped.iter().all(|(_, flow, _)| *flow == 0));
        let numbers: Vec<_> = log.dropped.iter().map(|(_, _, number)| *number).collect();
        assert!(
            numbers.len() >= dropped_at_once,
            "{limit}: {}",
            numbers.len()
        );
        let mut first: Vec<_> = numbers[..dropped_at_once].to_vec();
        first.sort_unstable();
        assert!(
            first.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "{first:?}"
        );
    }
}
