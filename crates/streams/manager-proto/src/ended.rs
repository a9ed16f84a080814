// SPDX-License-Identifier: MIT OR Apache-2.0
//! What has ended and is remembered for a while: of each owner the last so many.

use std::collections::{BTreeMap, BTreeSet};

use admission::Name;

use crate::bounds::MOST_ENDED;

/// Names of what has ended, by whose it was, with the time until which it is remembered.
#[derive(Debug, Default)]
pub struct Ended(BTreeMap<Name, BTreeSet<(u64, Name)>>);

impl Ended {
    /// Remembers something of an owner's. O(log n).
    pub fn insert(&mut self, owner: &str, until_ns: u64, name: &Name) {
        let of = self.0.entry(owner.into()).or_default();
        of.insert((until_ns, name.clone()));
    }

    /// Forgets it, if it was remembered. O(log n).
    pub fn remove(&mut self, owner: &str, until_ns: u64, name: &Name) {
        if let Some(of) = self.0.get_mut(owner) {
            of.remove(&(until_ns, name.clone()));
            if of.is_empty() {
                self.0.remove(owner);
            }
        }
    }

    /// Returns the oldest of an owner's, if there are too many.
    pub fn too_many(&self, owner: &str) -> Option<Name> {
        let of = self.0.get(owner).filter(|of| of.len() > MOST_ENDED)?;
        of.first().map(|(_, name)| name.clone())
    }
}
