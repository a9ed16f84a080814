// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many reservations a manager takes, and how fast: a network of 10,000 links filled with
//! 100,000 reservations, then churn. Beside it the store's own limit: the same transactions without
//! a manager.
//!
//! ```sh
//! cargo run --release -p manager --example scale -- FOLDER [RESERVATIONS]
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a program to measure"
)]

mod net;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use admission::Topology;
use manager::answer::{Answer, Command};
use manager::machine::{Limits, Manager, Start};
use manager::record::{Change, Update};
use manager::store::{SqliteStore, Store};
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng as _;

use net::{S, caller, reserve, topology};

const SEED: u64 = 20_070_200;
/// Steps of churn, each a release and a request.
const CHURN: u64 = 4_000;
/// Transactions by which the store's limit is measured.
const PLAIN: usize = 4_000;

/// Times of one kind of step.
#[derive(Default)]
struct Times(Vec<u64>);

impl Times {
    fn add(&mut self, start: Instant) {
        self.0
            .push(u64::try_from(start.elapsed().as_nanos()).unwrap());
    }

    fn line(mut self, what: &str, each: u64) {
        self.0.sort_unstable();
        let sum: u64 = self.0.iter().sum();
        let at = |percent: usize| {
            let place = (self.0.len() * percent / 100).min(self.0.len() - 1);
            self.0[place] as f64 / 1e3
        };
        let rate = (self.0.len() as u64 * each) as f64 / (sum as f64 / 1e9);
        println!(
            "{what:<58} {rate:>9.0} a second; us: median {:>8.1}, 99 % {:>8.1}, most {:>9.1}",
            at(50),
            at(99),
            at(100)
        );
    }
}

/// The start of the only manager.
const START: Start<'_> = Start::alone("m", "boot", S);

fn granted(manager: &mut Manager) -> (Vec<Change>, u64) {
    let effects = manager.take_effects();
    let is_granted = |answer: &&(u64, Answer)| matches!(answer.1, Answer::Granted(_));
    let count = effects.answers.iter().filter(is_granted).count() as u64;
    let changes = effects.updates.iter().filter_map(Update::change);
    (changes.collect(), count)
}

/// Releases and requests, `batch` of each in a transaction.
fn churn(
    manager: &mut Manager,
    store: &mut SqliteStore,
    rng: &mut Pcg32,
    live: &mut [u64],
    next: &mut u64,
    batch: u64,
) {
    let mut times = Times::default();
    for _ in 0..CHURN / batch {
        let start = Instant::now();
        for _ in 0..batch {
            let place = (rng.next_u64() % live.len() as u64) as usize;
            let id = format!("x{}", live[place]);
            manager.command(
                S,
                0,
                Command::Release {
                    id,
                    caller: caller(),
                },
            );
            manager.command(S, 0, reserve(rng, *next));
            live[place] = *next;
            *next += 1;
        }
        let (changes, count) = granted(manager);
        store.apply(&changes).unwrap();
        times.add(start);
        assert_eq!(count, batch, "granted");
    }
    times.line(
        &format!("churn with SQLite, {batch} in a transaction"),
        batch,
    );
}

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().expect("usage: scale FOLDER [RESERVATIONS]");
    let wanted: u64 = args
        .next()
        .map_or(100_000, |n| n.parse().expect("a number"));
    let path = Path::new(&folder).join("scale.db");
    assert!(!path.exists(), "{} exists already", path.display());
    let topology = Arc::new(topology());
    println!(
        "{} links, {} nodes, {} segments",
        topology.links().len(),
        topology.nodes().len(),
        topology.segments().len()
    );
    let mut store = SqliteStore::open(&path).unwrap();
    let records = store.load().unwrap();
    let limits = Limits::default();
    let manager = Manager::restore(&START, Arc::clone(&topology), limits, records);
    let mut manager = manager.unwrap();
    let mut rng = Pcg32::new(SEED, 1);

    let mut next = 0;
    let mut live = fill(&mut manager, &mut store, &mut rng, &mut next, wanted);
    for batch in [1, 16, 64] {
        churn(
            &mut manager,
            &mut store,
            &mut rng,
            &mut live,
            &mut next,
            batch,
        );
    }
    refresh(&mut manager, &mut store, &live);
    write_alone(&mut manager, &mut store, next);
    drop(store);
    restore(&path, topology, limits, &manager);
}

/// Reserves until `wanted` reservations are granted, and returns their numbers.
fn fill(
    manager: &mut Manager,
    store: &mut SqliteStore,
    rng: &mut Pcg32,
    next: &mut u64,
    wanted: u64,
) -> Vec<u64> {
    let mut deciding = Times::default();
    let mut storing = Times::default();
    let (mut live, mut refused) = (vec![], 0_u64);
    while (live.len() as u64) < wanted {
        let mut changes = vec![];
        for _ in 0..256.min(wanted - live.len() as u64) {
            let start = Instant::now();
            manager.command(S, 0, reserve(rng, *next));
            deciding.add(start);
            let (more, count) = granted(manager);
            match count {
                1 => live.push(*next),
                _ => refused += 1,
            }
            changes.extend(more);
            *next += 1;
        }
        let start = Instant::now();
        store.apply(&changes).unwrap();
        storing.add(start);
    }
    println!("{} reservations granted, {refused} refused", live.len());
    deciding.line("deciding alone, as the network fills", 1);
    storing.line("storing alone, 256 in a transaction", 256);
    live
}

/// Refreshes reservations, one in a transaction.
fn refresh(manager: &mut Manager, store: &mut SqliteStore, live: &[u64]) {
    let mut refreshing = Times::default();
    for n in 0..CHURN {
        let id = format!("x{}", live[(n * 7919) as usize % live.len()]);
        let start = Instant::now();
        let lease_ns = Some(3601 * S);
        let caller = caller();
        manager.command(
            S,
            0,
            Command::Refresh {
                id,
                caller,
                lease_ns,
            },
        );
        let (changes, count) = granted(manager);
        store.apply(&changes).unwrap();
        refreshing.add(start);
        assert_eq!(count, 1);
    }
    refreshing.line("refreshing with SQLite, one in a transaction", 1);
}

/// Writes the records of one reservation again and again, and removes them.
fn write_alone(manager: &mut Manager, store: &mut SqliteStore, next: u64) {
    // The same bytes without a manager: a reservation has two records.
    let mut rng = Pcg32::new(SEED, 2);
    let mut plain = Times::default();
    manager.command(S, 0, reserve(&mut rng, next));
    let (sample, _) = granted(manager);
    for n in 0..PLAIN {
        let changes: Vec<_> = sample
            .iter()
            .map(|change| Change {
                key: format!("{}-plain{n}", change.key),
                value: change.value.clone(),
            })
            .collect();
        let start = Instant::now();
        store.apply(&changes).unwrap();
        plain.add(start);
    }
    plain.line("the store alone, one reservation's records in each", 1);
    // Only what a manager wrote is read back.
    let removed: Vec<_> = (0..PLAIN)
        .flat_map(|n| sample.iter().map(move |change| (n, change.key.clone())))
        .map(|(n, key)| Change {
            key: format!("{key}-plain{n}"),
            value: None,
        })
        .collect();
    store.apply(&removed).unwrap();
    store.apply(&sample).unwrap();
}

/// Restores the manager from its store.
fn restore(path: &Path, topology: Arc<Topology>, limits: Limits, manager: &Manager) {
    let start = Instant::now();
    let records = SqliteStore::open(path).unwrap().load().unwrap();
    let bytes: usize = records
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    let count = records.len();
    let again = Manager::restore(&START, topology, limits, records).unwrap();
    println!(
        "restored {count} records of {bytes} bytes in {:.2} s",
        start.elapsed().as_secs_f64()
    );
    assert_eq!(again.parts().ledger(), manager.parts().ledger());
}
