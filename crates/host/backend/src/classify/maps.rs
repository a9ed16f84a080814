// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program that classifies, and its maps: one half of them is in force, the other is written and
//! then put in force by one store, so that each packet sees all of the old or all of the new.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::thread::sleep;
use std::time::Duration;

use host_config::{Facts, Psp};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapInfo, Object, ObjectBuilder, Program};
use units::ethernet::HEADER_BYTES;

use crate::error::{Error, refused};
use crate::match_maps::{ADDRESSES, DATAGRAMS, Matches, RULES, TABLES};
use crate::match_words::{MatchTables, words_of};

/// The object that build.rs compiled; empty if clang was missing.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classify.bpf.o"));

const PROGRAM: &str = "psp_classify";
/// CLASSIFY_VERSION of the program.
const VERSION: u32 = 1;
const ACTIVE: &str = "classify_active";
const CONFIG: &str = "classify_config";
const TEXT: &str = "classify_text";
/// Halves of the maps.
const HALVES: u32 = 2;
/// Bytes of a block of text.
const BLOCK: usize = 4096;
/// The least room for rules, prefixes, and blocks of text in a half.
const ENTRIES_MIN: u32 = 16;
const BLOCKS_MIN: u32 = 2;
/// The time after which no run of the program looks at the half that was in force.
const GRACE: Duration = Duration::from_millis(20);

/// What the program is to classify by.
#[derive(Default)]
pub(super) struct Wanted {
    matches: MatchTables,
    major: u16,
    net_cls: bool,
    link_bytes: u32,
    text: Vec<u8>,
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl Wanted {
    /// Returns what the filters of a psp say. O(filters).
    pub fn new(psp: &Psp, facts: &Facts) -> Self {
        let (rules, net_cls) = psp.rules();
        Self {
            matches: MatchTables::new(&words_of(&rules)),
            major: psp.handle.major(),
            net_cls,
            link_bytes: if facts.is_ethernet { HEADER_BYTES } else { 0 },
            text: psp.text().into_bytes(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.matches.is_empty() && !self.net_cls
    }

    fn blocks(&self) -> u32 {
        count(self.text.len().div_ceil(BLOCK))
    }
}

/// The maps of a program.
pub(super) struct Maps {
    active: MapHandle,
    config: MapHandle,
    text: MapHandle,
    datagrams: MapHandle,
    matches: Matches,
}

fn missing(name: &str) -> Error {
    Error::Refused {
        part: format!("map {name}"),
        detail: "the program has none of this name".to_owned(),
    }
}

/// Returns how many entries a half of a map has.
fn of_half(map: &MapHandle) -> Result<u32, Error> {
    let info = MapInfo::new(map.as_fd()).map_err(|error| refused("map", &error))?;
    Ok(info.info.max_entries / HALVES)
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.chunks_exact(4);
    words
        .filter_map(|four| Some(u32::from_ne_bytes(four.try_into().ok()?)))
        .collect()
}

impl Maps {
    fn new(mut find: impl FnMut(&str) -> Result<MapHandle, Error>) -> Result<Self, Error> {
        Ok(Self {
            active: find(ACTIVE)?,
            config: find(CONFIG)?,
            text: find(TEXT)?,
            datagrams: find(DATAGRAMS)?,
            matches: Matches {
                rules: find(RULES)?,
                addresses: find(ADDRESSES)?,
                tables: find(TABLES)?,
            },
        })
    }

    /// Opens the maps of the program with this id.
    ///
    /// # Errors
    /// The kernel's; that it takes root. [`Error::Version`].
    pub fn of_running(id: u32) -> Result<Self, Error> {
        let options = ProgInfoQueryOptions::default().include_map_ids(true);
        let mut programs = ProgInfoIter::with_query_opts(options);
        let program = programs.find(|info| info.id == id);
        let program = program.ok_or_else(|| Error::Refused {
            part: format!("program {PROGRAM}"),
            detail: "reading what it classifies by takes root (CAP_SYS_ADMIN)".to_owned(),
        })?;
        let mut maps = Vec::new();
        for id in program.map_ids {
            let map = MapHandle::from_map_id(id).map_err(|error| refused("map", &error))?;
            maps.push(map);
        }
        let maps = Self::new(|name| {
            let at = maps.iter().position(|map| map.name() == OsStr::new(name));
            Ok(maps.swap_remove(at.ok_or(Error::Version)?))
        })?;
        let version = maps.config(maps.half()?)?.first().copied();
        // 0: nothing was written into it yet.
        if version.is_some_and(|version| version == VERSION || version == 0) {
            Ok(maps)
        } else {
            Err(Error::Version)
        }
    }

    fn half(&self) -> Result<u32, Error> {
        let active = read(&self.active, ACTIVE, 0)?;
        Ok(words(&active).first().copied().unwrap_or(0) & 1)
    }

    /// Returns `struct classify_config` of a half.
    fn config(&self, half: u32) -> Result<Vec<u32>, Error> {
        Ok(words(&read(&self.config, CONFIG, half)?))
    }

    /// Returns what was kept beside.
    pub fn text(&self) -> Result<Vec<u8>, Error> {
        let half = self.half()?;
        let bytes = self.config(half)?.get(7).copied().unwrap_or(0);
        let bytes = usize::try_from(bytes).unwrap_or(0);
        let room = of_half(&self.text)?;
        let mut text = Vec::new();
        for number in 0..count(bytes.div_ceil(BLOCK)).min(room) {
            text.extend(read(&self.text, TEXT, half * room + number)?);
        }
        text.truncate(bytes);
        Ok(text)
    }

    /// Returns whether there is room.
    pub fn hold(&self, wanted: &Wanted) -> bool {
        let holds = |map, need: u32| of_half(map).is_ok_and(|room| need <= room);
        let matches = &wanted.matches;
        holds(&self.matches.rules, count(matches.rules.len()))
            && holds(&self.matches.addresses, count(matches.addresses.len()))
            && holds(&self.text, wanted.blocks())
            && holds(&self.datagrams, matches.datagrams() / HALVES)
    }

    /// Puts it in force. O(filters).
    pub fn write(&self, wanted: &Wanted) -> Result<(), Error> {
        let half = self.half()? ^ 1;
        let base = half * of_half(&self.matches.rules)?;
        let fault = |error| refused("matches", &error);
        self.matches.write(base, &wanted.matches).map_err(fault)?;
        let blocks = of_half(&self.text)?;
        for (number, block) in (0..).zip(wanted.text.chunks(BLOCK)) {
            let mut bytes = vec![0; BLOCK];
            bytes[..block.len()].copy_from_slice(block);
            write(&self.text, TEXT, half * blocks + number, &bytes)?;
        }
        let config = [
            VERSION,
            wanted.major.into(),
            count(wanted.matches.rules.len()),
            base,
            count(wanted.matches.addresses.len()),
            wanted.net_cls.into(),
            wanted.link_bytes,
            count(wanted.text.len()),
        ];
        let config: Vec<u8> = config.iter().flat_map(|word| word.to_ne_bytes()).collect();
        write(&self.config, CONFIG, half, &config)?;
        write(&self.active, ACTIVE, 0, &half.to_ne_bytes())?;
        sleep(GRACE);
        Ok(())
    }
}

fn read(map: &MapHandle, name: &str, key: u32) -> Result<Vec<u8>, Error> {
    let value = map.lookup(&key.to_ne_bytes(), MapFlags::ANY);
    let value = value.map_err(|error| refused(&format!("map {name}"), &error))?;
    value.ok_or_else(|| missing(name))
}

fn write(map: &MapHandle, name: &str, key: u32, value: &[u8]) -> Result<(), Error> {
    let update = map.update(&key.to_ne_bytes(), value, MapFlags::ANY);
    update.map_err(|error| refused(&format!("map {name}"), &error))
}

/// A program that was loaded. It goes with this value, unless a filter holds it by then.
pub(super) struct Loaded {
    pub maps: Maps,
    object: Object,
}

impl Loaded {
    /// Loads a program with room for what is wanted, and for twice as much later.
    pub fn new(wanted: &Wanted) -> Result<Self, Error> {
        if OBJECT.is_empty() {
            return Err(Error::NotBuilt);
        }
        let fault = |error| refused("program", &error);
        let mut builder = ObjectBuilder::default();
        let mut open = builder.open_memory(OBJECT).map_err(fault)?;
        let room = |need: u32, least: u32| HALVES.saturating_mul(need.saturating_mul(2).max(least));
        let matches = &wanted.matches;
        for mut map in open.maps_mut() {
            let entries = match map.name().to_str() {
                Some(RULES) => room(count(matches.rules.len()), ENTRIES_MIN),
                Some(ADDRESSES) => room(count(matches.addresses.len()), ENTRIES_MIN),
                Some(TABLES) => HALVES,
                Some(DATAGRAMS) => matches.datagrams(),
                Some(TEXT) => room(wanted.blocks(), BLOCKS_MIN),
                _ => continue,
            };
            map.set_max_entries(entries).map_err(fault)?;
        }
        let object = open.load().map_err(fault)?;
        let maps = Maps::new(|name| {
            let map = object.maps().find(|map| map.name() == OsStr::new(name));
            let map = map.ok_or_else(|| missing(name))?;
            MapHandle::try_from(&map).map_err(fault)
        })?;
        Ok(Self { maps, object })
    }

    /// Returns the program's descriptor, which is open as long as this value lives, and its id.
    pub fn descriptor(&self) -> Result<(RawFd, u32), Error> {
        let mut programs = self.object.progs();
        let program = programs.find(|program| program.name() == OsStr::new(PROGRAM));
        let program = program.ok_or_else(|| missing(PROGRAM))?;
        let id = Program::id_from_fd(program.as_fd());
        let id = id.map_err(|error| refused("program", &error))?;
        Ok((program.as_fd().as_raw_fd(), id))
    }
}

/// Returns how many of these programs the kernel has.
pub(super) fn programs() -> usize {
    let programs = ProgInfoIter::default();
    programs
        .filter(|info| info.name == OsStr::new(PROGRAM))
        .count()
}
