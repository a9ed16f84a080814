// SPDX-License-Identifier: MIT OR Apache-2.0
//! The store on disk: what `apply` returned from survives a kill, whole, and nothing else does.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use manager::store::{MemoryStore, SqliteStore, Store};
use manager_proto::record::Change;
use proptest::prelude::*;

/// Variable by which this program is told to be the one that is killed.
const WRITER: &str = "PSPACER_TEST_STORE";
/// Steps of the writer, and so kills.
const STEPS: u64 = 40;

/// The changes of a step: they put, replace and remove keys, some of them large.
fn changes(step: u64) -> Vec<Change> {
    let value = |n: u64| {
        let length = if n % 7 == 0 { 20_000 } else { 100 };
        Some(format!("{step} {n} {}", "x".repeat(length)).into_bytes())
    };
    let put = (0..10).map(|n| Change {
        key: format!("part/{}", (step * 3 + n) % 25),
        value: value(n),
    });
    let removed = Change {
        key: format!("part/{}", (step * 5) % 25),
        value: None,
    };
    let count = Change {
        key: "meta".to_owned(),
        value: Some(step.to_string().into_bytes()),
    };
    put.chain([removed, count]).collect()
}

fn apply(records: &mut BTreeMap<String, Vec<u8>>, changes: &[Change]) {
    for Change { key, value } in changes {
        match value {
            Some(value) => drop(records.insert(key.clone(), value.clone())),
            None => drop(records.remove(key)),
        }
    }
}

fn loaded(store: &mut impl Store) -> BTreeMap<String, Vec<u8>> {
    store.load().unwrap().into_iter().collect()
}

/// Not a test of its own: the program that is killed. It says each step whose changes are stored.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(WRITER) else {
        return;
    };
    let mut store = SqliteStore::open(Path::new(&path)).unwrap();
    let done = loaded(&mut store).get("meta").map_or(0, |count| {
        String::from_utf8(count.clone()).unwrap().parse().unwrap()
    });
    let mut out = std::io::stderr().lock();
    for step in done + 1.. {
        store.apply(&changes(step)).unwrap();
        writeln!(out, "stored {step}").unwrap();
        out.flush().unwrap();
    }
}

/// A writer is killed at each of its steps; the next one goes on from what it finds.
#[test]
fn a_kill_at_any_step_loses_nothing_that_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let mut seen = 0;
    for kill in 1..=STEPS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::writer", "--nocapture"])
            .env(WRITER, &path)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = 0;
        for line in lines.map_while(Result::ok) {
            if let Some(step) = line.strip_prefix("stored ") {
                said = step.parse::<u64>().unwrap();
            }
            if said >= seen + 1 + kill % 3 {
                break;
            }
        }
        assert!(said > seen, "the writer stored nothing");
        child.kill().unwrap();
        child.wait().unwrap();
        let found = loaded(&mut SqliteStore::open(&path).unwrap());
        let count: u64 = std::str::from_utf8(&found["meta"])
            .unwrap()
            .parse()
            .unwrap();
        assert!(count >= said, "step {said} was stored, {count} is found");
        let mut expected = BTreeMap::new();
        (1..=count).for_each(|step| apply(&mut expected, &changes(step)));
        assert_eq!(found, expected, "after {count} steps");
        seen = count;
    }
}

#[test]
fn one_process_has_the_store_and_no_other_database_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let mut first = SqliteStore::open(&path).unwrap();
    first.apply(&changes(1)).unwrap();
    let said = SqliteStore::open(&path).unwrap_err().to_string();
    assert!(said.contains("another process uses it"), "{said}");
    assert!(said.contains("store.db"), "{said}");
    drop(first);
    assert!(SqliteStore::open(&path).is_ok());
    // A database of another program stays as it is.
    let other = folder.path().join("other.db");
    let connection = rusqlite::Connection::open(&other).unwrap();
    connection.execute_batch("CREATE TABLE t (a)").unwrap();
    drop(connection);
    let before = fs::read(&other).unwrap();
    let said = SqliteStore::open(&other).unwrap_err().to_string();
    assert!(said.contains("another program's database"), "{said}");
    assert_eq!(fs::read(&other).unwrap(), before);
    assert!(SqliteStore::open(&folder.path().join("no/such")).is_err());
}

proptest! {
    #![proptest_config(testkit::cases(20))]

    /// Both stores hold what a map holds, before and after they are opened anew.
    #[test]
    fn stores_agree(all in prop::collection::vec(
        prop::collection::vec((0..6_u8, prop::option::of(prop::collection::vec(any::<u8>(), 0..50))), 0..6),
        0..12,
    )) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut memory = MemoryStore::default();
        let mut expected = BTreeMap::new();
        for (n, step) in all.into_iter().enumerate() {
            let step: Vec<_> = step
                .into_iter()
                .map(|(key, value)| Change { key: format!("part/{key}"), value })
                .collect();
            let mut disk = SqliteStore::open(&path).unwrap();
            disk.apply(&step).unwrap();
            memory.apply(&step).unwrap();
            apply(&mut expected, &step);
            prop_assert_eq!(&loaded(&mut disk), &expected, "step {}", n);
            prop_assert_eq!(&loaded(&mut memory), &expected);
        }
    }
}
