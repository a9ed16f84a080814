// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guard: a normal frame goes only where it ends before a paced one is due.

use pace::{Burst, ClassConfig, ClassId, Config, Decision, Order};

use crate::wire::{Gigabit, Random, Wire};

const GBIT: u64 = 1_000_000_000;
const MBIT: u64 = 1_000_000;
const ORDERS: [Order; 3] = [Order::Clock, Order::Rate, Order::Next];
const RUN: u64 = 12_500_000;

fn guard_band_held(order: Order) -> Config {
    Config {
        order,
        guard_band: true,
        ..Config::ethernet(GBIT, 1514)
    }
}

/// Runs with heads told before each decision; `len` gives the length of a
/// class's next frame.
fn run(wire: &mut Wire, until: u64, len: impl Fn(ClassId, u64) -> u32, ids: &[ClassId]) {
    let mut sent = vec![0u64; ids.len()];
    while wire.port.global_bytes() < until {
        for (id, sent) in ids.iter().zip(&sent) {
            let bytes = wire.port.wire_bytes(len(*id, *sent)).unwrap();
            wire.port.set_head(*id, bytes).unwrap();
        }
        let decision = wire.step(|id| (len(id, sent[id.index() as usize]), true));
        if let Decision::Send(id) = decision {
            sent[id.index() as usize] += 1;
        }
    }
}

/// One paced class every 15140 bytes; between two of its frames 13602 are free:
/// eight frames of 1538, then one that is too long waits.
#[test]
fn a_frame_too_long_waits_and_the_paced_one_is_on_time() {
    for order in ORDERS {
        let mut wire = Wire::new(guard_band_held(order));
        let paced = wire.paced(100 * MBIT);
        let normal = wire.normal(None);
        wire.run_until(10 * 15_140, 1514);
        let starts: Vec<_> = wire.of(paced).map(|frame| frame.start).collect();
        assert_eq!(starts, (0..10).map(|i| i * 15_140).collect::<Vec<_>>());
        assert_eq!(wire.of(normal).count(), 10 * 8);
        // What is left, 1298, is a gap.
        assert_eq!(wire.gaps, [1298; 10]);
        assert_eq!(wire.port.stats().guard_band_held, 10);
        assert_eq!(wire.port.late_bytes_max(), 0);
    }
}

/// A head that was too long is forgotten with the class's options: an unknown one counts as a
/// largest frame, which fits.
#[test]
fn a_head_that_is_forgotten_is_looked_for_again() {
    let mut wire = Wire::new(guard_band_held(Order::Next));
    // 3078 bytes apart: 1540 are free.
    let paced = wire.paced(GBIT * 1514 / 3078);
    let normal = wire.normal(None);
    assert_eq!(wire.step(|_| (1514, true)), Decision::Send(paced));
    wire.port.set_head(normal, 1600).unwrap();
    assert!(matches!(wire.port.next(0), Decision::Gap { .. }));
    let config = ClassConfig::Normal {
        quantum_bytes: Some(3000),
    };
    wire.port.change_class(normal, &config, 0).unwrap();
    assert_eq!(wire.port.next(0), Decision::Send(normal));
}

/// Without guard the same frame makes the paced one late.
#[test]
fn without_guard_it_is_late() {
    let mut wire = Wire::new(Config {
        guard_band: false,
        ..guard_band_held(Order::Next)
    });
    wire.paced(100 * MBIT);
    wire.normal(None);
    wire.run_until(10 * 15_140, 1514);
    assert!(wire.port.late_bytes_max() > 0);
    assert_eq!(wire.port.stats().guard_band_held, 0);
}

/// What a head is decides, not what a largest frame would be; forgotten, it is
/// a largest again.
#[test]
fn the_length_of_the_head_decides() {
    for (head, fits) in [
        (None, false),
        (Some(1490), true),
        (Some(1491), false),
        (Some(0), false),
    ] {
        let mut wire = Wire::new(guard_band_held(Order::Next));
        // 3028 bytes apart: 1490 are free.
        let paced = wire.paced(500 * MBIT);
        let normal = wire.normal(None);
        assert_eq!(wire.step(|_| (1514, true)), Decision::Send(paced));
        if let Some(bytes) = head {
            wire.port.set_head(normal, bytes).unwrap();
        }
        let expected = if fits {
            Decision::Send(normal)
        } else {
            Decision::Gap { wire_bytes: 1490 }
        };
        assert_eq!(wire.port.next(0), expected, "{head:?}");
        if fits {
            wire.port.sent(normal, 1466, true, 0).unwrap();
            assert_eq!(wire.step(|_| (1514, true)), Decision::Send(paced));
            assert_eq!(
                wire.port.next(0),
                Decision::Gap { wire_bytes: 1490 },
                "forgotten"
            );
        }
    }
}

/// A burst counts what it takes on the wire.
#[test]
fn bursts_wait_as_a_whole() {
    let cfg = Config {
        max_burst_bytes: 4542,
        ..guard_band_held(Order::Next)
    };
    let mut wire = Wire::new(cfg);
    let paced = wire.paced(250 * MBIT);
    let normal = wire.normal(None);
    let burst = Burst {
        len_bytes: 3 * 1514,
        wire_bytes: 3 * 1538,
        frames: 3,
    };
    // 6056 - 1538 = 4518 are free, a burst takes 4614.
    assert_eq!(wire.step(|_| (1514, true)), Decision::Send(paced));
    assert!(
        matches!(wire.port.next(0), Decision::Gap { .. }),
        "unknown: the longest burst"
    );
    wire.port.set_head(normal, 2 * 1538).unwrap();
    assert_eq!(wire.port.next(0), Decision::Send(normal));
    wire.port.set_head(normal, burst.wire_bytes).unwrap();
    assert!(matches!(wire.port.next(0), Decision::Gap { .. }));
}

/// Of two normal classes the one that fits goes, and for as long as the other
/// does not.
#[test]
fn another_of_the_round_goes_instead() {
    for order in ORDERS {
        let mut wire = Wire::new(guard_band_held(order));
        let paced = wire.paced(500 * MBIT); // 1490 free
        let long = wire.normal(None);
        let short = wire.normal(None);
        let ids = [paced, long, short];
        let len = |id: ClassId, _| if id == short { 300 } else { 1514 };
        run(&mut wire, RUN, len, &ids);
        assert_eq!(wire.of(long).count(), 0, "it never fits");
        let periods = RUN.div_ceil(3028);
        assert!(wire.of(short).count() as u64 >= 4 * (periods - 1));
        assert_eq!(wire.port.late_bytes_max(), 0);
        // Nothing was saved up: once the line is free both have the same.
        wire.port.deactivate(paced, 0).unwrap();
        let from = wire.frames.len();
        run(&mut wire, 2 * RUN, len, &ids);
        let bytes = |id| -> i64 {
            let of = wire.frames[from..].iter().filter(|frame| frame.class == id);
            of.map(|frame| i64::from(frame.len) + 24).sum()
        };
        assert!((bytes(long) - bytes(short)).abs() < 4 * 1538);
    }
}

/// Frames that fit only now and then still get their share.
#[test]
fn deficits_stay_fair() {
    let mut random = Random(3);
    for order in ORDERS {
        let mut wire = Wire::new(guard_band_held(order));
        let ids = [
            wire.paced(100 * MBIT),
            wire.normal(None),
            wire.normal(None),
            wire.normal(Some(3028)),
        ];
        let salt = random.below(1000);
        let len = |id: ClassId, sent: u64| match id.index() {
            0 | 1 => 1514,
            2 => 60 + ((sent + salt) * 7919 % 1454) as u32,
            _ => 500,
        };
        run(&mut wire, 4 * RUN, len, &ids);
        let bytes = |id| wire.bytes_of(id) + 24 * wire.of(id).count() as u64;
        let [_, long, any, double] = ids.map(bytes);
        let close = |a: u64, b: u64| a.abs_diff(b) < b / 50;
        assert!(close(long, any), "{order:?}: {long} {any}");
        assert!(close(double, 2 * any), "{order:?}: {double} {any}");
    }
}

/// Any mix: when a normal frame ends no paced class has been due yet.
#[test]
fn no_paced_frame_waits_for_a_normal_one() {
    let mut random = Random(17);
    for round in 0..90 {
        let order = ORDERS[round % 3];
        let n = 1 + random.below(8) as usize;
        let load = 50 + random.below(800);
        let mut wire = Wire::new(guard_band_held(order));
        let rates = random.rates(n, load * MBIT, 30);
        let paced: Vec<_> = rates.iter().map(|&rate| wire.paced(rate)).collect();
        let normal: Vec<_> = (0..=random.below(4)).map(|_| wire.normal(None)).collect();
        let mut normals_sent = 0;
        while wire.port.global_bytes() < RUN / 4 {
            let heads: Vec<u32> = normal
                .iter()
                .map(|_| 60 + random.below(1455) as u32)
                .collect();
            for (id, head) in normal.iter().zip(&heads) {
                let bytes = wire.port.wire_bytes(*head).unwrap();
                wire.port.set_head(*id, bytes).unwrap();
            }
            let len = 60 + random.below(1455) as u32;
            let head = |id: ClassId| normal.iter().position(|other| *other == id);
            let decision = wire.step(|id| (head(id).map_or(len, |place| heads[place]), true));
            if matches!(decision, Decision::Send(id) if head(id).is_some()) {
                normals_sent += 1;
                let end = wire.port.global_bytes();
                for id in &paced {
                    let clock = wire.port.clock_bytes(*id);
                    assert!(
                        clock >= end,
                        "{order:?}: due {} before the end",
                        end - clock
                    );
                }
            }
        }
        assert!(normals_sent > 10);
    }
}
