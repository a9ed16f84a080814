// SPDX-License-Identifier: MIT OR Apache-2.0
//! A manager's records in etcd: a key for each. Changes go in transactions that name the seat.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::gateway::{Condition, EtcdError, Gateway, Write};
use super::seat::{Seat, room_key};
use crate::store::{Store, StoreError};
use manager_proto::record::Change;

/// Most changes of a transaction: etcd takes 128 by default.
const MOST_WRITES: usize = 120;
/// Most bytes of a transaction: etcd takes 1.5 MiB by default, and base64 adds a third.
const MOST_BYTES: usize = 700 << 10;
/// Records that are read at once.
const PAGE: u64 = 1_000;
/// Wait before a transaction without an answer is tried once more.
const RETRY: Duration = Duration::from_millis(50);
/// Room that is kept in the database, bytes: as much as releases and ends may need, and all that was
/// decided before it was known to be full.
const ROOM_BYTES: usize = 1 << 20;
/// Between two tries to keep that room again.
const KEEP_AFTER: Duration = Duration::from_secs(5);
/// Transactions after which etcd may forget what was before.
const COMPACT_AFTER: u64 = 1_000;

/// The records of the manager who has the seat.
#[derive(Debug)]
pub struct EtcdStore {
    etcd: Arc<Gateway>,
    seat: Seat,
    prefix: String,
    transactions: u64,
    /// The key that each transaction writes, and its last value; `None`: nobody knows. What a backup
    /// brings back has another one.
    last: (String, Option<String>),
    /// The last value was another: etcd was brought back from a backup.
    has_forgotten: bool,
    /// The key whose value is room, which is given up when there is no other.
    room: String,
    /// Why it was given up, and when it was last tried to have it again; `None`: it is there.
    full: Option<(String, Instant)>,
}

impl EtcdStore {
    /// Returns the records of a manager.
    pub fn new(etcd: Arc<Gateway>, name: &str, seat: Seat) -> Self {
        Self {
            etcd,
            seat,
            prefix: format!("pspacer/{name}/record/"),
            transactions: 0,
            last: (format!("pspacer/{name}/last"), None),
            has_forgotten: false,
            room: room_key(name),
            full: None,
        }
    }

    /// Sees to it that there is room for what has to be written.
    fn keep_room(&mut self) -> Result<(), StoreError> {
        let last = self.full.as_ref().map(|(_, last)| *last);
        let seat = [self.seat.condition()];
        if last.is_none() {
            let found = self.tried(|etcd| etcd.read(&self.room, None, (1, 0)))?;
            if !found.pairs.is_empty() {
                return Ok(());
            }
        } else if last.is_some_and(|last| last.elapsed() < KEEP_AFTER) {
            return Ok(());
        }
        let put = Write::Put {
            key: self.room.clone(),
            value: vec![0; ROOM_BYTES],
            lease: 0,
        };
        // What was freed is room only then.
        let made = last.map_or(Ok(()), |_| self.etcd.make_room());
        let put = made.and_then(|()| self.etcd.transact(&seat, &[put]));
        match put {
            Ok(_) if last.is_some() => {
                self.full = None;
                note("etcd's database has room again");
            }
            Ok(_) | Err(EtcdError::Away(_)) => {}
            Err(full @ EtcdError::Full(_)) => self.give_room_up(full.to_string())?,
            Err(error) => return Err(StoreError::new("etcd", error.to_string())),
        }
        Ok(())
    }

    /// Uses the room that was kept.
    fn give_room_up(&mut self, problem: String) -> Result<(), StoreError> {
        if self.full.is_none() {
            note(&format!(
                "{problem}; nothing is granted until there is room"
            ));
        }
        self.full = Some((problem, Instant::now()));
        self.tried(|etcd| etcd.delete(&self.room))?;
        self.tried(Gateway::make_room)
    }

    /// Writes a batch. It is tried until there is an answer or the seat's lease is over. If etcd has lost
    /// changes since the last one, nothing is written.
    fn write(&mut self, mut writes: Vec<Write>) -> Result<(), StoreError> {
        let (key, last) = self.last.clone();
        let seat = self.seat.condition();
        let mut when = vec![seat.clone()];
        when.extend(last.map(|last| Condition::ValueIs(key.clone(), last)));
        let next = format!("{seat:?} {}", self.transactions);
        writes.push(Write::Put {
            key: key.clone(),
            value: next.clone().into_bytes(),
            lease: 0,
        });
        let mut is_full = false;
        loop {
            match self.etcd.transact(&when, &writes) {
                Err(full @ EtcdError::Full(_)) if is_full => {
                    self.give_room_up(full.to_string())?;
                    sleep(RETRY);
                }
                Err(EtcdError::Full(_)) => {
                    is_full = true;
                    self.tried(Gateway::make_room)?;
                }
                Ok(Some(revision)) => {
                    self.written(next, revision);
                    return Ok(());
                }
                Ok(None) => {
                    let found = self.tried(|etcd| etcd.read(&key, None, (1, 0)))?;
                    let value = found.pairs.first().map(|(_, value)| value.as_slice());
                    if value == Some(next.as_bytes()) {
                        // It was written, and the answer was lost.
                        self.written(next, found.revision);
                    } else if self
                        .tried(|etcd| etcd.transact(std::slice::from_ref(&seat), &[]))?
                        .is_some()
                    {
                        self.has_forgotten = true;
                        self.last.1 = None;
                    } else {
                        return Err(StoreError::deposed());
                    }
                    return Ok(());
                }
                Err(error) => self.wait_after(error)?,
            }
        }
    }

    fn written(&mut self, last: String, revision: i64) {
        self.last.1 = Some(last);
        self.transactions += 1;
        if self.transactions % COMPACT_AFTER == 0 {
            // The next time will do.
            let _ = self.etcd.compact(revision);
        }
    }

    /// Asks until there is an answer or the seat's lease is over.
    fn tried<T>(&self, ask: impl Fn(&Gateway) -> Result<T, EtcdError>) -> Result<T, StoreError> {
        loop {
            match ask(&self.etcd) {
                Ok(answer) => return Ok(answer),
                Err(error) => self.wait_after(error)?,
            }
        }
    }

    /// Waits before a question is asked once more, if it can be.
    fn wait_after(&self, error: EtcdError) -> Result<(), StoreError> {
        match error {
            EtcdError::Away(_) | EtcdError::Full(_) if self.seat.is_held() => {
                sleep(RETRY);
                Ok(())
            }
            EtcdError::Away(_) | EtcdError::Full(_) => Err(StoreError::deposed()),
            error => Err(StoreError::new("etcd", error.to_string())),
        }
    }

    fn write_of(&self, change: &Change) -> Write {
        let key = format!("{}{}", self.prefix, change.key);
        match &change.value {
            Some(value) => Write::Put {
                key,
                value: value.clone(),
                lease: 0,
            },
            None => Write::Delete(key),
        }
    }
}

/// Tells whoever reads the manager's log.
fn note(line: &str) {
    // The manager runs whether or not somebody reads this.
    let _ = writeln!(io::stderr().lock(), "pspacer: {line}");
}

/// Returns the request that a record is about.
fn request(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or_default()
}

/// Splits changes into transactions, in their order. Changes of one request that follow each other
/// stay together; of a key that comes twice in a transaction the last change counts, at the place of
/// the first.
fn batches(changes: &[Change]) -> Vec<Vec<&Change>> {
    let mut batches: Vec<Vec<&Change>> = vec![Vec::new()];
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut bytes = 0;
    for (n, change) in changes.iter().enumerate() {
        let is_next = n == 0 || request(&changes[n - 1].key) != request(&change.key);
        let length = change.key.len() + change.value.as_ref().map_or(0, Vec::len);
        let is_full = batches.last().is_some_and(|of| of.len() >= MOST_WRITES - 4);
        if is_next && (is_full || bytes + length > MOST_BYTES) {
            batches.push(Vec::new());
            places.clear();
            bytes = 0;
        }
        bytes += length;
        let Some(batch) = batches.last_mut() else {
            continue;
        };
        match places
            .get(change.key.as_str())
            .and_then(|at| batch.get_mut(*at))
        {
            Some(old) => *old = change,
            None => {
                places.insert(&change.key, batch.len());
                batch.push(change);
            }
        }
    }
    batches
}

impl Store for EtcdStore {
    fn load(&mut self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.keep_room()?;
        let mut records: Vec<(String, Vec<u8>)> = Vec::new();
        let (mut after, mut revision) = (None, 0);
        loop {
            let asked = (PAGE, revision);
            let page = self.tried(|etcd| etcd.read(&self.prefix, after.as_deref(), asked))?;
            if revision == 0 {
                revision = page.revision;
            }
            after = page.pairs.last().map(|(key, _)| key.clone());
            let own = page.pairs.into_iter().filter_map(|(key, value)| {
                let key = key.strip_prefix(&self.prefix)?.to_owned();
                Some((key, value))
            });
            records.extend(own);
            if !page.has_more {
                return Ok(records);
            }
        }
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        if self.full.is_some() {
            self.keep_room()?;
        }
        for batch in batches(changes) {
            self.write(batch.into_iter().map(|of| self.write_of(of)).collect())?;
            if self.has_forgotten {
                // All of it is written again.
                return Ok(());
            }
        }
        Ok(())
    }

    fn has_forgotten(&mut self) -> bool {
        std::mem::take(&mut self.has_forgotten)
    }

    fn is_ours(&self) -> bool {
        self.seat.is_held()
    }

    fn full(&self) -> Option<&str> {
        self.full.as_ref().map(|(problem, _)| problem.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(key: &str, value: u8) -> Change {
        Change {
            key: key.to_owned(),
            value: Some(vec![value]),
        }
    }

    #[test]
    fn a_request_stays_in_one_transaction_and_a_key_comes_once() {
        let mut changes = Vec::new();
        for n in 0..100 {
            changes.push(change(&format!("part/m/x{n}"), 0));
            changes.push(change(&format!("reservation/x{n}"), 0));
        }
        // Freed at last: what was there first says so.
        changes.push(change("part/m/x99", 1));
        let batches = batches(&changes);
        assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), 200);
        assert!(batches.len() == 2 && batches.iter().all(|of| of.len() <= MOST_WRITES));
        for batch in &batches {
            let ids = |prefix: &str| -> Vec<&str> {
                let of = batch.iter().filter_map(|of| of.key.strip_prefix(prefix));
                of.collect()
            };
            assert_eq!(ids("part/m/"), ids("reservation/"));
        }
        let last = batches[1].iter().find(|of| of.key == "part/m/x99");
        assert_eq!(last.and_then(|of| of.value.clone()), Some(vec![1]));
    }

    #[test]
    fn long_values_make_more_transactions() {
        let long = Change {
            key: "reservation/a".to_owned(),
            value: Some(vec![0; MOST_BYTES - 100]),
        };
        let other = Change {
            key: "reservation/b".to_owned(),
            ..long.clone()
        };
        assert_eq!(batches(&[long, other]).len(), 2);
    }
}
