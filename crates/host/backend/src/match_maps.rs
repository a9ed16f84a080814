// SPDX-License-Identifier: MIT OR Apache-2.0
//! The maps of matches, of which each set has a part (bpf/match.h).

use libbpf_rs::{MapCore, MapFlags, MapHandle, Result};

use crate::match_words::MatchTables;

pub(crate) const RULES: &str = "match_rules";
pub(crate) const ADDRESSES: &str = "match_addresses";
pub(crate) const TABLES: &str = "match_tables";
pub(crate) const DATAGRAMS: &str = "match_datagrams";

pub(crate) struct Matches {
    pub rules: MapHandle,
    pub addresses: MapHandle,
    pub tables: MapHandle,
}

/// The bytes of words in memory.
fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

impl Matches {
    /// Opens the maps with these ids.
    pub fn open(rules: u32, addresses: u32, tables: u32) -> Result<Self> {
        Ok(Self {
            rules: MapHandle::from_map_id(rules)?,
            addresses: MapHandle::from_map_id(addresses)?,
            tables: MapHandle::from_map_id(tables)?,
        })
    }

    /// Writes the matches of an image that no program uses, which begin at `base`. O(all matches).
    pub fn write(&self, base: u32, tables: &MatchTables) -> Result<()> {
        let start = base.to_ne_bytes();
        let had: Vec<_> = self.addresses.keys().collect();
        for key in had.iter().filter(|key| key.starts_with(&start)) {
            self.addresses.delete(key)?;
        }
        for (key, answer) in &tables.addresses {
            let mut key = *key;
            key[0] = base;
            self.addresses
                .update(&bytes(&key), &bytes(answer), MapFlags::ANY)?;
        }
        let words = bytes(&tables.tables_words());
        self.tables.update(&start, &words, MapFlags::ANY)?;
        for (number, rule) in (base..).zip(&tables.rules) {
            let key = number.to_ne_bytes();
            self.rules.update(&key, &bytes(rule), MapFlags::ANY)?;
        }
        Ok(())
    }
}
