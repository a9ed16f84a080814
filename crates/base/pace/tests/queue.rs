// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queue of clocks alone (core/src/queue.c), as heap, as wheel and while it
//! changes from one to the other, against an ordered set.

use proptest::prelude::*;

use crate::wheel_queue::{Model, Random, WHEEL_CAPACITY, WHEEL_NEVER, replay};

/// How far ahead of the smallest value new ones are: what a queue is weak at.
#[derive(Clone, Copy, Debug)]
enum Spread {
    /// Thousands of ids at one value, which moves on when all have had it.
    Coinciding,
    /// Rates over 100:1, frames of 1500 bytes.
    Usual,
    /// Rates over 100,000:1.
    Wide,
    /// Frames of 64 bytes.
    Dense,
    /// A hundredth of the load.
    Thin,
    /// Here and there on all that a clock may lead by.
    Sparse,
    /// As `Usual`, and now and then before the smallest.
    Behind,
    /// Bunches, with nothing but a few values between them.
    Bunches,
}

const SPREADS: [Spread; 8] = [
    Spread::Coinciding,
    Spread::Usual,
    Spread::Wide,
    Spread::Dense,
    Spread::Thin,
    Spread::Sparse,
    Spread::Behind,
    Spread::Bunches,
];

/// Log-uniform from 1 to `most`.
fn log_uniform(random: &mut Random, most: f64) -> f64 {
    (most.ln() * random.part()).exp()
}

impl Spread {
    /// The next value of one of `ids`, the smallest value being `now`.
    fn next(self, random: &mut Random, now: u64, ids: u64) -> u64 {
        let usual = |random: &mut Random, ratio, bytes: f64| {
            now + (log_uniform(random, ratio) * ids as f64 * bytes) as u64
        };
        match self {
            Spread::Coinciding => (now | 0xf_ffff) + 1,
            Spread::Usual => usual(random, 100.0, 400.0),
            Spread::Wide => usual(random, 1e5, 200.0),
            Spread::Dense => usual(random, 100.0, 20.0),
            Spread::Thin => usual(random, 100.0, 40_000.0),
            Spread::Sparse => {
                let bits = random.below(42) + 1;
                now + random.below(1 << bits)
            }
            Spread::Behind if random.below(4) == 0 => now - random.below(1_000_000),
            Spread::Behind => usual(random, 100.0, 400.0),
            Spread::Bunches if random.below(500) == 0 => now + random.below(1 << 24),
            Spread::Bunches => (now | 0xff_ffff) + 1,
        }
    }
}

/// Fills the queue, then takes, moves, removes and inserts at random, then
/// empties it.
fn run(spread: Spread, ids: u32, steps: u32, wheel_from: u32, start: u64) {
    let mut random = Random::new(u64::from(ids) ^ start);
    let mut model = Model::new(ids);
    model.wheel_from(wheel_from);
    for id in 0..ids {
        let value = spread.next(&mut random, start, u64::from(ids));
        model.insert(id, value);
    }
    for _ in 0..steps {
        let now = model.min_value().unwrap_or(start);
        let value = spread.next(&mut random, now, u64::from(ids));
        let any = random.below(u64::from(ids)) as u32;
        match random.below(16) {
            0 if model.has(any) => model.remove(any),
            0 | 1 if !model.has(any) => model.insert(any, value),
            2 => model.remove_min(),
            _ => model.replace_min(value),
        }
    }
    while model.min_value().is_some() {
        model.remove_min();
    }
    model.assert_all_given_back();
}

/// 0; where the value in a key wraps; where clocks do.
const STARTS: [u64; 3] = [1 << 32, (1 << 44) - 300_000, (1 << 63) - (1 << 20)];

#[test]
fn any_spread_of_values_is_in_order() {
    for spread in SPREADS {
        for (ids, steps) in [(1, 100), (3, 300), (40, 2000), (700, 5000), (5000, 20_000)] {
            for wheel_from in [WHEEL_NEVER, 0, 500] {
                for start in STARTS {
                    run(spread, ids, steps, wheel_from, start);
                }
            }
        }
    }
}

#[test]
fn many_ids_are_in_order() {
    for spread in SPREADS {
        run(spread, 60_000, 100_000, WHEEL_CAPACITY, 1 << 32);
        run(spread, 90_000, 100_000, 0, 1 << 32);
    }
}

/// The wheel is left and entered again while it holds keys, and so is the heap.
#[test]
fn changing_over_keeps_the_order_both_ways() {
    for spread in SPREADS {
        let mut random = Random::new(7);
        let ids = 3000;
        let mut model = Model::new(ids);
        for round in 0..40 {
            // Above and below what the wheel is used from, and half of that.
            let goal = [2500, 1100, 30, 900, 1700, 0][round % 6];
            model.wheel_from([1000, 1000, 0, 1000, WHEEL_NEVER, 20][round / 2 % 6]);
            for _ in 0..4000 {
                let now = model.min_value().unwrap_or(1 << 40);
                let value = spread.next(&mut random, now, u64::from(ids));
                let any = random.below(u64::from(ids)) as u32;
                match (model.len() as u64).cmp(&goal) {
                    std::cmp::Ordering::Less if !model.has(any) => model.insert(any, value),
                    std::cmp::Ordering::Greater if model.has(any) => model.remove(any),
                    _ if model.len() > 0 => model.replace_min(value),
                    _ => {}
                }
            }
        }
    }
}

/// More memory while both structures hold keys.
#[test]
fn a_queue_grows_with_what_is_in_it() {
    for spread in SPREADS {
        let mut random = Random::new(3);
        let mut model = Model::small(16);
        let mut ids = 16;
        for id in 0..20_000 {
            if id == ids {
                ids *= 2;
                model.grow(ids);
            }
            let now = model.min_value().unwrap_or(1 << 40);
            model.insert(id, spread.next(&mut random, now, u64::from(ids)));
            let now = model.min_value().unwrap();
            model.replace_min(spread.next(&mut random, now, u64::from(ids)));
        }
        while model.min_value().is_some() {
            model.remove_min();
        }
        model.assert_all_given_back();
    }
}

/// A pool that is too small costs time, not order: what has no place in the
/// tree goes to the heap.
#[test]
fn without_a_free_block_the_order_is_kept() {
    let ids = 20_000;
    let mut random = Random::new(11);
    let mut model = Model::with_pool_for(ids, WHEEL_CAPACITY);
    model.wheel_from(0);
    for id in 0..ids {
        model.insert(id, (1 << 40) + random.below(1 << 42));
    }
    for _ in 0..40_000 {
        let now = model.min_value().unwrap();
        model.replace_min(now + random.below(1 << 41));
    }
    while model.min_value().is_some() {
        model.remove_min();
    }
    model.assert_all_given_back();
}

/// Two neighbours of thousands at one value are exchanged: at the end of a chunk of
/// 31 keys, across two chunks, or anywhere.
#[test]
fn ids_of_one_value_are_in_order_whichever_way_they_come() {
    for seed in 0..80 {
        let mut random = Random::new(seed);
        let mut ids: Vec<u32> = (0..2000).collect();
        let chunk = random.below(63) as usize * 31;
        match seed % 4 {
            0 => {}
            1 => ids.swap(chunk + 29, chunk + 30),
            2 => ids.swap(chunk + 30, chunk + 31),
            _ => ids.swap(random.below(2000) as usize, random.below(2000) as usize),
        }
        let mut model = Model::new(2048);
        model.wheel_from(0);
        // The wheel begins here, so that all others are in one slot.
        model.insert(2047, 1 << 32);
        for &id in &ids {
            model.insert(id, (1 << 32) + 5_000_000);
        }
        if seed % 3 == 0 {
            (0..500).for_each(|_| model.remove_min());
            model.grow(4096);
        }
        while model.min_value().is_some() {
            model.remove_min();
        }
        model.assert_all_given_back();
    }
}

/// A class that leaves and comes back at the same clock leaves the same key each time.
#[test]
fn one_key_many_times_comes_out_once() {
    let mut model = Model::new(2048);
    model.wheel_from(0);
    model.insert(0, 1 << 32);
    for _ in 0..300 {
        model.insert(1, (1 << 32) + 5_000_000);
        model.remove(1);
    }
    model.insert(1, (1 << 32) + 5_000_000);
    model.insert(2, (1 << 32) + 5_000_000);
    for id in 0..3 {
        assert_eq!(model.min_id(), Some(id));
        model.remove_min();
    }
    model.assert_all_given_back();
}

/// The next ids are known in the wheel, so that their classes can be fetched.
#[test]
fn who_comes_is_known_in_the_wheel() {
    let mut model = Model::new(2000);
    model.wheel_from(0);
    for id in 0..2000u32 {
        model.insert(id, u64::from(id) * 1700 + (1 << 40));
    }
    for id in 0..1900u32 {
        assert_eq!(model.min_id(), Some(id));
        // The first ones may still be in the heap.
        if id > 100 {
            assert_eq!(model.coming(0), Some(id + 1));
            assert_eq!(model.coming(20), Some(id + 21));
        }
        model.remove_min();
    }
    model.wheel_from(WHEEL_NEVER);
    assert_eq!(Model::new(600).coming(0), None, "a heap does not know");
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u32, u64),
    Remove(u32),
    RemoveMin,
    ReplaceMin(u64),
    WheelFrom(u32),
}

/// Ahead of the smallest value by up to 2^42, or behind.
fn ahead() -> impl Strategy<Value = u64> {
    let bits = prop_oneof![3 => 0u32..12, 6 => 12u32..30, 1 => 30u32..42];
    (bits, any::<u64>()).prop_map(|(bits, any)| any & ((1 << bits) - 1))
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0u32..600, ahead()).prop_map(|(id, ahead)| Op::Insert(id, ahead)),
        3 => (0u32..600).prop_map(Op::Remove),
        2 => Just(Op::RemoveMin),
        8 => ahead().prop_map(Op::ReplaceMin),
        1 => prop_oneof![Just(0u32), Just(WHEEL_NEVER), 1u32..200].prop_map(Op::WheelFrom),
    ]
}

proptest! {
    #![proptest_config(testkit::cases(300))]

    #[test]
    fn any_sequence_is_in_order(ops in prop::collection::vec(op(), 1..1500)) {
        let mut model = Model::new(600);
        for op in ops {
            let now = model.min_value().unwrap_or((1 << 44) - 10_000);
            match op {
                Op::Insert(id, ahead) if !model.has(id) => model.insert(id, now + ahead),
                Op::Remove(id) if model.has(id) => model.remove(id),
                Op::RemoveMin if model.len() > 0 => model.remove_min(),
                Op::ReplaceMin(ahead) if model.len() > 0 => model.replace_min(now + ahead),
                Op::WheelFrom(ids) => model.wheel_from(ids),
                _ => {}
            }
        }
    }
}

/// What the fuzzer has found worth keeping (docs/contribute/fuzzing.md).
#[test]
fn the_corpus_is_in_order() {
    for (name, bytes) in testkit::corpus("queue", 10) {
        println!("{name}");
        replay(&bytes);
    }
}
