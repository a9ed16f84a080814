// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the program, and finds it where it runs.

use std::os::fd::{AsFd, AsRawFd};

use aya::programs::{ProgramError, ProgramFd, SchedClassifier, loaded_programs};
use aya::{Ebpf, EbpfLoader};
use linux_io::clock::tai_ahead_s;

use super::layout::{Room, Tables};
use super::maps::{HALVES, Maps};
use crate::error::{Error, refused};

/// The object that build.rs compiled; empty if clang was missing.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/edt.bpf.o"));

/// CLOCK_TAI less CLOCK_REALTIME since 2017 (IERS, Bulletin C), for a kernel that nobody has told: a
/// daemon of NTP or PTP does, seconds after the boot. Until then the clocks are the same.
const TAI_AHEAD_S: u64 = 37;

const PROGRAM: &str = "set_departure";

/// A program that was loaded and is not attached. It goes with this value, unless a filter holds
/// it by then.
pub(crate) struct Loaded {
    pub maps: Maps,
    ebpf: Ebpf,
}

impl Loaded {
    /// Loads a program with room for tables.
    pub fn new(tables: &Tables) -> Result<Self, Error> {
        if OBJECT.is_empty() {
            return Err(Error::NotBuilt);
        }
        let room = Room::new(tables);
        let mut loader = EbpfLoader::new();
        loader.set_global("slots_max", &room.slots, true);
        let tai_ahead_s = tai_ahead_s().map_err(|error| refused("clock", &error))?;
        let tai_ahead_s = if tai_ahead_s == 0 {
            TAI_AHEAD_S
        } else {
            tai_ahead_s
        };
        let tai_ahead_ns = tai_ahead_s.saturating_mul(1_000_000_000);
        loader.set_global("tai_ahead_ns", &tai_ahead_ns, true);
        loader.set_max_entries("edt_states", room.slots.saturating_add(1));
        for (map, of_half) in [
            ("edt_classes", room.slots),
            ("edt_minors", room.slots),
            ("match_rules", room.rules),
            ("match_addresses", room.addresses),
            ("edt_text", room.text_blocks),
            ("match_tables", 1),
        ] {
            loader.set_max_entries(map, HALVES.saturating_mul(of_half));
        }
        loader.set_max_entries("match_datagrams", room.datagrams);
        let load = loader.load(OBJECT);
        let mut ebpf = load.map_err(|error| refused("program", &error))?;
        let classifier = classifier(&mut ebpf)?;
        let load = classifier.load();
        load.map_err(|error| refused("program", &error))?;
        Ok(Self {
            maps: Maps::of_new(&mut ebpf)?,
            ebpf,
        })
    }

    /// Passes the program's descriptor, as the kernel's filter wants it, to `attach`.
    pub fn with_descriptor<T>(&mut self, attach: impl FnOnce(u32) -> T) -> Result<T, Error> {
        let fd = classifier(&mut self.ebpf)?.fd();
        let fd: &ProgramFd = fd.map_err(|error| refused("program", &error))?;
        let number = fd.as_fd().as_raw_fd();
        Ok(attach(u32::try_from(number).unwrap_or(u32::MAX)))
    }
}

fn classifier(ebpf: &mut Ebpf) -> Result<&mut SchedClassifier, Error> {
    let program = ebpf.program_mut(PROGRAM).ok_or_else(|| Error::Refused {
        part: "program".to_owned(),
        detail: format!("the object has no {PROGRAM}"),
    })?;
    program
        .try_into()
        .map_err(|error: ProgramError| refused("program", &error))
}

/// Opens the maps of the program with this id; `None` if it is gone.
pub(crate) fn maps_of(id: u32) -> Result<Option<Maps>, Error> {
    for info in loaded_programs() {
        let info = info.map_err(|error| refused("program", &error))?;
        if info.id() == id {
            let ids = info.map_ids().map_err(|error| refused("program", &error))?;
            return Maps::of_running(&ids.unwrap_or_default()).map(Some);
        }
    }
    Ok(None)
}

/// Returns how many of these programs the kernel has, on all devices.
pub fn programs() -> Result<usize, Error> {
    let mut count = 0;
    for info in loaded_programs() {
        let info = info.map_err(|error| refused("program", &error))?;
        count += usize::from(info.name_as_str() == Some(PROGRAM));
    }
    Ok(count)
}
