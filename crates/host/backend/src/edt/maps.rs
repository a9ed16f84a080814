// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program's maps: one half of them is in force, the other is written and then put in force by
//! one store, so that each packet sees all of the old or all of the new.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use aya::Ebpf;
use aya::maps::{Array, HashMap, Map, MapData, MapError, MapInfo};

use super::error::{Error, refused};
use super::layout::{
    CLASSES, ClassWords, ConfigWords, RULES, RuleWords, StateWords, Tables, VERSION,
};

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
}

fn map_error(name: &str) -> impl Fn(MapError) -> Error + '_ {
    move |error| refused(&format!("map {name}"), &error)
}

fn array<V: aya::Pod>(name: &str, data: MapData) -> Result<Array<MapData, V>, Error> {
    Array::try_from(Map::Array(data)).map_err(map_error(name))
}

impl Maps {
    /// Takes the maps of a program that was loaded now.
    pub fn of_new(ebpf: &mut Ebpf) -> Result<Self, Error> {
        Self::new(|name| match ebpf.take_map(name) {
            Some(Map::Array(data) | Map::HashMap(data)) => Ok(data),
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
            let id = by_name.get(name).ok_or_else(|| missing(name))?;
            MapData::from_id(*id).map_err(map_error(name))
        })
    }

    fn new(mut find: impl FnMut(&str) -> Result<MapData, Error>) -> Result<Self, Error> {
        let minors = Map::HashMap(find("edt_minors")?);
        Ok(Self {
            active: array("edt_active", find("edt_active")?)?,
            config: array("edt_config", find("edt_config")?)?,
            rules: array("edt_rules", find("edt_rules")?)?,
            classes: array("edt_classes", find("edt_classes")?)?,
            states: array("edt_states", find("edt_states")?)?,
            minors: HashMap::try_from(minors).map_err(map_error("edt_minors"))?,
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
            return Err(Error::Version {
                found: config[0],
                expected: VERSION,
            });
        }
        let mut tables = Tables {
            config,
            ..Tables::default()
        };
        for number in 0..config[1].min(RULES) {
            let rule = self.rules.get(&(half * RULES + number), 0);
            tables.rules.push(rule.map_err(map_error("edt_rules"))?);
        }
        for entry in self.minors.iter() {
            let (key, slot) = entry.map_err(map_error("edt_minors"))?;
            let minor = u16::try_from(key & 0xffff).unwrap_or(0);
            if key >> 16 != half {
                continue;
            }
            tables.minors.insert(minor, slot);
            if slot < CLASSES {
                let class = self.classes.get(&(half * CLASSES + slot), 0);
                let class = class.map_err(map_error("edt_classes"))?;
                tables.classes.insert(slot, class);
            }
        }
        Ok(tables)
    }

    /// Puts tables in force; `had` is what was. Classes that `had` does not have begin with a new
    /// clock. O(classes + rules).
    pub fn write(&mut self, tables: &Tables, had: &Tables) -> Result<(), Error> {
        let half = self.half()? ^ 1;
        let stale: Vec<u32> = self.minors.keys().filter_map(Result::ok).collect();
        for key in stale.iter().filter(|key| *key >> 16 == half) {
            self.minors.remove(key).map_err(map_error("edt_minors"))?;
        }
        for (slot, class) in &tables.classes {
            let minor_had = had.classes.get(slot).map(|class| class[2]);
            if minor_had != Some(class[2]) {
                let state = self.states.set(*slot, [0; 9], 0);
                state.map_err(map_error("edt_states"))?;
            }
            let set = self.classes.set(half * CLASSES + slot, class, 0);
            set.map_err(map_error("edt_classes"))?;
        }
        for (minor, slot) in &tables.minors {
            let insert = self
                .minors
                .insert((half << 16) | u32::from(*minor), slot, 0);
            insert.map_err(map_error("edt_minors"))?;
        }
        for (number, rule) in (0..).zip(&tables.rules) {
            let set = self.rules.set(half * RULES + number, rule, 0);
            set.map_err(map_error("edt_rules"))?;
        }
        let set = self.config.set(half, tables.config, 0);
        set.map_err(map_error("edt_config"))?;
        let set = self.active.set(0, half, 0);
        set.map_err(map_error("edt_active"))?;
        sleep(GRACE);
        Ok(())
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
