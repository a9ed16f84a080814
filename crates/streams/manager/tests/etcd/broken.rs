// SPDX-License-Identifier: MIT OR Apache-2.0
//! Managers in this process, at stores that do not do what they should: the checker finds it, and a
//! manager that no longer decides says nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use linux_io::clock::boottime_ns;
use manager::engine::{self, EngineError, Job};
use manager::etcd::gateway::{Condition, Gateway, Write};
use manager::etcd::seat::Seat;
use manager::etcd::store::EtcdStore;
use manager::store::{MemoryStore, Store, StoreError};
use manager_proto::answer::{Action, Answer, Caller, Command};
use manager_proto::machine::{Limits, Manager, Start};
use manager_proto::record::{Change, Update};
use tokio::sync::oneshot;

use super::processes::{Etcd, NET};
use super::records::{self, Records};
use super::requests::{ONLY, S, body};

/// What is wrong with a store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// It loses what came in this batch.
    Drops(usize),
}

/// Records in etcd that no seat guards.
struct Broken {
    etcd: Arc<Gateway>,
    flaw: Flaw,
    batches: usize,
}

impl Store for Broken {
    fn load(&mut self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let prefix = format!("pspacer/{ONLY}/record/");
        let found = self.etcd.read(&prefix, None, (0, 0)).unwrap().pairs;
        let own = found.into_iter();
        let own = own.map(|(key, value)| (key.strip_prefix(&prefix).unwrap().to_owned(), value));
        Ok(own.collect())
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        self.batches += 1;
        if self.flaw == Flaw::Drops(self.batches) {
            return Ok(());
        }
        let writes = changes.iter().map(|of| {
            let key = format!("pspacer/{ONLY}/record/{}", of.key);
            match &of.value {
                Some(value) => Write::Put {
                    key,
                    value: value.clone(),
                    lease: 0,
                },
                None => Write::Delete(key),
            }
        });
        // A key that comes twice counts as it came last, as in a good store.
        let of = |write: &Write| match write {
            Write::Put { key, .. } | Write::Delete(key) => key.clone(),
        };
        let last: BTreeMap<_, _> = writes.map(|write| (of(&write), write)).collect();
        let last: Vec<_> = last.into_values().collect();
        let seat = Condition::Absent("none".to_owned());
        self.etcd
            .transact(std::slice::from_ref(&seat), &last)
            .unwrap();
        Ok(())
    }
}

fn restore(store: &mut dyn Store, epoch: u64) -> Manager {
    let start = Start {
        epoch,
        ..Start::alone(ONLY, "boot", boottime_ns().unwrap())
    };
    let topology = Arc::new(admission::read(NET).unwrap().topology);
    let records = store.load().unwrap();
    Manager::restore(&start, topology, Limits::default(), records).unwrap()
}

fn reserve(id: &str, frames: u16) -> Command {
    let body = body(id, frames, 600 * S);
    Command::new(
        &body.id,
        Caller::operator("local"),
        Action::Reserve {
            request: body.stream,
            lease_ns: body.lease_ns,
            is_replacing: false,
        },
    )
}

/// Lets a manager decide; returns the ids that it has granted.
fn decide(manager: &mut Manager, store: &mut dyn Store, asked: &[(&str, u16)]) -> Vec<String> {
    let mut granted = Vec::new();
    for (id, frames) in asked {
        let (engine, jobs) = engine::queue();
        engine.begin(manager, Arc::new(AtomicU64::new(u64::MAX)));
        let (reply, answer) = oneshot::channel();
        let command = reserve(id, *frames);
        engine.submit(Job::Command { command, reply }).unwrap();
        engine.stop();
        let post = |_: &str, _| {};
        engine::run(manager, store, (&engine, &jobs), boottime_ns, post).unwrap();
        if let Ok(Answer::Granted(view)) = answer.blocking_recv() {
            granted.push(view.id);
        }
    }
    granted
}

/// Returns what the checker finds after managers have decided one after the other, each not knowing
/// what came after its start.
fn found(flaw: Flaw, asked: &[&[(&str, u16)]]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(folder.path(), 1);
    let gateway = Arc::new(etcd.gateway());
    let mut stores: Vec<_> = asked
        .iter()
        .map(|_| Broken {
            etcd: Arc::clone(&gateway),
            flaw,
            batches: 0,
        })
        .collect();
    let mut managers: Vec<_> = stores
        .iter_mut()
        .zip(1..)
        .map(|(of, n)| restore(of, n))
        .collect();
    let mut granted = Vec::new();
    for ((manager, store), asked) in managers.iter_mut().zip(&mut stores).zip(asked) {
        granted.extend(decide(manager, store, asked));
    }
    let all: BTreeMap<String, Records> = records::read(&gateway).unwrap();
    let topology = admission::read(NET).unwrap().topology;
    let links = topology.links().iter();
    let budgets = links
        .map(|of| (of.name.to_string(), of.budget_bytes))
        .collect();
    let due = granted.into_iter().collect();
    records::check(&all, &budgets, &due)
        .err()
        .unwrap_or_default()
}

#[test]
fn the_checker_finds_stores_that_are_broken() {
    let some: &[(&str, u16)] = &[("x", 2), ("y", 2), ("z", 2)];
    assert_eq!(found(Flaw::None, &[some]), "");
    let lost = found(Flaw::Drops(2), &[some]);
    assert!(lost.contains("was promised and is lost"), "{lost}");
    // Two managers, and no fence.
    let twice = found(Flaw::None, &[&[("x", 60)], &[("y", 60)]]);
    assert!(twice.contains("its budget is"), "{twice}");
}

/// A store whose seat is lost after some questions.
struct Lost {
    inner: MemoryStore,
    left: AtomicUsize,
}

impl Store for Lost {
    fn load(&mut self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.inner.load()
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        self.inner.apply(changes)
    }

    fn is_ours(&self) -> bool {
        let left = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |of| of.checked_sub(1));
        left.is_ok()
    }
}

/// What is asked once more changes nothing, and yet another manager may have ended it.
#[test]
fn a_manager_that_lost_its_seat_does_not_answer_from_memory() {
    let mut store = Lost {
        inner: MemoryStore::default(),
        left: AtomicUsize::new(100),
    };
    let mut manager = restore(&mut store, 1);
    assert_eq!(
        decide(&mut manager, &mut store, &[("x", 2), ("x", 2)]),
        ["x", "x"]
    );
    for is_stopped in [false, true] {
        store.left.store(1, Ordering::Relaxed);
        let (engine, jobs) = engine::queue();
        engine.begin(&manager, Arc::new(AtomicU64::new(u64::MAX)));
        let (reply, answer) = oneshot::channel();
        let command = reserve("x", 2);
        engine.submit(Job::Command { command, reply }).unwrap();
        if is_stopped {
            engine.stop();
        }
        let ran = engine::run(
            &mut manager,
            &mut store,
            (&engine, &jobs),
            boottime_ns,
            |_, _| {},
        );
        assert!(matches!(ran, Err(EngineError::Store(error)) if error.is_deposed()));
        assert!(answer.blocking_recv().is_err());
    }
}

/// After a backup has come back, what had ended since is no record again.
#[test]
fn a_store_that_is_written_again_has_no_more_than_that() {
    let mut store = MemoryStore::default();
    let mut manager = restore(&mut store, 1);
    decide(&mut manager, &mut store, &[("x", 2)]);
    let all: Vec<_> = manager
        .records()
        .iter()
        .filter_map(Update::change)
        .collect();
    let expected = store.load().unwrap();
    let stale = ["part/manager/y", "reservation/y"].map(|key| Change {
        key: key.to_owned(),
        value: Some(b"{}".to_vec()),
    });
    store.apply(&stale).unwrap();
    store.rewrite(&all).unwrap();
    assert_eq!(store.load().unwrap().len(), expected.len());
    assert_eq!(restore(&mut store, 2).reservations().len(), 1);
}

/// What a backup brings back is noticed before anything is written to it, and written again.
#[test]
fn a_backup_that_is_restored_is_noticed_before_it_is_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(folder.path(), 1);
    let gateway = Arc::new(etcd.gateway());
    let seat = Seat::campaign(&gateway, (ONLY, "http://here"), |_| false, |_| {});
    let mut store = EtcdStore::new(Arc::clone(&gateway), ONLY, seat.unwrap());
    let mut manager = restore(&mut store, 1);
    assert_eq!(decide(&mut manager, &mut store, &[("x", 2)]), ["x"]);
    // As an etcd of a moment ago has it: another last value, and no x.
    let keys = |of: &str| gateway.read(of, None, (0, 0)).unwrap().pairs;
    let prefix = format!("pspacer/{ONLY}/record/");
    let seats = Condition::Absent("none".to_owned());
    let older = [
        Write::Put {
            key: format!("pspacer/{ONLY}/last"),
            value: b"older".to_vec(),
            lease: 0,
        },
        Write::Delete(format!("{prefix}reservation/x")),
        Write::Put {
            key: format!("{prefix}reservation/gone"),
            value: b"{}".to_vec(),
            lease: 0,
        },
    ];
    gateway.transact(&[seats], &older).unwrap().unwrap();
    let before = keys(&prefix);
    let change = Change {
        key: "reservation/y".to_owned(),
        value: Some(b"{}".to_vec()),
    };
    store.apply(&[change]).unwrap();
    assert_eq!(keys(&prefix), before);
    assert!(store.has_forgotten());
    let all = manager.records();
    let all: Vec<_> = all.iter().filter_map(Update::change).collect();
    store.rewrite(&all).unwrap();
    assert!(!store.has_forgotten());
    // From then on it is as ever; and the engine does all that by itself.
    gateway
        .transact(&[Condition::Absent("none".to_owned())], &older)
        .unwrap()
        .unwrap();
    assert_eq!(decide(&mut manager, &mut store, &[("y", 2)]), ["y"]);
    let ids: Vec<_> = keys(&prefix).into_iter().map(|(key, _)| key).collect();
    let expected = ["meta", "reservation/x", "reservation/y"];
    assert_eq!(ids, expected.map(|of| format!("{prefix}{of}")));
}
