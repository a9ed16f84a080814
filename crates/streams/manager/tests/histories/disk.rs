// SPDX-License-Identifier: MIT OR Apache-2.0
//! What survives a crash, with the records read.

use std::collections::BTreeMap;

use manager_proto::record::{Change, Part, Record, Reservation, Update};

/// The store of a host.
#[derive(Clone, Default)]
pub struct Disk {
    values: BTreeMap<String, Vec<u8>>,
    pub parts: BTreeMap<String, Part>,
    pub reservations: BTreeMap<String, Reservation>,
}

impl Disk {
    pub fn records(&self) -> Vec<(String, Vec<u8>)> {
        let values = self.values.iter();
        values
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// Keys other than that of the last start.
    pub fn count(&self) -> usize {
        self.parts.len() + self.reservations.len()
    }

    fn set(&mut self, change: &Change) -> Change {
        let old = self.values.get(&change.key).cloned();
        match &change.value {
            Some(value) => {
                self.values.insert(change.key.clone(), value.clone());
                match Record::read(&change.key, value).unwrap() {
                    Record::Meta(_) => {}
                    Record::Part(name, part) => drop(self.parts.insert(name, part)),
                    Record::Reservation(id, of) => drop(self.reservations.insert(id, of)),
                }
            }
            None => {
                self.values.remove(&change.key);
                if let Some(name) = change.key.strip_prefix("part/") {
                    self.parts.remove(name);
                }
                if let Some(id) = change.key.strip_prefix("reservation/") {
                    self.reservations.remove(id);
                }
            }
        }
        Change {
            key: change.key.clone(),
            value: old,
        }
    }

    /// Applies changes; returns what undoes them, in the order of the changes.
    pub fn apply(&mut self, updates: &[Update]) -> Vec<Change> {
        let changes = updates.iter().filter_map(Update::change);
        changes.map(|change| self.set(&change)).collect()
    }

    pub fn undo(&mut self, changes: &[Change]) {
        for change in changes.iter().rev() {
            self.set(change);
        }
    }
}
