// SPDX-License-Identifier: MIT OR Apache-2.0
//! A history: talkers reserve, refresh and release at any of three managers, while members of etcd and
//! managers are killed and started again. All the time etcd itself is asked whether what must hold
//! does. Which member is killed when is chance of a seed; how the threads meet is not.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use admission::Refusal;
use linux_io::clock::boottime_ns;
use manager::client::{Client, ClientError, Reserved};
use manager::etcd::gateway::{Gateway, Keys};
use manager::record::Reservation;

use super::processes::{Etcd, ManagerProcess, until};
use super::requests::{S, body};
use crate::histories::rng::Rng;

const MANAGERS: usize = 3;
const MEMBERS: usize = 3;
const TALKERS: u64 = 6;
/// A reservation of most of what there is: 82 frames.
const MOST: &str = "most";
const MOST_FRAMES: u16 = 68;
/// Rounds of trouble: a kill, and what it was that comes back.
const ROUNDS: usize = 12;
/// A lease of the shortest length that etcd has is a few seconds longer after a change of leaders.
const LONGEST_LEASE_S: u64 = 8;

/// What a talker was promised.
#[derive(Clone, Copy, Debug)]
struct Promise {
    until_ns: u64,
    /// The talker has asked to free it, or was told that it has ended.
    is_over: bool,
}

#[derive(Default)]
struct Counts {
    granted: AtomicU64,
    refused: AtomicU64,
    refreshed: AtomicU64,
    released: AtomicU64,
    failed: AtomicU64,
    checks: AtomicU64,
}

struct World {
    etcd: Etcd,
    managers: Vec<ManagerProcess>,
    budgets: BTreeMap<String, u64>,
    promises: Mutex<BTreeMap<String, Promise>>,
    counts: Counts,
    is_over: AtomicBool,
}

fn now_ns() -> u64 {
    boottime_ns().unwrap()
}

fn add(to: &AtomicU64) {
    to.fetch_add(1, Ordering::Relaxed);
}

pub fn run(seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(folder.path(), MEMBERS);
    let managers: Vec<_> = (0..MANAGERS)
        .map(|n| ManagerProcess::start(folder.path(), &format!("manager{n}"), &etcd))
        .collect();
    let links = managers[0].client().links().unwrap();
    let world = World {
        etcd,
        managers,
        budgets: links
            .into_iter()
            .map(|of| (of.link, of.budget_bytes))
            .collect(),
        promises: Mutex::default(),
        counts: Counts::default(),
        is_over: AtomicBool::new(false),
    };
    // Most is taken from the first to the last moment, so that talkers lack bytes on a slow host, too.
    world.reserve(&world.managers[0].client(), MOST, MOST_FRAMES, 3600 * S);
    thread::scope(|threads| {
        let world = &world;
        let others: Vec<_> = (0..TALKERS)
            .map(|n| threads.spawn(move || world.talk(seed, n)))
            .chain([threads.spawn(|| world.watch())])
            .collect();
        world.trouble(seed);
        world.is_over.store(true, Ordering::Relaxed);
        for other in others {
            other.join().unwrap();
        }
    });
    assert!(!world.promises.lock().unwrap()[MOST].is_over);
    world.release(&world.managers[1].client(), MOST);
    world.end();
    let Counts {
        granted,
        refused,
        refreshed,
        released,
        failed,
        checks,
    } = &world.counts;
    eprintln!(
        "seed {seed}: {granted:?} granted, {refused:?} refused, {refreshed:?} refreshed, {released:?} \
         released, {failed:?} without an answer, {checks:?} checks"
    );
    let least = |of: &AtomicU64| of.load(Ordering::Relaxed) > 0;
    assert!(
        [granted, refused, refreshed, released, checks]
            .into_iter()
            .all(least)
    );
}

impl World {
    fn talk(&self, seed: u64, talker: u64) {
        let mut rng = Rng::new((seed << 8) | talker);
        let clients: Vec<_> = self.managers.iter().map(ManagerProcess::client).collect();
        let mut own: Vec<(String, u16, u64)> = Vec::new();
        let mut next = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            let client = &clients[rng.below(MANAGERS as u64) as usize];
            let choice = rng.below(10);
            if own.is_empty() || choice < 4 {
                next += 1;
                let lease_ns = rng.between(2, LONGEST_LEASE_S) * S;
                own.push((
                    format!("t{talker}-{next}"),
                    rng.between(1, 5) as u16,
                    lease_ns,
                ));
            }
            // One of the last few, mostly the last.
            let back = rng.below(own.len().min(4) as u64) as usize;
            let at = own.len() - 1 - if rng.happens(50) { 0 } else { back };
            let (id, frames, lease_ns) = &own[at];
            match choice {
                0..6 => self.reserve(client, id, *frames, *lease_ns),
                6..9 => self.refresh(client, id),
                _ => self.release(client, id),
            }
            sleep(Duration::from_millis(rng.between(5, 120)));
        }
    }

    /// Takes down a promise. Time is counted from the question, so it is no longer than it was meant.
    fn promise(&self, id: &str, asked_ns: u64, left_ns: u64) {
        let until_ns = asked_ns + left_ns;
        let mut promises = self.promises.lock().unwrap();
        let promise = promises.entry(id.to_owned()).or_insert(Promise {
            until_ns,
            is_over: false,
        });
        promise.until_ns = promise.until_ns.max(until_ns);
    }

    /// What was promised may only end by itself, or by its talker.
    fn ended(&self, id: &str, error: &ClientError, asked_ns: u64) {
        let ClientError::Refused { status, .. } = error else {
            return add(&self.counts.failed);
        };
        match status {
            404 | 410 => {
                let mut promises = self.promises.lock().unwrap();
                if let Some(promise) = promises.get_mut(id) {
                    let ends = promise.is_over || promise.until_ns <= now_ns();
                    assert!(ends, "{id} was lost, {asked_ns}: {error} {promise:?}");
                    promise.is_over = true;
                }
            }
            503 | 504 => add(&self.counts.failed),
            _ => panic!("{id}: {error}"),
        }
    }

    fn reserve(&self, client: &Client, id: &str, frames: u16, lease_ns: u64) {
        let asked_ns = now_ns();
        match client.reserve(&body(id, frames, lease_ns)) {
            Ok(Reserved::Granted(view)) => {
                self.promise(id, asked_ns, view.expires_in_ns);
                add(&self.counts.granted);
            }
            Ok(Reserved::Refused(refused)) => {
                let is_full = matches!(refused.refusal, Refusal::Bandwidth { .. });
                assert!(is_full, "{refused:?}");
                add(&self.counts.refused);
            }
            Err(error) => self.ended(id, &error, asked_ns),
        }
    }

    fn refresh(&self, client: &Client, id: &str) {
        let asked_ns = now_ns();
        match client.refresh(id, None) {
            Ok(view) => {
                self.promise(id, asked_ns, view.expires_in_ns);
                add(&self.counts.refreshed);
            }
            // Perhaps never granted.
            Err(error) => self.ended(id, &error, asked_ns),
        }
    }

    fn release(&self, client: &Client, id: &str) {
        if let Some(promise) = self.promises.lock().unwrap().get_mut(id) {
            promise.is_over = true;
        }
        match client.release(id) {
            Ok(_) => add(&self.counts.released),
            Err(error) => self.ended(id, &error, now_ns()),
        }
    }

    fn trouble(&self, seed: u64) {
        let mut rng = Rng::new(seed);
        for _ in 0..ROUNDS {
            sleep(Duration::from_millis(rng.between(500, 2500)));
            let member = rng.below(MEMBERS as u64) as usize;
            let manager = rng.below(MANAGERS as u64) as usize;
            let with_member = rng.happens(60);
            let with_manager = !with_member || rng.happens(30);
            // Now and then two of three: nothing can be decided.
            let second = (with_member && rng.happens(25)).then_some((member + 1) % MEMBERS);
            let members: Vec<_> = with_member
                .then_some(member)
                .into_iter()
                .chain(second)
                .collect();
            for member in &members {
                self.etcd.kill_member(*member);
            }
            if with_manager {
                self.managers[manager].kill();
            }
            sleep(Duration::from_millis(rng.between(100, 2500)));
            for member in &members {
                self.etcd.start_member(*member);
            }
            if with_manager {
                self.managers[manager].start_again();
            }
            // One that found no etcd has ended; whoever runs it starts it again.
            for manager in &self.managers {
                if manager.has_ended() {
                    manager.start_again();
                }
            }
        }
        // All are well for a while.
        let client = |manager: &ManagerProcess| manager.client();
        for manager in &self.managers {
            until("all are back", || {
                if manager.has_ended() {
                    manager.start_again();
                }
                client(manager).links().ok()
            });
        }
        sleep(Duration::from_secs(2));
    }

    fn watch(&self) {
        let gateway = self.etcd.gateway();
        while !self.is_over.load(Ordering::Relaxed) {
            self.check(&gateway);
            sleep(Duration::from_millis(20));
        }
    }

    /// Looks at everything in etcd at one moment.
    fn check(&self, gateway: &Gateway) {
        let promised = self.promises.lock().unwrap().clone();
        let keys = ["use/", "live/", "stream/", "reservation/"];
        let keys = keys.map(|of| Keys::Prefix(format!("pspacer/{of}")));
        // Without a majority nobody knows anything.
        let Ok(snapshot) = gateway.read(&keys) else {
            return;
        };
        let read_ns = now_ns();
        let [uses, live, streams, records] = snapshot.found.as_slice() else {
            panic!()
        };
        let name = |key: &str| key.rsplit('/').next().unwrap().to_owned();
        let live: BTreeMap<_, _> = live.iter().map(|of| (name(&of.key), of.lease)).collect();
        let records: BTreeMap<_, _> = records.iter().map(|of| (name(&of.key), of)).collect();
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        let mut count: BTreeMap<String, usize> = BTreeMap::new();
        for pair in uses {
            let of = pair.key.strip_prefix("pspacer/use/").unwrap();
            let (link, id) = of.split_once(':').unwrap();
            // No bytes without the live lease of a reservation.
            assert_eq!(live.get(id), Some(&pair.lease), "{}", pair.key);
            let bytes: u64 = std::str::from_utf8(&pair.value).unwrap().parse().unwrap();
            *sums.entry(link.to_owned()).or_default() += bytes;
            *count.entry(id.to_owned()).or_default() += 1;
        }
        // No link above its budget.
        for (link, bytes) in &sums {
            assert!(*bytes <= self.budgets[link], "{link}: {bytes}");
        }
        // Every reservation that lives is whole.
        assert_eq!(streams.len(), live.len());
        for (id, lease) in &live {
            assert_ne!(*lease, 0);
            let record: Reservation = serde_json::from_slice(&records[id].value).unwrap();
            assert_eq!(count[id], record.grant.links.len(), "{id}");
        }
        // Nothing that was promised is lost.
        let now = self.promises.lock().unwrap();
        for (id, promise) in promised {
            let is_due = promise.until_ns > read_ns && !now[&id].is_over;
            assert!(
                !is_due || live.contains_key(&id),
                "{id} was lost: {promise:?}"
            );
        }
        add(&self.counts.checks);
    }

    /// Without talkers all leases end, and nothing stays but records, for a while.
    fn end(&self) {
        let gateway = self.etcd.gateway();
        until("all leases have ended", || {
            let keys = ["use/", "live/", "stream/"];
            let keys = keys.map(|of| Keys::Prefix(format!("pspacer/{of}")));
            let found = gateway.read(&keys).ok()?.found;
            found.iter().all(Vec::is_empty).then_some(())
        });
        let links = self.managers[0].client().links().unwrap();
        assert!(links.iter().all(|of| of.reserved_bytes == 0));
    }
}
