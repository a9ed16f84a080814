// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gaps and rates: the papers' figures, no drift, and what the wire carries.

use pace::{ClassConfig, Config, Decision, Layer, Mode, Order, Scheduler};

use crate::wire::{Gigabit, Random, Wire, line_bytes};

const GBIT: u64 = 1_000_000_000;

fn bare(line_rate_bps: u64, min_frame_bytes: u32) -> Config {
    Config {
        overhead_bytes: 0,
        min_frame_bytes,
        link_header_bytes: 0,
        ..Config::ethernet(line_rate_bps, 1500)
    }
}

/// Paper 000, figure 3: 500 and 250 Mbit/s on 1 Gbit/s, packets of 1500 bytes,
/// no overhead: P1, P2, P1, a gap, and again; shares of 2 : 1 : 1.
#[test]
fn paper_000_figure_3() {
    let mut wire = Wire::new(Config {
        order: Order::Rate,
        ..bare(GBIT, 64)
    });
    let p1 = wire.paced(GBIT / 2);
    let p2 = wire.paced(GBIT / 4);
    let clock = |wire: &Wire, id| wire.port.clock_bytes(id);
    let expected = [
        // who, then: global, clock of P1, clock of P2
        (Decision::Send(p1), 1500, 3000, 0),
        (Decision::Send(p2), 3000, 3000, 6000),
        (Decision::Send(p1), 4500, 6000, 6000),
        (Decision::Gap { wire_bytes: 1500 }, 6000, 6000, 6000),
    ];
    for (round, base) in [0, 6000, 12_000].into_iter().enumerate() {
        for (who, global, clock1, clock2) in expected {
            assert_eq!(wire.step(|_| (1500, true)), who, "round {round}");
            assert_eq!(wire.port.global_bytes(), base + global);
            assert_eq!(clock(&wire, p1), base + clock1);
            // Until its first packet P2 still stands where the round began.
            assert_eq!(clock(&wire, p2), base + clock2);
        }
    }
    let stats = wire.port.stats();
    assert_eq!((wire.bytes_of(p1), wire.bytes_of(p2)), (9000, 4500));
    assert_eq!(stats.gap_wire_bytes, 4500);
}

/// What follows a frame of `wire` bytes whose class clock is then `gap` ahead.
fn after_gap(cfg: Config, wire_len: u32, gap: u64) -> (Wire, Decision) {
    let wire_bytes = u64::from(wire_len);
    let cfg = Config {
        layer: Layer::Wire,
        line_rate_bps: (wire_bytes + gap) * 1000,
        ..cfg
    };
    let mut wire = Wire::new(cfg);
    wire.paced(wire_bytes * 1000);
    let len = wire_len - cfg.overhead_bytes;
    wire.step(|_| (len, true));
    let decision = wire.step(|_| (len, true));
    (wire, decision)
}

/// Paper 002, figure 2, with the paper's smallest packet of 64 bytes and with
/// Ethernet's smallest gap of 84: three patterns, none of which moves a clock.
#[test]
fn paper_002_figure_2() {
    for (cfg, wire_len, min) in [
        (bare(GBIT, 64), 1500, 64),
        (Config::ethernet(GBIT, 1514), 1538, 84),
    ] {
        for gap in 0..=300u64 {
            let (wire, decision) = after_gap(cfg, wire_len, gap);
            let stats = wire.port.stats();
            if gap <= min / 2 {
                assert!(matches!(decision, Decision::Send(_)), "gap {gap}");
                let early = line_bytes(stats.early_max_ps, wire.cfg.line_rate_bps);
                assert_eq!(early, gap, "sent early by the gap");
            } else {
                let wire_bytes = gap.max(min) as u32;
                assert_eq!(decision, Decision::Gap { wire_bytes }, "gap {gap}");
            }
            let class = wire.frames[0].class;
            let sent = 1 + u64::from(matches!(decision, Decision::Send(_)));
            let clock = wire.port.class_clock(class).unwrap();
            let bytes = sent * (u64::from(wire_len) + gap);
            assert_eq!(line_bytes(clock.ps, wire.cfg.line_rate_bps), bytes, "clock");
        }
    }
}

/// A long gap is cut so that no frame is below 84 or above 1538 bytes.
#[test]
fn long_gaps_are_cut_into_frames_that_exist() {
    for gap in (1538..1538 * 4 + 200u64).chain([1_000_003]) {
        let (mut wire, first) = after_gap(Config::ethernet(GBIT, 1514), 1538, gap);
        assert!(matches!(first, Decision::Gap { .. }), "gap {gap}");
        while wire.frames.len() < 2 {
            wire.step(|_| (1514, true));
        }
        assert_eq!(wire.gaps.iter().map(|g| u64::from(*g)).sum::<u64>(), gap);
        assert!(
            wire.gaps.iter().all(|g| (84..=1538).contains(g)),
            "gap {gap}"
        );
        assert_eq!(
            wire.gaps.len() as u64,
            gap.div_ceil(1538),
            "as few as can be"
        );
    }
}

/// Where frames and gaps can hardly be told apart in size, gaps still end.
#[test]
fn a_port_of_smallest_frames_only() {
    for max_frame_bytes in 60..200 {
        let cfg = Config {
            max_frame_bytes,
            ..Config::ethernet(GBIT, 1514)
        };
        let mut wire = Wire::new(cfg);
        let slow = wire.paced(GBIT / 37);
        wire.run(100, max_frame_bytes);
        assert!(
            wire.gaps
                .iter()
                .all(|g| (84..=max_frame_bytes + 24).contains(g))
        );
        let late = wire.port.late_bytes_max();
        assert!(late <= 84, "late by {late} at {max_frame_bytes}");
        assert_eq!(wire.of(slow).count(), 100);
    }
}

/// Ten million packets: the class clock is exact, and every frame leaves within
/// half a smallest gap of its instant.
#[test]
fn no_drift_in_ten_million_packets() {
    const LENGTHS: [u32; 5] = [1514, 60, 577, 1514, 1291];
    for (packets, line, rate) in [
        (10_000_000u64, 999_999_937, 333_333_331),
        (1_000_000, 9_999_999_967, 7_123_456_789),
        (1_000_000, 400_000_000_000, 299_999_999_977),
        (1_000_000, 8_191, 4_093),
    ] {
        let mut port = Scheduler::new(&Config::ethernet(line, 1514), 0).unwrap();
        let class = port
            .add_class(&ClassConfig::Paced { rate_bps: rate })
            .unwrap();
        port.activate(class, 0).unwrap();
        let mut counted = 0u128;
        let mut sent = 0;
        while sent < packets {
            match port.next(0) {
                Decision::Send(_) => {
                    let ideal = (counted * 8_000_000_000_000).div_ceil(u128::from(rate));
                    let off = i128::from(port.global_ps()) - ideal as i128;
                    let half = 42 * 8_000_000_000_000 / i128::from(line);
                    assert!(
                        (-half..=half).contains(&off) || line == rate,
                        "off by {off}"
                    );
                    let len = LENGTHS[sent as usize % LENGTHS.len()];
                    counted += u128::from(len);
                    sent += 1;
                    port.sent(class, len, true, 0).unwrap();
                }
                Decision::Gap { wire_bytes } => port.gap_sent(wire_bytes),
                other => panic!("{other:?}"),
            }
        }
        let exact = counted * 8_000_000_000_000;
        let clock = port.class_clock(class).unwrap();
        let whole = exact.div_ceil(u128::from(rate));
        assert_eq!(u128::from(clock.ps), whole % (1 << 64));
        assert_eq!(u128::from(clock.frac), exact % u128::from(rate));
    }
}

/// From 8 kbit/s to 400 Gbit/s: the instants are those of the rate, in ns.
#[test]
fn rates_from_8_kbit_to_400_gbit() {
    for line in [GBIT, 10 * GBIT, 100 * GBIT, 400 * GBIT] {
        for rate_bps in [8_000, 64_000, 1_000_000, 34_359_738_369, 399_999_999_999] {
            if rate_bps > line {
                continue;
            }
            let cfg = Config {
                mode: Mode::Timer,
                layer: Layer::Wire,
                ..Config::ethernet(line, 1514)
            };
            let mut port = Scheduler::new(&cfg, 0).unwrap();
            let class = port.add_class(&ClassConfig::Paced { rate_bps }).unwrap();
            port.activate(class, 0).unwrap();
            let mut now = 0;
            for packet in 0..1000u128 {
                while let Decision::Wait { until_ns } = port.next(now) {
                    assert!(until_ns > now);
                    now = until_ns;
                }
                let ideal_ns = packet * 1538 * 8_000_000_000_000 / u128::from(rate_bps) / 1000;
                // Up to a whole ns; ideal_ns is rounded down.
                let late = u128::from(now) as i128 - ideal_ns as i128;
                assert!((0..=1).contains(&late), "{rate_bps}: {late} ns");
                port.sent(class, 1514, true, now).unwrap();
            }
        }
    }
}

/// Every byte of the clock is a frame's or a gap's, and every gap frame exists.
#[test]
fn the_clock_is_what_was_sent() {
    let mut random = Random(1);
    for layer in [Layer::Link, Layer::Wire, Layer::Ip] {
        for order in [Order::Clock, Order::Rate, Order::Next] {
            for n in [1, 2, 7, 40] {
                let cfg = Config {
                    layer,
                    order,
                    ..Config::ethernet(GBIT, 1514)
                };
                let mut wire = Wire::new(cfg);
                let load = random.below(GBIT * 3 / 2) + GBIT / 100;
                for rate in random.rates(n, load, 50) {
                    wire.paced(rate.min(GBIT));
                }
                for _ in 0..5000 {
                    let len = 1 + random.below(1514) as u32;
                    wire.step(|_| (len, true));
                }
                let stats = wire.port.stats();
                let frames = wire.frames.iter().map(|f| u64::from(f.len.max(60) + 24));
                let frames: u64 = frames.sum();
                let gaps: u64 = wire.gaps.iter().map(|g| u64::from(*g)).sum();
                assert_eq!(wire.port.global_bytes(), frames + gaps);
                assert_eq!(
                    (stats.sent_wire_bytes, stats.gap_wire_bytes),
                    (frames, gaps)
                );
                assert_eq!(stats.gap_frames, wire.gaps.len() as u64);
                assert!(wire.gaps.iter().all(|g| (84..=1538).contains(g)));
                assert!(wire.port.early_bytes_max() <= 42);
            }
        }
    }
}

/// Ties go by id, so neither the order of activation nor the inside of a queue
/// shows on the wire.
#[test]
fn the_order_of_activation_does_not_matter() {
    let record = |order: Order, seed: u64| {
        let cfg = Config {
            order,
            ..Config::ethernet(GBIT, 1514)
        };
        let mut port = Scheduler::new(&cfg, 0).unwrap();
        let rates = [100, 50, 50, 200, 25, 100, 12, 50].map(|mbit| mbit * 1_000_000);
        let mut ids: Vec<_> = rates
            .iter()
            .map(|&rate_bps| port.add_class(&ClassConfig::Paced { rate_bps }).unwrap())
            .collect();
        let mut random = Random(seed);
        for last in (1..ids.len()).rev() {
            ids.swap(last, random.below(last as u64 + 1) as usize);
        }
        for id in ids {
            port.activate(id, 0).unwrap();
        }
        let mut sent = Vec::new();
        while sent.len() < 2000 {
            match port.next(0) {
                Decision::Send(id) => {
                    sent.push((port.global_bytes(), id));
                    port.sent(id, 1514, true, 0).unwrap();
                }
                Decision::Gap { wire_bytes } => port.gap_sent(wire_bytes),
                other => panic!("{other:?}"),
            }
        }
        sent
    };
    for order in [Order::Clock, Order::Rate, Order::Next] {
        let first = record(order, 1);
        for seed in 2..20 {
            assert_eq!(record(order, seed), first);
        }
    }
}

/// Normal classes share by wire bytes in proportion to their quanta, whatever
/// the frames' lengths, and only what the paced class leaves.
#[test]
fn normal_classes_share_the_rest() {
    let mut wire = Wire::new(Config::ethernet(GBIT, 1514));
    let paced = wire.paced(GBIT / 4);
    let big = wire.normal(Some(3000));
    let small = wire.normal(Some(1000));
    let mut paid = [0u64; 2];
    while wire.port.global_bytes() < 20_000_000 {
        let mut sent = None;
        wire.step(|class| {
            let len = if class == small { 60 } else { 1514 };
            sent = Some((class, len + 24));
            (len, true)
        });
        match sent {
            Some((class, bytes)) if class == big => paid[0] += u64::from(bytes),
            Some((class, bytes)) if class == small => paid[1] += u64::from(bytes),
            _ => {}
        }
    }
    assert!(wire.gaps.is_empty(), "there is always something to send");
    assert!(paid[0].abs_diff(3 * paid[1]) <= 3000 + 1538, "{paid:?}");
    let fair = wire.port.global_bytes() / 4;
    assert!(wire.bytes_of(paced).abs_diff(fair) <= 1514 * 2);
    assert!(wire.port.late_bytes_max() <= 1538, "one frame at most");
}

/// A frame that no wire should carry does not upset the clocks.
#[test]
fn a_frame_beyond_the_largest_is_bounded() {
    let cfg = Config::ethernet(1_000_000_000_000, 1514);
    let mut port = Scheduler::new(&cfg, 0).unwrap();
    let rate_bps = 60; // a frame of 1514 bytes takes 202 of 240 s
    let slow = port.add_class(&ClassConfig::Paced { rate_bps }).unwrap();
    port.activate(slow, 0).unwrap();
    port.sent(slow, pace::FRAME_MAX_BYTES, true, 0).unwrap();
    let clock = port.class_clock(slow).unwrap();
    assert_eq!(clock.ps, pace::LEAD_MAX_PS - 1);
}

/// Between 480 and 492 of 1000 Mbit/s the gap after a packet of 1500 bytes is a
/// little longer than a largest frame: it takes two gap frames, or one where the
/// MTU is 84 bytes larger. What the wire carries is the same.
#[test]
fn a_gap_a_little_longer_than_a_frame_takes_two() {
    for rate_mbit in [480, 486, 490, 492] {
        let of = |max_frame_bytes: u32| {
            let mut wire = Wire::new(Config::ethernet(GBIT, max_frame_bytes));
            wire.paced(rate_mbit * 1_000_000);
            let (mut packets, mut gaps, mut bytes) = (0, 0, 0);
            while packets < 1000 {
                match wire.step(|_| (1514, true)) {
                    Decision::Send(_) => packets += 1,
                    Decision::Gap { wire_bytes } => {
                        gaps += 1;
                        bytes += u64::from(wire_bytes);
                    }
                    other => panic!("{other:?}"),
                }
            }
            (gaps, bytes)
        };
        let (usual, larger) = (of(1514), of(1598));
        assert_eq!((usual.0, larger.0), (2 * 999, 999), "{rate_mbit} Mbit/s");
        assert_eq!(usual.1, larger.1, "{rate_mbit} Mbit/s");
    }
}
