// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program's maps: one half of them is in force, the other is written and then put in force by
//! one store, so that each packet sees all of the old or all of the new.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use aya::Ebpf;
use aya::maps::{Array, HashMap, Map, MapData, MapError, MapInfo};

use super::layout::{
    BASE, BLOCK, ClassWords, ConfigWords, MINOR, NEXT, Room, StateWords, TEXT, Tables, VERSION,
};
use crate::error::{Error, refused};
use crate::match_words::{AddressWords, AnswerWords, RuleWords, TablesWords};

/// Reads a value with its lock held (BPF_F_LOCK).
const LOCKED: u64 = 4;
/// The time after which no run of the program looks at the half that was in force: a run takes
/// microseconds, and nothing sleeps in it.
const GRACE: Duration = Duration::from_millis(20);

/// The maps of a program.
pub(crate) struct Maps {
    active: Array<MapData, u32>,
    config: Array<MapData, ConfigWords>,
    rules: Array<MapData, RuleWords>,
    classes: Array<MapData, ClassWords>,
    states: Array<MapData, StateWords>,
    minors: HashMap<MapData, u32, u32>,
    addresses: HashMap<MapData, AddressWords, AnswerWords>,
    tables: HashMap<MapData, u32, TablesWords>,
    text: Array<MapData, [u8; BLOCK]>,
    room: Room,
}

/// Halves of the maps.
pub(crate) const HALVES: u32 = 2;

fn map_error(name: &str) -> impl Fn(MapError) -> Error + '_ {
    move |error| refused(&format!("map {name}"), &error)
}

fn array<V: aya::Pod>(name: &str, data: MapData) -> Result<Array<MapData, V>, Error> {
    Array::try_from(Map::Array(data)).map_err(map_error(name))
}

fn hash<K: aya::Pod, V: aya::Pod>(
    name: &str,
    data: MapData,
) -> Result<HashMap<MapData, K, V>, Error> {
    HashMap::try_from(Map::HashMap(data)).map_err(map_error(name))
}

impl Maps {
    /// Takes the maps of a program that was loaded now.
    pub fn of_new(ebpf: &mut Ebpf) -> Result<Self, Error> {
        Self::new(|name| match ebpf.take_map(name) {
            Some(Map::Array(data) | Map::HashMap(data) | Map::LruHashMap(data)) => Ok(data),
            _ => Err(missing(name)),
        })
    }

    /// Opens the maps of a program in the kernel.
    pub fn of_running(ids: &[u32]) -> Result<Self, Error> {
        let mut by_name = BTreeMap::new();
        for id in ids {
            let info = MapInfo::from_id(*id).map_err(map_error("of the program"))?;
            if let Some(name) = info.name_as_str() {
                by_name.insert(name.to_owned(), *id);
            }
        }
        Self::new(|name| {
            let id = by_name.get(name).ok_or(Error::Version)?;
            MapData::from_id(*id).map_err(map_error(name))
        })
    }

    fn new(mut find: impl FnMut(&str) -> Result<MapData, Error>) -> Result<Self, Error> {
        let mut entries = |name: &str| -> Result<(MapData, u32), Error> {
            let data = find(name)?;
            let info = data.info().map_err(map_error(name))?;
            Ok((data, info.max_entries()))
        };
        // One more counts packets of no class.
        let (states, of_states) = entries("edt_states")?;
        let (rules, of_rules) = entries("match_rules")?;
        let (addresses, of_addresses) = entries("match_addresses")?;
        let (text, of_text) = entries("edt_text")?;
        let (_, datagrams) = entries("match_datagrams")?;
        let room = Room {
            slots: of_states.saturating_sub(1),
            rules: of_rules / HALVES,
            addresses: of_addresses / HALVES,
            text_blocks: of_text / HALVES,
            datagrams,
        };
        Ok(Self {
            room,
            active: array("edt_active", find("edt_active")?)?,
            config: array("edt_config", find("edt_config")?)?,
            rules: array("match_rules", rules)?,
            classes: array("edt_classes", find("edt_classes")?)?,
            states: array("edt_states", states)?,
            minors: hash("edt_minors", find("edt_minors")?)?,
            addresses: hash("match_addresses", addresses)?,
            tables: hash("match_tables", find("match_tables")?)?,
            text: array("edt_text", text)?,
        })
    }

    fn half(&self) -> Result<u32, Error> {
        let active = self.active.get(&0, 0).map_err(map_error("edt_active"))?;
        Ok(active & 1)
    }

    /// Returns what is in force. O(classes + rules).
    pub fn read(&self) -> Result<Tables, Error> {
        let half = self.half()?;
        let config = self.config.get(&half, 0).map_err(map_error("edt_config"))?;
        if config[0] != VERSION {
            return Err(Error::Version);
        }
        let mut tables = Tables {
            config,
            ..Tables::default()
        };
        let base = half * self.room.rules;
        for number in 0..config[1].min(self.room.rules) {
            let rule = self.rules.get(&(base + number), 0);
            let rule = rule.map_err(map_error("match_rules"))?;
            tables.matches.rules.push(rule);
        }
        for entry in self.addresses.iter() {
            let (mut key, answer) = entry.map_err(map_error("match_addresses"))?;
            if std::mem::take(&mut key[0]) == base {
                tables.matches.addresses.insert(key, answer);
            }
        }
        tables.config[BASE] = 0;
        for entry in self.minors.iter() {
            let (key, slot) = entry.map_err(map_error("edt_minors"))?;
            let minor = u16::try_from(key & 0xffff).unwrap_or(0);
            if key >> 16 != half {
                continue;
            }
            tables.minors.insert(minor, slot);
            let class = self.classes.get(&(half * self.room.slots + slot), 0);
            let class = class.map_err(map_error("edt_classes"))?;
            tables.classes.insert(slot, class);
        }
        let bytes = usize::try_from(config[TEXT]).unwrap_or(0);
        let blocks = u32::try_from(bytes.div_ceil(BLOCK)).unwrap_or(0);
        for number in 0..blocks.min(self.room.text_blocks) {
            let block = self.text.get(&(half * self.room.text_blocks + number), 0);
            let block = block.map_err(map_error("edt_text"))?;
            tables.text.extend_from_slice(&block);
        }
        tables.text.truncate(bytes);
        Ok(tables)
    }

    /// Returns whether there is room for tables.
    pub fn hold(&self, tables: &Tables) -> bool {
        self.room.holds(tables)
    }

    /// Lets classes begin with the clocks that they have in the maps of another program.
    pub fn take_clocks(&mut self, tables: &Tables, of: &Self, had: &Tables) -> Result<(), Error> {
        for (slot, class) in &tables.classes {
            if had.classes.get(slot).map(|class| class[MINOR]) == Some(class[MINOR]) {
                let set = self.states.set(*slot, of.state(*slot)?, 0);
                set.map_err(map_error("edt_states"))?;
            }
        }
        Ok(())
    }

    /// Puts tables in force; `had` is what was. Classes that `had` does not have begin with a new
    /// clock. O(classes + rules).
    pub fn write(&mut self, tables: &Tables, had: &Tables) -> Result<(), Error> {
        let half = self.half()? ^ 1;
        let stale: Vec<u32> = self.minors.keys().filter_map(Result::ok).collect();
        for key in stale.iter().filter(|key| *key >> 16 == half) {
            self.minors.remove(key).map_err(map_error("edt_minors"))?;
        }
        let base = half * self.room.rules;
        let stale: Vec<AddressWords> = self.addresses.keys().filter_map(Result::ok).collect();
        for key in stale.iter().filter(|key| key[0] == base) {
            let removed = self.addresses.remove(key);
            removed.map_err(map_error("match_addresses"))?;
        }
        for (slot, class) in &tables.classes {
            let minor_had = had.classes.get(slot).map(|class| class[MINOR]);
            if minor_had != Some(class[MINOR]) {
                let state = self.states.set(*slot, StateWords::default(), 0);
                state.map_err(map_error("edt_states"))?;
            }
            let set = self.classes.set(half * self.room.slots + slot, class, 0);
            set.map_err(map_error("edt_classes"))?;
        }
        for (minor, slot) in &tables.minors {
            let insert = self
                .minors
                .insert((half << 16) | u32::from(*minor), slot, 0);
            insert.map_err(map_error("edt_minors"))?;
        }
        let words = tables.matches.tables_words();
        let insert = self.tables.insert(base, words, 0);
        insert.map_err(map_error("match_tables"))?;
        for (number, rule) in (0..).zip(&tables.matches.rules) {
            let set = self.rules.set(base + number, rule, 0);
            set.map_err(map_error("match_rules"))?;
        }
        for (key, answer) in &tables.matches.addresses {
            let mut key = *key;
            key[0] = base;
            let insert = self.addresses.insert(key, answer, 0);
            insert.map_err(map_error("match_addresses"))?;
        }
        for (number, block) in (0..).zip(tables.text.chunks(BLOCK)) {
            let mut bytes = [0; BLOCK];
            bytes[..block.len()].copy_from_slice(block);
            let set = self
                .text
                .set(half * self.room.text_blocks + number, bytes, 0);
            set.map_err(map_error("edt_text"))?;
        }
        let mut config = tables.config;
        config[BASE] = base;
        let set = self.config.set(half, config, 0);
        set.map_err(map_error("edt_config"))?;
        let set = self.active.set(0, half, 0);
        set.map_err(map_error("edt_active"))?;
        sleep(GRACE);
        Ok(())
    }

    /// Returns until when a class's packets wait, by its slot, on CLOCK_MONOTONIC.
    pub fn until_ns(&self, slot: u32) -> Result<u64, Error> {
        Ok(self.state(slot)?[NEXT])
    }

    /// Returns the state of what has no class.
    pub fn unclassified(&self) -> Result<StateWords, Error> {
        self.state(self.room.slots)
    }

    /// Returns the state of a class by its slot.
    pub fn state(&self, slot: u32) -> Result<StateWords, Error> {
        let state = self.states.get(&slot, LOCKED);
        state.map_err(map_error("edt_states"))
    }
}

fn missing(name: &str) -> Error {
    Error::Refused {
        part: format!("map {name}"),
        detail: "the program has none of this name".to_owned(),
    }
}
