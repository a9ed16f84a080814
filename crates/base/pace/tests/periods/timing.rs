// SPDX-License-Identifier: MIT OR Apache-2.0
//! When periods begin and end, and by when the frames of a period have left.

use pace::{ClassConfig, Config, Decision, Mode, Order, Period};

use super::host::{ENDLESS, FRAME, Host, LINE, MBIT, PERIOD_BYTES, PERIOD_NS, config};
use crate::wire::line_bytes;

/// Nobody else is there: the wire is filled up to the period, and no further.
#[test]
fn a_gap_ends_where_the_period_begins() {
    let mut host = Host::new(&config());
    let rt = host.rt(20_000);
    host.come(rt, 1);
    host.run_periods(1);
    assert_eq!(line_bytes(host.port.global_ps(), LINE), PERIOD_BYTES);
    assert!(host.step());
    assert_eq!(host.sent, [(PERIOD_BYTES, rt)]);
    assert!(!host.step(), "no packet, no gap");
}

/// Frames by the period come at any time, those of paced classes at their
/// clocks: the wait is for a frame that is on the wire.
#[test]
fn paced_frames_are_as_precise_as_beside_normal_ones() {
    let mut host = Host::new(&config());
    let rt = host.rt(40_000);
    let paced = host.add(ClassConfig::Paced {
        rate_bps: 20 * MBIT,
    });
    host.come(paced, ENDLESS);
    for period in 0..20 {
        host.come(rt, 60);
        host.run_periods(period + 1);
    }
    assert_eq!(host.by_period(rt)[1..], [60; 19]);
    assert!(line_bytes(host.port.stats().late_max_ps, LINE) < u64::from(FRAME));
    let starts: Vec<u64> = host
        .sent
        .iter()
        .filter(|(_, class)| *class == paced)
        .map(|(start, _)| *start)
        .collect();
    for (number, start) in starts.iter().enumerate() {
        let clock = number as u64 * 5000;
        assert!((clock..clock + 1000).contains(start), "{number}: {start}");
    }
}

/// Paced classes that ask for more than the line: what is gated goes first when
/// time gets short, in the last third of the period, and all of it goes.
#[test]
fn rt_frames_end_in_their_period_whatever_is_paced() {
    for order in [Order::Clock, Order::Rate, Order::Next] {
        let mut host = Host::new(&Config { order, ..config() });
        let rt = host.rt(40_000);
        for _ in 0..3 {
            let paced = host.add(ClassConfig::Paced { rate_bps: LINE });
            host.come(paced, ENDLESS);
        }
        for period in 0..10 {
            host.come(rt, 40);
            host.run_periods(period + 1);
        }
        assert_eq!(host.by_period(rt)[1..], [40; 9], "{order:?}");
        let first = host.sent.iter().find(|(_, class)| *class == rt).unwrap();
        assert!(first.0 > PERIOD_BYTES + 80_000, "{order:?}: {first:?}");
        assert_eq!(host.port.stats().rt_overrun, 0);
    }
}

/// A line that does not carry what is gated: counted, and nothing is lost.
#[test]
fn a_period_too_short_is_counted() {
    let mut host = Host::new(&Config {
        period: Some(Period::percent(LINE, PERIOD_NS, 200)),
        ..config()
    });
    let rt = host.rt(200_000);
    host.come(rt, 200);
    host.run_until(4 * PERIOD_BYTES);
    assert_eq!(host.by_period(rt), [0, 125, 75]);
    assert_eq!(host.port.stats().rt_overrun, 1);
}

/// The paper's bound: a frame that came within the reservation leaves its host
/// within two periods, with everybody else backlogged.
#[test]
fn within_two_periods() {
    for mode in [Mode::Gap, Mode::Timer, Mode::Hybrid] {
        let mut host = Host::new(&Config { mode, ..config() });
        let rt = host.rt(20_000);
        let nrt = host.nrt(40_000);
        let normal = host.normal();
        let paced = host.add(ClassConfig::Paced {
            rate_bps: 10 * MBIT,
        });
        for class in [nrt, normal, paced] {
            host.come(class, ENDLESS);
        }
        // 19 frames in a period, spread differently in each.
        let mut due = Vec::new();
        for number in 0..19 * 40u64 {
            let (period, place) = (number / 19, number % 19);
            let at = period * PERIOD_BYTES + place * (6000 - period * 131);
            host.run_until(at);
            host.come(rt, 1);
            due.push(line_bytes(host.port.global_ps(), LINE) + 2 * PERIOD_BYTES);
        }
        host.run_periods(43);
        let left = host.sent.iter().filter(|(_, class)| *class == rt);
        let mut frames = 0;
        for ((start, _), due) in left.zip(&due) {
            assert!(start + u64::from(FRAME) <= *due, "{mode:?}");
            frames += 1;
        }
        assert_eq!(frames, due.len());
        let stats = host.port.stats();
        assert_eq!(
            (stats.rt_over, stats.rt_deferred, stats.rt_overrun),
            (0, 0, 0)
        );
    }
}

/// In timer mode the wait is until the period; aligned, until an instant of the
/// host's clock that is told.
#[test]
fn periods_are_aligned_to_the_hosts_clock() {
    for (align_ns, came_ns, expected_ns) in [
        (None, 3_000_000, 13_000_000),
        (Some(0), 3_000_000, 10_000_000),
        (Some(2_500_000), 3_000_000, 12_500_000),
        (Some(1_000_002_500_000), 3_000_000, 12_500_000),
        (Some(3_500_000), 3_000_000, 3_500_000),
    ] {
        let mut config = config();
        config.mode = Mode::Timer;
        config.period = config.period.map(|period| Period { align_ns, ..period });
        let mut host = Host::new(&config);
        let rt = host.rt(20_000);
        host.now_ns = came_ns;
        host.come(rt, 1);
        let wait = host.port.next(host.now_ns);
        let until_ns = expected_ns;
        assert_eq!(wait, Decision::Wait { until_ns }, "{align_ns:?}");
        host.step();
        assert_eq!(host.port.next(until_ns), Decision::Send(rt));
    }
}

/// Every instant of the host's clock ends one period: after silence the next one
/// does, however near; a byte clock that is ahead does not use one twice.
#[test]
fn an_instant_ends_one_period() {
    let period = Period::percent(LINE, PERIOD_NS, 100);
    let aligned = Config {
        period: Some(Period {
            align_ns: Some(0),
            ..period
        }),
        ..config()
    };
    for mode in [Mode::Gap, Mode::Timer, Mode::Hybrid] {
        let mut host = Host::new(&Config { mode, ..aligned });
        let rt = host.rt(20_000);
        for (came_ms, goes_ms) in [(3, 10), (96, 100), (107, 110), (119, 120)] {
            host.now_ns = came_ms * 1_000_000;
            host.come(rt, 1);
            while host.step() {
                let sent_ns = line_bytes(host.port.global_ps(), LINE) * PERIOD_NS / PERIOD_BYTES;
                host.now_ns = host.now_ns.max(sent_ns);
            }
            let (at, _) = *host.sent.last().unwrap();
            assert_eq!(at, goes_ms * PERIOD_BYTES / 10, "{mode:?}, {came_ms} ms");
        }
    }

    let mut host = Host::new(&aligned);
    host.rt(1000);
    let normal = host.normal();
    host.come(normal, ENDLESS);
    // The second begins 1 ms before its instant, so it ends 11 ms later.
    for (now_ns, until, periods) in [(0, 125_000, 1), (9_000_000, 262_000, 2), (0, 264_000, 3)] {
        host.now_ns = now_ns;
        host.run_until(until);
        assert_eq!(host.port.stats().periods, periods, "until {until}");
    }
}

/// 333,333 ns at 1 Gbit/s are 41,666.625 bytes: periods have no drift.
#[test]
fn periods_are_exact() {
    let line_rate_bps = 1000 * MBIT;
    let mut host = Host::new(&Config {
        line_rate_bps,
        period: Some(Period::percent(line_rate_bps, 333_333, 100)),
        ..config()
    });
    host.rt(1000);
    let normal = host.normal();
    host.come(normal, ENDLESS);
    for periods in [1u64, 8, 1000, 9000] {
        // The period's number n begins at (n - 1) x 333,333 ns, of 8 ns a byte.
        host.run_until_ps(periods * 333_333_000 - 8_000_000);
        host.port.next(0);
        assert_eq!(host.port.stats().periods, periods);
        host.run_until_ps(periods * 333_333_000);
        host.port.next(0);
        assert_eq!(host.port.stats().periods, periods + 1);
    }
}
