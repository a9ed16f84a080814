// SPDX-License-Identifier: MIT OR Apache-2.0
//! More demand than line (paper 002, 2.4): exact shares, no bursts, and classes
//! that come and go.

use pace::{Burst, ClassConfig, ClassId, Config, Decision, Layer, Mode, Order, Scheduler};

use crate::wire::{Gigabit, Random, Wire};

const GBIT: u64 = 1_000_000_000;

/// The orders that share what there is in proportion to the rates.
const FAIR: [Order; 2] = [Order::Clock, Order::Next];

fn ethernet(order: Order, line_rate_bps: u64, max_frame_bytes: u32) -> Config {
    Config {
        order,
        ..Config::ethernet(line_rate_bps, max_frame_bytes)
    }
}

/// How far a class is from its share of what all got, in bytes of its own, over
/// the worst of all windows.
fn worst_window(wire: &Wire, class: ClassId, rate: u64, total_rate: u64) -> u64 {
    let (mut own, mut all) = (0i128, 0i128);
    let (mut low, mut high) = (0i128, 0i128);
    for frame in &wire.frames {
        own += i128::from(u64::from(frame.class == class) * u64::from(frame.len));
        all += i128::from(frame.len);
        let off = own * i128::from(total_rate) - all * i128::from(rate);
        low = low.min(off);
        high = high.max(off);
    }
    ((high - low) / i128::from(total_rate)) as u64
}

/// Paper 002, table 3: 4, 4, 4, 2 and 2 Gbit/s on 10 Gbit/s share as 2:2:2:1:1.
#[test]
fn paper_002_table_3() {
    for order in FAIR {
        let mut wire = Wire::new(ethernet(order, 10 * GBIT, 9014));
        let rates = [4, 4, 4, 2, 2].map(|gbit| gbit * GBIT);
        let ids = rates.map(|rate| wire.paced(rate));
        wire.run(80_000, 9014);
        assert!(wire.gaps.is_empty());
        for (id, rate) in ids.into_iter().zip(rates) {
            assert_eq!(wire.of(id).count() as u64, 80_000 * rate / (16 * GBIT));
            let off = worst_window(&wire, id, rate, 16 * GBIT);
            assert!(off <= 9014, "{order:?}: {off} bytes over some window");
        }
    }
}

/// Any rates and lengths: of two backlogged classes neither is ever ahead of
/// the other by more than a frame of one of them (by next clock: a largest
/// frame), relative to its rate.
#[test]
fn shares_are_proportional_to_the_byte() {
    let mut random = Random(7);
    for (n, order) in [2, 5, 20].into_iter().flat_map(|n| FAIR.map(|o| (n, o))) {
        let mut wire = Wire::new(ethernet(order, GBIT, 1514));
        let rates = random.rates(n, 3 * GBIT, 20);
        let rates: Vec<u64> = rates.into_iter().map(|rate| rate.min(GBIT)).collect();
        let ids: Vec<_> = rates.iter().map(|&rate| wire.paced(rate)).collect();
        let lens = [1514, 60, 800];
        let mut got = vec![0u64; n];
        for _ in 0..20_000 {
            let decision = wire.step(|class| (lens[class.index() as usize % 3], true));
            let Decision::Send(class) = decision else {
                panic!("the line is never idle: {decision:?}");
            };
            let at = ids.iter().position(|id| *id == class).unwrap();
            got[at] += u64::from(lens[at % 3]);
            for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
                // Time of the line that i's and j's bytes stand for, x line rate.
                let time = |k: usize, bytes: u64| bytes as f64 / rates[k] as f64;
                let apart = (time(i, got[i]) - time(j, got[j])).abs();
                let frame = |k: usize| match order {
                    Order::Next => 1514,
                    _ => u64::from(lens[k % 3]),
                };
                let most = time(i, frame(i)).max(time(j, frame(j)));
                // Clocks, and next clocks, are compared in whole bytes of the line.
                assert!(apart <= most + 2.0 / GBIT as f64, "{apart} > {most}");
            }
        }
    }
}

/// What leaves when every class runs empty after each packet, and is filled
/// again before anyone else sends; or when none ever does.
fn record(order: Order, rates: &[u64], runs_empty: bool) -> Wire {
    let mut wire = Wire::new(ethernet(order, GBIT, 1514));
    for mbit in rates {
        wire.paced(mbit * 1_000_000);
    }
    while wire.frames.len() < 6000 {
        if let Decision::Send(class) = wire.step(|_| (1514, !runs_empty)) {
            wire.port.activate(class, 0).unwrap();
        }
    }
    wire
}

/// It costs nothing: neither within the line, nor beyond it while the others
/// alone exceed it.
#[test]
fn running_empty_for_an_instant_costs_nothing() {
    for rates in [
        vec![600, 600, 900],
        vec![1000, 1000, 1000],
        vec![300, 600],
        vec![
            500, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20,
        ],
    ] {
        for order in FAIR {
            let same = record(order, &rates, true).frames == record(order, &rates, false).frames;
            assert!(same, "{order:?} {rates:?}");
        }
    }
}

/// Where the others alone do not exceed the line, the lag is forgotten each
/// time: the wire idles until the next clock, but the shares stay exact.
#[test]
fn running_empty_keeps_the_shares() {
    let sets = [vec![300, 900], vec![950, 100, 400]];
    for (order, rates) in FAIR.into_iter().flat_map(|o| sets.clone().map(|r| (o, r))) {
        let wire = record(order, &rates, true);
        let total: u64 = rates.iter().sum();
        for (index, rate) in rates.iter().enumerate() {
            let own = wire
                .frames
                .iter()
                .filter(|frame| frame.class.index() as usize == index);
            let got = own.count() as u64;
            let due = 6000 * rate / total;
            assert!(got.abs_diff(due) <= 1, "{order:?} {rates:?}: {got}");
        }
    }
}

/// One that is away for a frame or two each time gets no more than its share,
/// and what it leaves goes to the others: the wire is never idle for it while
/// they alone exceed the line.
#[test]
fn coming_and_going_earns_nothing() {
    FAIR.into_iter().for_each(coming_and_going_earns_nothing_in);
}

fn coming_and_going_earns_nothing_in(order: Order) {
    let mut random = Random(3);
    let mut wire = Wire::new(ethernet(order, GBIT, 1514));
    let steady = [wire.paced(GBIT * 6 / 10), wire.paced(GBIT * 6 / 10)];
    let restless = wire.paced(GBIT * 9 / 10);
    let mut away = 0;
    for _ in 0..60_000 {
        let decision = wire.step(|class| (1514, class != restless));
        if decision == Decision::Send(restless) {
            away = random.below(4);
        } else {
            away = away.saturating_sub(1);
        }
        if away == 0 {
            wire.port.activate(restless, 0).unwrap();
        }
    }
    assert!(wire.gaps.is_empty(), "{} gaps", wire.gaps.len());
    let [a, b] = steady.map(|id| wire.bytes_of(id));
    assert!(a.abs_diff(b) <= 2 * 1514);
    let (own, all) = (wire.bytes_of(restless), wire.bytes_of(restless) + a + b);
    assert!(
        own * 21 <= all * 9 + 1514 * 21,
        "{own} of {all}: above 9/21"
    );
    assert!(
        own * 21 >= all * 6,
        "{own} of {all}: it was there most of the time"
    );
}

/// Several that toggle share exactly, also while others are away: a pause of
/// one does not let another pay its gaps faster.
#[test]
fn several_that_come_and_go_share_alike() {
    FAIR.into_iter()
        .for_each(several_that_come_and_go_share_alike_in);
}

fn several_that_come_and_go_share_alike_in(order: Order) {
    let mut wire = Wire::new(ethernet(order, GBIT, 1514));
    let steady = wire.paced(GBIT * 8 / 10);
    let twins = [wire.paced(GBIT * 8 / 10), wire.paced(GBIT * 8 / 10)];
    for step in 0..60_000u64 {
        let decision = wire.step(|class| (1514, class == steady));
        // A twin comes back when the next frame after its own has left.
        if let Decision::Send(class) = decision {
            for twin in twins.into_iter().filter(|twin| *twin != class) {
                wire.port.activate(twin, 0).unwrap();
            }
        }
        assert!(!matches!(decision, Decision::Idle), "step {step}");
    }
    let [a, b] = twins.map(|id| wire.bytes_of(id));
    let s = wire.bytes_of(steady);
    assert!(a.abs_diff(b) <= 2 * 1514, "{a} {b}");
    assert!(s.abs_diff(a) <= s / 1000 + 2 * 1514, "{s} {a} {b}");
}

/// When the others leave, what has piled up does not come out: the next frames
/// of the rest are at its own rate.
#[test]
fn no_burst_when_the_line_suffices_again() {
    FAIR.into_iter()
        .for_each(no_burst_when_the_line_suffices_again_in);
}

fn no_burst_when_the_line_suffices_again_in(order: Order) {
    for leave_by in ["empty", "deactivate", "remove", "slow down"] {
        let mut wire = Wire::new(ethernet(order, GBIT, 1514));
        let stays = wire.paced(GBIT * 6 / 10);
        let others = [wire.paced(GBIT * 7 / 10), wire.paced(GBIT * 9 / 10)];
        wire.run(5000, 1514);
        for other in others {
            match leave_by {
                "empty" => {
                    while wire.step(|class| (1514, class != other)) != Decision::Send(other) {}
                }
                "deactivate" => wire.port.deactivate(other, 0).unwrap(),
                "remove" => wire.port.remove_class(other).unwrap(),
                _ => {
                    let rate_bps = GBIT / 10;
                    wire.port
                        .change_class(other, &ClassConfig::Paced { rate_bps }, 0)
                        .unwrap();
                }
            }
        }
        assert!(wire.port.stats().rebases > 0);
        let from = wire.port.global_bytes();
        wire.run(1000, 1514);
        let starts: Vec<u64> = wire
            .of(stays)
            .map(|f| f.start)
            .filter(|s| *s >= from)
            .collect();
        let interval = 1514 * 10 / 6;
        for (k, start) in starts.iter().enumerate() {
            let least = starts[0] + (k as u64) * interval;
            // One frame of another may have delayed the first.
            assert!(
                start + 1538 * 2 >= least,
                "{leave_by}: frame {k} at {start} < {least}"
            );
        }
        let lasted = starts[starts.len() - 1] - starts[0];
        let expected = (starts.len() as u64 - 1) * 1514 * 10 / 6;
        assert!(
            lasted.abs_diff(expected) <= 2 * 1538,
            "{leave_by}: {lasted} {expected}"
        );
    }
}

/// Within the line lag belongs to the classes: nothing is moved, nothing lost.
#[test]
fn within_the_line_clocks_are_never_moved() {
    FAIR.into_iter()
        .for_each(within_the_line_clocks_are_never_moved_in);
}

fn within_the_line_clocks_are_never_moved_in(order: Order) {
    let mut random = Random(11);
    for layer in [Layer::Wire, Layer::Link] {
        for n in [2, 10, 100] {
            let mut wire = Wire::new(Config {
                layer,
                ..ethernet(order, GBIT, 1514)
            });
            // 1514 of 1538 bytes count at the link layer.
            let sum = if layer == Layer::Wire {
                GBIT
            } else {
                GBIT * 98 / 100
            };
            let rates = random.rates(n, sum, 1000);
            let ids: Vec<_> = rates.iter().map(|&rate| wire.paced(rate)).collect();
            for _ in 0..50_000 {
                if let Decision::Send(class) = wire.step(|_| (1514, random.below(4) > 0)) {
                    wire.port.activate(class, 0).unwrap();
                }
            }
            assert_eq!(wire.port.stats().rebases, 0);
            let span = wire.port.global_bytes();
            for (id, rate) in ids.into_iter().zip(rates) {
                let counted = if layer == Layer::Wire { 1538 } else { 1514 };
                let got = wire.of(id).count() as f64 * f64::from(counted);
                let due = rate as f64 * span as f64 / GBIT as f64;
                // The first leaves at once; all may be waiting at the end.
                let slack = f64::from(counted) * (2.0 + rate as f64 / GBIT as f64 * n as f64);
                assert!((got - due).abs() <= slack, "{got} of {due}");
            }
        }
    }
}

/// Padding counts: rates that fit the line do not when their frames are small.
#[test]
fn demand_is_what_the_wire_carries() {
    FAIR.into_iter()
        .for_each(demand_is_what_the_wire_carries_in);
}

fn demand_is_what_the_wire_carries_in(order: Order) {
    for (len, over) in [(1514, false), (60, true)] {
        let mut wire = Wire::new(ethernet(order, GBIT, 1514));
        let ids = [wire.paced(GBIT * 45 / 100), wire.paced(GBIT * 45 / 100)];
        wire.run(10_000, len);
        wire.port.deactivate(ids[0], 0).unwrap();
        assert_eq!(wire.port.stats().rebases > 0, over, "{len}");
    }
}

/// Highest rate first, over-subscribed: the highest rates in full, the lowest
/// starve, and do not make up for it when the others leave.
#[test]
fn by_rate_the_lowest_starve_and_have_a_bounded_lag() {
    let cfg = Config {
        order: Order::Rate,
        ..Config::ethernet(GBIT, 1514)
    };
    let mut wire = Wire::new(cfg);
    let [high, middle, low] = [6, 4, 2].map(|tenths| wire.paced(GBIT * tenths / 10));
    wire.run(20_000, 1514);
    let span = wire.port.global_bytes();
    assert!(wire.bytes_of(high).abs_diff(span * 6 / 10) <= 2 * 1514);
    assert!(wire.bytes_of(middle) > span * 37 / 100);
    assert!(wire.bytes_of(low) < span * 2 / 100, "starved");
    wire.port.deactivate(high, 0).unwrap();
    wire.port.deactivate(middle, 0).unwrap();
    let from = wire.port.global_bytes();
    let before = wire.bytes_of(low);
    wire.run_until(from + 10_000_000, 1514);
    let got = wire.bytes_of(low) - before;
    assert!(got.abs_diff(2_000_000) <= 6 * 1514, "{got} bytes of 2 MB");
}

/// A class that comes while another is alone eligible goes first once it is due, if its virtual
/// finish time is smaller.
#[test]
fn who_comes_to_one_that_is_alone_is_seen() {
    let mut port = Scheduler::new(
        &Config {
            order: Order::Next,
            mode: Mode::Timer,
            overhead_bytes: 0,
            ..Config::ethernet(1_000_000_000, 1500)
        },
        0,
    )
    .unwrap();
    let paced = |mbit: u64| ClassConfig::Paced {
        rate_bps: mbit * 1_000_000,
    };
    let [slow, slower, fast] = [10, 5, 500].map(|mbit| port.add_class(&paced(mbit)).unwrap());
    let mut send = |class, more, us: u64| {
        port.activate(class, us * 1000).unwrap();
        assert_eq!(port.next(us * 1000), Decision::Send(class), "{us} us");
        port.sent(class, 1500, more, us * 1000).unwrap();
    };
    send(slow, true, 0); // due again at 1200 us, then until 2400
    send(slower, true, 12); // at 2412 us
    send(fast, false, 1185); // at 1209 us, then until 1233
    assert_eq!(port.next(1_201_000), Decision::Send(slow));
    port.activate(fast, 1_202_000).unwrap();
    assert_eq!(port.next(1_203_000), Decision::Send(slow));
    assert_eq!(port.next(1_210_000), Decision::Send(fast));
}

/// Classes that owe long bursts, by quanta far smaller: who is next is whoever a round after
/// the other gives a surplus first, although the rounds in vain are added at once.
#[test]
fn rounds_in_vain_change_nobody_s_place() {
    let cfg = Config {
        max_burst_bytes: 60_000,
        ..Config::ethernet(GBIT, 1514)
    };
    let mut port = Scheduler::new(&cfg, 0).unwrap();
    let quanta = [256u32, 300, 1000, 257, 5000];
    let ids = quanta.map(|quantum_bytes| {
        let quantum_bytes = Some(quantum_bytes);
        let id = port
            .add_class(&ClassConfig::Normal { quantum_bytes })
            .unwrap();
        port.activate(id, 0).unwrap();
        id
    });
    let mut deficits = [0i64; 5];
    let mut at = 0;
    for step in 0..2000u32 {
        while deficits[at] <= 0 {
            deficits[at] += i64::from(quanta[at]);
            if deficits[at] <= 0 {
                at = (at + 1) % 5;
            }
        }
        assert_eq!(port.next(0), Decision::Send(ids[at]), "step {step}");
        let len_bytes = 60 + step * 7919 % 59_000;
        let frames = len_bytes.div_ceil(1514);
        let wire_bytes = len_bytes + frames * 24;
        let burst = Burst {
            len_bytes,
            wire_bytes,
            frames,
        };
        port.sent_burst(ids[at], burst, true, 0).unwrap();
        deficits[at] -= i64::from(wire_bytes);
        if deficits[at] <= 0 {
            at = (at + 1) % 5;
        }
    }
}
