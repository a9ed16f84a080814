// SPDX-License-Identifier: MIT OR Apache-2.0
//! The maps of matches, of which each image of each port has a part (bpf/match.h).

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::error::{Error, refused};
use crate::match_words::MatchTables;

pub(crate) const RULES: &str = "match_rules";
pub(crate) const ADDRESSES: &str = "match_addresses";

/// The maps.
pub(crate) struct Matches {
    pub rules: MapHandle,
    pub addresses: MapHandle,
}

/// The bytes of words in memory.
fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

impl Matches {
    /// Opens the maps with these ids.
    pub fn open(rules: u32, addresses: u32) -> Result<Self, Error> {
        let open = |name: &str, id| {
            MapHandle::from_map_id(id).map_err(|error| refused(&format!("map {name}"), &error))
        };
        Ok(Self {
            rules: open(RULES, rules)?,
            addresses: open(ADDRESSES, addresses)?,
        })
    }

    /// Writes the matches of an image that no program uses, which begin at `base`. O(all matches).
    pub fn write(&self, base: u32, tables: &MatchTables) -> Result<(), Error> {
        let fault = |error| refused("matches", &error);
        let start = base.to_ne_bytes();
        let had: Vec<_> = self.addresses.keys().collect();
        for key in had.iter().filter(|key| key.starts_with(&start)) {
            self.addresses.delete(key).map_err(fault)?;
        }
        for (key, answer) in &tables.addresses {
            let mut key = *key;
            key[0] = base;
            let update = self
                .addresses
                .update(&bytes(&key), &bytes(answer), MapFlags::ANY);
            update.map_err(fault)?;
        }
        for (number, rule) in (base..).zip(&tables.rules) {
            let key = number.to_ne_bytes();
            let update = self.rules.update(&key, &bytes(rule), MapFlags::ANY);
            update.map_err(fault)?;
        }
        Ok(())
    }
}
