// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of the program's maps, as words in the order of the structures in `bpf/edt.bpf.c`.

use std::collections::{BTreeMap, BTreeSet};

use super::config::{Config, PacedClass};
use crate::error::Error;
use crate::match_words::{MatchTables, words_of};

/// Version of the maps' formats.
pub(crate) const VERSION: u32 = 4;
/// The slot of no class. All others are classes'.
const NO_SLOT: u32 = u32::MAX;

/// `struct edt_config`: version, rules, their base, addresses, default slot, net_cls, layer,
/// overhead, shortest frame, link header, bytes of the text.
pub(crate) type ConfigWords = [u32; 11];
/// Index of the base, which is the half's: 0 until it is written.
pub(crate) const BASE: usize = 2;
/// Index of the length of the text.
pub(crate) const TEXT: usize = 10;
/// `struct edt_class`: rate in bit/s, horizon and mark in ns, minor number, fresh.
pub(crate) type ClassWords = [u64; 5];
/// Index of the rate.
pub(crate) const RATE: usize = 0;
/// Index of the minor number.
pub(crate) const MINOR: usize = 3;
/// Index of the number that changes when what waits is thrown away for a rate.
const FRESH: usize = 4;
/// `struct edt_state`: lock; the clock's ns, fraction, rate and fresh; frames, bytes, wire bytes,
/// dropped frames, later frames, marked frames.
pub(crate) type StateWords = [u64; 11];
/// Index of the clock's ns.
pub(crate) const NEXT: usize = 1;

/// What is written into a half of the maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    pub config: ConfigWords,
    pub matches: MatchTables,
    /// By slot.
    pub classes: BTreeMap<u32, ClassWords>,
    /// Slots by minor number.
    pub minors: BTreeMap<u16, u32>,
    /// What is kept beside.
    pub text: Vec<u8>,
}

/// What maps have room for, in each half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub slots: u32,
    pub rules: u32,
    pub addresses: u32,
    pub text_blocks: u32,
    /// Datagrams in fragments, of both halves.
    pub datagrams: u32,
}

/// Bytes of a block of text.
pub(crate) const BLOCK: usize = 4096;
/// What there is room for in any case.
const ROOM_MIN: Room = Room {
    slots: 64,
    rules: 64,
    addresses: 64,
    text_blocks: 4,
    datagrams: 1,
};

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl Room {
    /// Returns the least room for tables.
    fn least(tables: &Tables) -> Self {
        let last = tables.classes.last_key_value();
        let slots = last.map_or(0, |(slot, _)| slot.saturating_add(1));
        Self {
            slots: slots.max(count(tables.minors.len())),
            rules: count(tables.matches.rules.len()),
            addresses: count(tables.matches.addresses.len()),
            text_blocks: count(tables.text.len().div_ceil(BLOCK)),
            datagrams: tables.matches.datagrams(),
        }
    }

    /// Returns room for tables, and for twice as much later.
    pub fn new(tables: &Tables) -> Self {
        let least = Self::least(tables);
        let double = |need: u32, least: u32| need.saturating_mul(2).max(least);
        Self {
            slots: double(least.slots, ROOM_MIN.slots),
            rules: double(least.rules, ROOM_MIN.rules),
            addresses: double(least.addresses, ROOM_MIN.addresses),
            text_blocks: double(least.text_blocks, ROOM_MIN.text_blocks),
            datagrams: least.datagrams,
        }
    }

    /// Returns whether tables fit in.
    pub fn holds(&self, tables: &Tables) -> bool {
        let need = Self::least(tables);
        need.slots <= self.slots
            && need.rules <= self.rules
            && need.addresses <= self.addresses
            && need.text_blocks <= self.text_blocks
            && need.datagrams <= self.datagrams
    }
}

impl Tables {
    /// Returns the tables of what is wanted. Classes keep the slots that they have, and with them
    /// their clocks.
    pub fn new(config: &Config, slots: &BTreeMap<u16, u32>) -> Self {
        let mut minors = BTreeMap::new();
        let kept = |minor: u16| slots.get(&minor).copied();
        let in_force: BTreeSet<u32> = slots.values().copied().collect();
        // A slot that is in force is no other class's: its packets come until the change is made.
        let mut unused = (0..NO_SLOT).filter(|slot| !in_force.contains(slot));
        let mut classes = BTreeMap::new();
        let paced = config.paced.iter();
        let paced = paced.map(|(minor, class)| (*minor, class_words(*minor, class)));
        // A class without a rate is counted.
        let normal = config.normal.iter();
        let normal = normal.map(|minor| (*minor, [0, 0, 0, u64::from(*minor), 0]));
        for (minor, words) in paced.chain(normal) {
            let Some(slot) = kept(minor).or_else(|| unused.next()) else {
                break;
            };
            minors.insert(minor, slot);
            classes.insert(slot, words);
        }
        let slot_of = |minor: u16| minors.get(&minor).copied().unwrap_or(NO_SLOT);
        let rules = config.rules.iter();
        let rules: Vec<_> = rules.map(|rule| (&rule.matching, rule.class)).collect();
        let matches = MatchTables::new(&words_of(&rules));
        Self {
            config: [
                VERSION,
                count(matches.rules.len()),
                0,
                count(matches.addresses.len()),
                slot_of(config.default_minor),
                config.net_cls.into(),
                config.layer,
                config.overhead_bytes,
                config.min_bytes,
                config.link_bytes,
                count(config.text.len()),
            ],
            matches,
            classes,
            minors,
            text: config.text.clone(),
        }
    }

    /// Goes on from what is in force: a class that `is_slow` says of (slot, words in force, rate to
    /// come) lets what waits be thrown away. Returns whether there is one. O(classes).
    pub fn follow(
        &mut self,
        had: &Self,
        mut is_slow: impl FnMut(u32, &ClassWords, u64) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let mut is_any = false;
        for (slot, class) in &mut self.classes {
            let before = had.classes.get(slot);
            let Some(before) = before.filter(|before| before[MINOR] == class[MINOR]) else {
                continue;
            };
            let is_slow = class[RATE] > before[RATE] && is_slow(*slot, before, class[RATE])?;
            class[FRESH] = before[FRESH].wrapping_add(is_slow.into());
            is_any |= is_slow;
        }
        Ok(is_any)
    }
}

fn class_words(minor: u16, class: &PacedClass) -> ClassWords {
    [
        class.rate_bps,
        class.horizon_ns,
        class.mark_ns,
        minor.into(),
        0,
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;

    fn config(paced: &[(u16, u64)], normal: &[u16]) -> Config {
        let paced = paced.iter().map(|(minor, rate_bps)| {
            let class = PacedClass {
                rate_bps: *rate_bps,
                horizon_ns: 5,
                mark_ns: 4,
            };
            (*minor, class)
        });
        Config {
            paced: paced.collect(),
            normal: normal.to_vec(),
            rules: Vec::new(),
            default_minor: 0,
            net_cls: false,
            layer: 0,
            overhead_bytes: 24,
            min_bytes: 60,
            link_bytes: 14,
            text: b"text".to_vec(),
        }
    }

    #[test]
    fn a_class_that_stays_keeps_its_slot() {
        let first = config(&[(0x8001, 8_000), (0x8003, 9_000)], &[]);
        let first = Tables::new(&first, &BTreeMap::new());
        assert_eq!(first.minors, [(0x8001, 0), (0x8003, 1)].into());
        let mut second = config(&[(0x8002, 7_000), (0x8003, 6_000)], &[0x8005]);
        second.default_minor = 0x8005;
        let second = Tables::new(&second, &first.minors);
        assert_eq!(
            second.minors,
            [(0x8002, 2), (0x8003, 1), (0x8005, 3)].into()
        );
        assert_eq!(second.classes[&1], [6_000, 5, 4, 0x8003, 0]);
        assert_eq!(second.classes[&3], [0, 0, 0, 0x8005, 0]);
        assert_eq!(second.config[4], 3);
        assert_eq!(first.config[4], NO_SLOT);
    }
}
