// SPDX-License-Identifier: MIT OR Apache-2.0
//! Burstiness (paper 000, 4.1) of classes within the line: where the papers'
//! two orders keep it, and that the third does everywhere.

use pace::{ClassId, Config, Layer, Order};

use crate::wire::{Random, Wire};

const GBIT: u64 = 1_000_000_000;
/// What the paper calls an MTU, on the wire: rates count wire bytes here.
const MTU: u64 = 1538;

/// A port whose lengths are wire lengths, at least 84.
fn port(order: Order, rates: &[u64]) -> (Wire, Vec<ClassId>) {
    let cfg = Config {
        order,
        layer: Layer::Wire,
        overhead_bytes: 0,
        min_frame_bytes: 84,
        ..Config::ethernet(GBIT, MTU as u32)
    };
    let mut wire = Wire::new(cfg);
    let ids = rates.iter().map(|&rate| wire.paced(rate)).collect();
    (wire, ids)
}

/// Burstiness of each class in wire bytes, all backlogged with frames of one
/// MTU.
fn burstiness(order: Order, rates: &[u64], frames: usize) -> Vec<u64> {
    let (mut wire, ids) = port(order, rates);
    wire.run(frames, MTU as u32);
    ids.iter()
        .zip(rates)
        .map(|(&id, &rate)| wire.burstiness(id, rate))
        .collect()
}

/// One class: 1 MTU, to the byte, wherever gaps need no rounding, and less than
/// one smallest gap more where they do.
#[test]
fn one_class_alone() {
    for percent in 1..=100 {
        let rate = GBIT * percent / 100;
        let bytes = burstiness(Order::Clock, &[rate], 5000)[0];
        if MTU * 100 / percent >= MTU + 84 {
            // Instants are whole bytes, the rate's need not be.
            assert!(bytes - MTU <= 1, "{percent} %: {bytes}");
        } else {
            assert!(bytes <= MTU + 84, "{percent} %: {bytes}");
        }
    }
}

/// Precise pacing as the paper defines it, at most 2 MTU: up to a hundred
/// classes of one rate, at any load.
#[test]
fn equal_classes_are_paced_precisely() {
    for order in [Order::Clock, Order::Rate, Order::Next] {
        for n in [2, 3, 6, 10, 33, 100] {
            for percent in [10, 50, 80, 95, 99, 100] {
                let rates = vec![GBIT * percent / 100 / n; n as usize];
                let worst = burstiness(order, &rates, n as usize * 50);
                let worst = worst.into_iter().max().unwrap();
                assert!(worst <= 2 * MTU, "{order:?} {n} x {percent} %: {worst}");
            }
        }
    }
}

/// Uneven rates. Neither of the papers' orders keeps 2 MTU for every set: a
/// fast class may find all others due before it (smallest clock first), a slow
/// one may find them due again and again (highest rate first). What holds for
/// smallest clock first: no clock is behind by more than one frame of each
/// class and two, so a class of rate r bursts at most 1 + (n + 2) r / line MTU;
/// see docs/decisions/core.md, "Burstiness of the papers' orders".
#[test]
fn uneven_classes_by_clock() {
    let mut beyond_two = 0;
    for (n, spread) in [
        (2, 10),
        (3, 10),
        (10, 1),
        (10, 100),
        (30, 1000),
        (100, 10),
        (100, 1000),
    ] {
        for seed in 1..=20 {
            for percent in [50, 80, 95, 100] {
                let rates = Random(seed).rates(n, GBIT * percent / 100, spread);
                let bursts = burstiness(Order::Clock, &rates, n * 40);
                for (bytes, rate) in bursts.iter().zip(&rates) {
                    let bound = MTU + (n as u64 + 2) * MTU * rate / GBIT + 1;
                    assert!(*bytes <= bound, "n {n} rate {rate}: {bytes} > {bound}");
                    assert!(*bytes <= 4 * MTU, "n {n} rate {rate}: {bytes}");
                    beyond_two += usize::from(*bytes > 2 * MTU);
                }
            }
        }
    }
    // The limit is real: the order by virtual finish time avoids it.
    assert!(beyond_two > 0, "smallest clock first has become precise");
}

/// Highest rate first: the highest is late by one frame of another, no more.
#[test]
fn the_highest_rate_is_paced_precisely_by_rate() {
    for (n, spread) in [(2, 10), (10, 100), (30, 1000), (100, 10)] {
        for seed in 1..=20 {
            for percent in [50, 80, 95, 100] {
                let rates = Random(seed).rates(n, GBIT * percent / 100, spread);
                let bursts = burstiness(Order::Rate, &rates, n * 40);
                let top = (0..n).max_by_key(|&i| (rates[i], n - i)).unwrap();
                assert!(bursts[top] <= 2 * MTU, "n {n}: {}", bursts[top]);
            }
        }
    }
}

/// What the order by virtual finish time adds to two frames, at most: no frame leaves
/// more than half a smallest gap (42 bytes) before its clock, none starts more
/// than the rest of one (41) and two roundings to whole bytes (clock, period)
/// after its next clock. These are bytes of the line; a class of rate r sends
/// r / line of them.
fn rounding(rate: u64) -> u64 {
    ((42 + 41 + 2) * rate).div_ceil(GBIT)
}

/// Sets of rates within the line: even, uneven by up to 1000 times (evenly and
/// on a logarithmic scale), and one class that has half of the line.
fn feasible_sets() -> impl Iterator<Item = Vec<u64>> {
    let shapes = [1, 2, 3, 6, 10, 30, 100].into_iter().flat_map(|n| {
        let random = [1, 10, 1000]
            .into_iter()
            .flat_map(move |spread| (1..=6).map(move |seed| Random(seed).rates(n, GBIT, spread)));
        let logarithmic = (1..=6).map(move |seed| Random(seed).rates_log(n, GBIT, 1000));
        let half = std::iter::once(GBIT / 2).chain(std::iter::repeat_n(GBIT / 2 / n as u64, n));
        random.chain(logarithmic).chain([half.collect()])
    });
    shapes.flat_map(|rates: Vec<u64>| {
        [30, 50, 80, 95, 99, 100].map(|percent| {
            let scaled = rates.iter().map(|rate| rate * percent / 100);
            scaled.map(|rate| rate.max(1)).collect()
        })
    })
}

/// Smallest next clock first: precise, whatever the rates. Each frame starts
/// between its clock and its next clock.
#[test]
fn every_feasible_set_is_paced_precisely_by_virtual_finish_time() {
    for rates in feasible_sets() {
        let frames = (rates.len() * 40).max(400);
        let bursts = burstiness(Order::Next, &rates, frames);
        for (bytes, &rate) in bursts.iter().zip(&rates) {
            let bound = 2 * MTU + rounding(rate);
            assert!(*bytes <= bound, "{bytes} > {bound} at {rate} of {rates:?}");
        }
    }
}

/// Frames of any lengths: a class bursts at most one largest frame and the
/// longest of its own, and the clocks of a feasible set are never moved. In
/// every second set a normal class takes what is left.
#[test]
fn any_lengths_are_paced_precisely_by_virtual_finish_time() {
    for (seed, rates) in (1..).zip(feasible_sets()) {
        let mut random = Random(seed);
        let (mut wire, ids) = port(Order::Next, &rates);
        if seed % 2 == 0 {
            wire.normal(None);
        }
        // Every third class: small, large, or any.
        let range =
            |class: ClassId| [(84, 200), (1200, MTU), (84, MTU)][class.index() as usize % 3];
        while wire.frames.len() < (rates.len() * 40).max(400) {
            wire.step(|class| {
                let (least, most) = range(class);
                ((least + random.below(most - least + 1)) as u32, true)
            });
        }
        for (&id, &rate) in ids.iter().zip(&rates) {
            let bytes = wire.burstiness(id, rate);
            let bound = MTU + range(id).1 + rounding(rate);
            assert!(bytes <= bound, "{bytes} > {bound} at {rate} of {rates:?}");
        }
        assert_eq!(wire.port.stats().rebases, 0, "{rates:?}");
    }
}
