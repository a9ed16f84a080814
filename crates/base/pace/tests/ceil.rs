// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is left of the line, shared among classes below their ceils: in
//! proportion to the rates, never above a ceil, and never at the expense of what
//! is guaranteed or of best effort.

use pace::{ClassConfig, ClassId, Config, Decision, Layer, Mode, Order, Scheduler};

use crate::wire::{Gigabit, Random, Wire};

const GBIT: u64 = 1_000_000_000;
const MBIT: u64 = 1_000_000;
const ORDERS: [Order; 3] = [Order::Clock, Order::Rate, Order::Next];
/// A tenth of a second at 1 Gbit/s.
const RUN: u64 = 12_500_000;

fn wire_rates(order: Order) -> Config {
    Config {
        order,
        layer: Layer::Wire,
        ..Config::ethernet(GBIT, 1514)
    }
}

/// Wire bit/s of a class since byte 0.
fn rate(wire: &Wire, class: ClassId) -> f64 {
    let bytes = |len: u32| u64::from(len.max(60)) + 24;
    let sum: u64 = wire.of(class).map(|frame| bytes(frame.len)).sum();
    sum as f64 / wire.port.global_bytes() as f64 * GBIT as f64
}

/// The largest share x such that all of min(rate + rate x, ceil) fit the line.
fn fair(classes: &[(u64, u64)], line: u64) -> Vec<f64> {
    let at = |x: f64| -> Vec<f64> {
        let share = |&(rate, ceil): &(u64, u64)| (rate as f64 * (1.0 + x)).min(ceil as f64);
        classes.iter().map(share).collect()
    };
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..100 {
        let x = (low + high) / 2.0;
        if at(x).iter().sum::<f64>() > line as f64 {
            high = x
        } else {
            low = x
        }
    }
    at(low)
}

#[test]
fn borrowing_is_shared_in_proportion_to_the_rates() {
    for (classes, expected) in [
        (vec![(100, 300)], vec![300]),
        (vec![(100, 1000)], vec![1000]),
        (vec![(500, 900)], vec![900]),
        (vec![(500, 500)], vec![500]),
        (vec![(100, 1000), (300, 1000)], vec![250, 750]),
        (vec![(100, 400), (300, 700)], vec![300, 700]),
        (vec![(100, 150), (300, 1000)], vec![150, 850]),
        (vec![(10, 90); 10], vec![90; 10]),
        (vec![(10, 1000); 10], vec![100; 10]),
        (vec![(1, 500), (1, 499)], vec![500, 499]),
        (
            vec![(100, 100), (100, 1000), (200, 1000)],
            vec![100, 300, 600],
        ),
        (
            vec![(10, 95), (20, 190), (30, 285), (5, 300)],
            vec![95, 190, 285, 300],
        ),
    ] {
        for order in ORDERS {
            let mut wire = Wire::new(wire_rates(order));
            let add = |&(rate, ceil): &(u64, u64)| wire.sharing(rate * MBIT, ceil * MBIT);
            let ids: Vec<_> = classes.iter().map(add).collect();
            wire.run_until(RUN, 1514);
            for (&id, &expected) in ids.iter().zip(&expected) {
                let got = rate(&wire, id) / MBIT as f64;
                // Two frames in a tenth of a second.
                let off = (got - expected as f64).abs();
                assert!(off < 0.25, "{classes:?} {order:?}: {got} not {expected}");
            }
        }
    }
}

/// Any rates and ceils that the line can hold together, or not.
#[test]
fn shares_are_those_of_filling_water() {
    let mut random = Random(11);
    for round in 0..60 {
        let n = 2 + random.below(9) as usize;
        let load = 300 + random.below(1700);
        let ceils = random.rates(n, load * MBIT, 20);
        let classes: Vec<(u64, u64)> = ceils
            .into_iter()
            .map(|ceil| (ceil / (3 + random.below(20)), ceil.min(GBIT)))
            .collect();
        let mut wire = Wire::new(wire_rates(ORDERS[round % 3]));
        let ids: Vec<_> = classes
            .iter()
            .map(|&(rate, ceil)| wire.sharing(rate, ceil))
            .collect();
        wire.run_until(4 * RUN, 1514);
        for (&id, expected) in ids.iter().zip(fair(&classes, GBIT)) {
            let off = (rate(&wire, id) - expected).abs();
            let frames = 3.0 * 1538.0 / (4 * RUN) as f64 * GBIT as f64;
            assert!(
                off < expected / 1000.0 + frames,
                "{classes:?}: {off} bit/s off"
            );
        }
    }
}

/// How far a class's bytes fall behind its rate over the worst of all windows.
fn shortfall(wire: &Wire, class: ClassId, rate_bps: u64) -> u64 {
    let line = u128::from(wire.cfg.line_rate_bps);
    let (mut behind, mut most, mut last) = (0u128, 0u128, 0u64);
    for frame in wire.of(class) {
        behind += u128::from(frame.start - last) * u128::from(rate_bps);
        most = most.max(behind);
        behind = behind.saturating_sub(u128::from(frame.len) * line);
        last = frame.start;
    }
    (most / line) as u64
}

/// Plain and sharing classes of random rates, some with best effort beside.
struct Mix {
    wire: Wire,
    /// Class, rate, ceil.
    classes: Vec<(ClassId, u64, u64)>,
}

impl Mix {
    fn new(random: &mut Random, order: Order) -> Self {
        let mut wire = Wire::new(Config {
            order,
            ..Config::ethernet(GBIT, 1514)
        });
        let n = 1 + random.below(12) as usize;
        let load = 50 + random.below(850);
        let mut classes = Vec::new();
        for (index, rate) in random.rates(n, load * MBIT, 30).into_iter().enumerate() {
            let ceil = (rate * (1 + random.below(10)) + random.below(rate)).min(GBIT);
            let id = if index < n / 3 {
                wire.paced(rate)
            } else {
                wire.sharing(rate, ceil)
            };
            classes.push((id, rate, if index < n / 3 { rate } else { ceil }));
        }
        if random.below(2) == 0 {
            wire.normal(None);
        }
        Mix { wire, classes }
    }
}

fn any_length(random: &mut Random) -> u32 {
    match random.below(3) {
        0 => 1514,
        1 => 60 + random.below(1455) as u32,
        _ => 60,
    }
}

/// Whatever the others do, and although every class runs empty at random.
#[test]
fn no_window_holds_more_than_the_ceil_and_three_frames() {
    let mut random = Random(5);
    for round in 0..90 {
        let mut mix = Mix::new(&mut random, ORDERS[round % 3]);
        let mut empty: Vec<ClassId> = Vec::new();
        while mix.wire.port.global_bytes() < RUN {
            let len = any_length(&mut random);
            let more = random.below(20) != 0;
            let decision = mix.wire.step(|_| (len, more));
            match decision {
                Decision::Send(id) if !more => empty.push(id),
                _ => {}
            }
            if random.below(10) == 0 || decision == Decision::Idle {
                for id in empty.drain(..) {
                    mix.wire.port.activate(id, 0).unwrap();
                }
            }
        }
        for &(id, rate, ceil) in &mix.classes {
            if ceil > rate {
                let burst = mix.wire.burstiness(id, ceil);
                assert!(burst <= 3 * 1514 + 84, "{rate} {ceil}: {burst} bytes");
            }
        }
    }
}

/// What is guaranteed holds over any window, to two largest frames (by next
/// clock: docs/decisions/core.md, "Smallest virtual finish time first"), whatever is sent above
/// other rates.
#[test]
fn no_window_holds_less_than_the_rate_less_two_frames() {
    let mut random = Random(6);
    for _ in 0..60 {
        let mut mix = Mix::new(&mut random, Order::Next);
        // Overhead: 850 Mbit/s of 1514 bytes is 864 on the wire.
        mix.wire.run_until(RUN, 1514);
        let borrowed = mix.wire.port.stats().borrowed_frames;
        for &(id, rate, ceil) in &mix.classes {
            let least = shortfall(&mix.wire, id, rate);
            assert!(
                least <= 2 * 1514 + 84,
                "{rate} {ceil}: {least}, {borrowed} borrowed"
            );
        }
    }
}

/// A ceil as high as the line leaves best effort all that is not guaranteed.
#[test]
fn best_effort_goes_before_borrowing() {
    for order in ORDERS {
        let mut wire = Wire::new(wire_rates(order));
        let greedy = wire.sharing(100 * MBIT, GBIT);
        let ssh = wire.normal(None);
        wire.run_until(RUN, 1514);
        assert!((rate(&wire, greedy) / MBIT as f64 - 100.0).abs() < 0.25);
        assert!((rate(&wire, ssh) / MBIT as f64 - 900.0).abs() < 0.25);
        assert_eq!(wire.port.stats().borrowed_frames, 0);
    }
}

/// A second of silence earns neither rate nor ceil: frames come evenly.
#[test]
fn silence_earns_nothing() {
    for order in ORDERS {
        let mut wire = Wire::new(wire_rates(order));
        let class = wire.sharing(100 * MBIT, 400 * MBIT);
        wire.run(100, 1514);
        wire.port.deactivate(class, 0).unwrap();
        let back_ns = 1_000_000_000;
        wire.port.activate(class, back_ns).unwrap();
        let from = wire.frames.len();
        wire.run(100, 1514);
        for pair in wire.frames[from..].windows(2) {
            assert_eq!(pair[1].start - pair[0].start, 1538 * 10 / 4);
        }
    }
}

#[test]
fn a_ceil_comes_and_goes_under_way() {
    for order in ORDERS {
        let mut wire = Wire::new(wire_rates(order));
        let class = wire.paced(100 * MBIT);
        let other = wire.paced(200 * MBIT);
        for (ceil, expected) in [
            (None, 100.0),
            (Some(500), 500.0),
            (Some(300), 300.0),
            (None, 100.0),
        ] {
            let rate_bps = 100 * MBIT;
            let config = match ceil {
                None => ClassConfig::Paced { rate_bps },
                Some(ceil) => ClassConfig::Borrowing {
                    rate_bps,
                    ceil_bps: ceil * MBIT,
                },
            };
            wire.port.change_class(class, &config, 0).unwrap();
            let from = (wire.port.global_bytes(), wire.frames.len());
            wire.run_until(from.0 + RUN, 1514);
            let count = |id| {
                wire.frames[from.1..]
                    .iter()
                    .filter(|f| f.class == id)
                    .count()
            };
            let mbit = |id| count(id) as f64 * 1538.0 / RUN as f64 * 1000.0;
            assert!(
                (mbit(class) - expected).abs() < 0.4,
                "{ceil:?}: {}",
                mbit(class)
            );
            assert!(
                (mbit(other) - 200.0).abs() < 0.4,
                "{ceil:?}: {}",
                mbit(other)
            );
        }
    }
}

/// Beyond the line there is nothing to share, and ceils do not disturb the
/// proportion.
#[test]
fn beyond_the_line_rates_decide() {
    for order in [Order::Clock, Order::Next] {
        let mut wire = Wire::new(wire_rates(order));
        let ids = [(800, 900), (400, 1000), (400, 401), (400, 400)]
            .map(|(rate, ceil)| wire.sharing(rate * MBIT, ceil * MBIT));
        wire.run(10_000, 1514);
        let counts = ids.map(|id| wire.of(id).count());
        assert_eq!(counts, [4000, 2000, 2000, 2000]);
        assert_eq!(wire.port.stats().borrowed_frames, 0);
    }
}

/// With a timer, frames leave when the one before has left the virtual line.
#[test]
fn a_timer_shares_the_same() {
    for (order, late_ns) in ORDERS
        .into_iter()
        .flat_map(|order| [(order, 0), (order, 15_000)])
    {
        let cfg = Config {
            mode: Mode::Timer,
            ..wire_rates(order)
        };
        let mut port = Scheduler::new(&cfg, 0).unwrap();
        let ids = [(100, 400), (100, 150)].map(|(rate, ceil)| {
            let config = ClassConfig::Borrowing {
                rate_bps: rate * MBIT,
                ceil_bps: ceil * MBIT,
            };
            let id = port.add_class(&config).unwrap();
            port.activate(id, 0).unwrap();
            id
        });
        let (mut now, mut counts) = (0, [0u64; 2]);
        while now < 100_000_000 {
            match port.next(now) {
                Decision::Send(id) => {
                    counts[id.index() as usize] += 1;
                    port.sent(id, 1514, true, now).unwrap();
                }
                Decision::Wait { until_ns } => now = until_ns + late_ns,
                other => panic!("{other:?}"),
            }
        }
        for (id, expected) in ids.into_iter().zip([400.0, 150.0]) {
            let mbit = counts[id.index() as usize] as f64 * 1538.0 * 8.0 / now as f64 * 1000.0;
            assert!((mbit - expected).abs() < 0.4, "{order:?} {late_ns}: {mbit}");
        }
    }
}

#[test]
fn who_waits_is_throttled() {
    let mut wire = Wire::new(wire_rates(Order::Next));
    let plain = wire.paced(100 * MBIT);
    let sharing = wire.sharing(100 * MBIT, 500 * MBIT);
    let is = |wire: &Wire| [plain, sharing].map(|id| wire.port.is_throttled(id).unwrap());
    assert_eq!(is(&wire), [false, false]);
    let mut seen = Vec::new();
    for _ in 0..4 {
        wire.step(|_| (1514, true));
        seen.push(is(&wire));
    }
    // Half as fast as the line, the sharing one may send every 3076 bytes: its
    // first frame waited for the other's, so the second follows at once; then
    // it waits for the end of a gap.
    assert_eq!(
        seen,
        [[true, false], [true, false], [true, true], [true, false]]
    );
    wire.port.deactivate(sharing, 0).unwrap();
    assert_eq!(
        is(&wire),
        [true, false],
        "who has nothing to send waits for nothing"
    );
}
