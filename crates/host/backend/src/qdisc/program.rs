// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the programs, registers them, and finds them where they run.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use host_config::Made;
use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use libbpf_rs::{ErrorKind, Link, MapCore, MapHandle, MapInfo, MapType, Object, ObjectBuilder};
use libbpf_rs::{OpenObject, Result as BpfResult};

use super::error::{Error, refused};
use super::layout::{Layout, PAGE, PORT_START_BYTES, Room, START, TABLE_BYTES, VERSION, at};
use super::memory::{Memory, check_free};
use super::ports::{MapIds, Place, Ports};
use crate::match_maps::{ADDRESSES, DATAGRAMS, Matches, RULES, TABLES};
use crate::match_words;

/// The object that build.rs compiled; empty if clang was missing.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/qdisc.bpf.o"));

/// The name of the kind of qdisc: `.id` in bpf/qdisc.bpf.c.
pub const KIND: &str = Made::Bpf.kind();
const PACKETS: &str = "psp_packets";
const ARENA: &str = "psp_arena";
const OPS: &str = "psp_ops";
/// A program of each set.
const PROGRAM: &str = "psp_enqueue";
/// The types of the running kernel, and the one that it has if it takes qdiscs of BPF.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
const QDISC_OPS: &str = "bpf_struct_ops_Qdisc_ops";
/// How long another process may have the kind registered: it does so while it puts its qdiscs.
const REGISTERED_MAX: Duration = Duration::from_secs(2);
const REGISTER_AGAIN: Duration = Duration::from_millis(20);

fn mapped(error: nix::Error) -> Error {
    match error {
        nix::Error::EEXIST => Error::Mapped,
        other => refused(ARENA, &other),
    }
}

/// Loads the programs for ports at these places.
pub(crate) fn load(places: &[Place], layout: Layout) -> Result<(Ports, Matches), Error> {
    if OBJECT.is_empty() {
        return Err(Error::NotBuilt);
    }
    let bytes = layout.pages() * PAGE;
    check_free(bytes).map_err(mapped)?;
    let mut builder = ObjectBuilder::default();
    let open = builder.open_memory(OBJECT);
    let mut open = open.map_err(|error| refused("programs", &error))?;
    prepare(&mut open, layout)?;
    let object = open.load().map_err(|error| {
        if knows_qdiscs() {
            refused("programs", &error)
        } else {
            Error::NoQdiscs
        }
    })?;
    let matches = Matches {
        rules: handle(&object, RULES)?,
        addresses: handle(&object, ADDRESSES)?,
        tables: handle(&object, TABLES)?,
    };
    let id = |map: &MapHandle| {
        let info = MapInfo::new(map.as_fd());
        info.map(|info| info.info.id)
            .map_err(|error| refused("maps", &error))
    };
    let maps = MapIds {
        rules: id(&matches.rules)?,
        addresses: id(&matches.addresses)?,
        tables: id(&matches.tables)?,
    };
    let memory = Memory::of_loaded(object, bytes);
    let ports = Ports { memory, layout };
    ports.begin(places, maps);
    Ok((ports, matches))
}

/// Returns whether the kernel takes qdiscs of BPF, as far as its types say.
fn knows_qdiscs() -> bool {
    let types = std::fs::read(TYPES).unwrap_or_default();
    types
        .windows(QDISC_OPS.len())
        .any(|bytes| bytes == QDISC_OPS.as_bytes())
}

fn handle(object: &Object, name: &str) -> Result<MapHandle, Error> {
    let map = object.maps().find(|map| map.name() == OsStr::new(name));
    let map = map.ok_or_else(|| missing(name))?;
    MapHandle::try_from(&map).map_err(|error| refused(name, &error))
}

fn missing(name: &str) -> Error {
    Error::Refused {
        part: name.to_owned(),
        detail: "the object has no such map".to_owned(),
    }
}

fn prepare(open: &mut OpenObject, layout: Layout) -> Result<(), Error> {
    let of_ports = |of_port: u32| layout.ports.saturating_mul(of_port).max(1);
    let room = layout.room;
    let pages = u32::try_from(layout.pages()).unwrap_or(u32::MAX);
    for mut map in open.maps_mut() {
        let set = match map.name().to_str() {
            Some(PACKETS) => map.set_max_entries(of_ports(layout.places())),
            Some(RULES) => map.set_max_entries(of_ports(room.rules.saturating_mul(2))),
            Some(ADDRESSES) => map.set_max_entries(of_ports(room.addresses.saturating_mul(2))),
            Some(TABLES) => map.set_max_entries(of_ports(2)),
            Some(DATAGRAMS) => map.set_max_entries(match_words::DATAGRAMS),
            Some(ARENA) => map
                .set_map_extra(START)
                .and_then(|()| map.set_max_entries(pages)),
            _ => Ok(()),
        };
        set.map_err(|error| refused("maps", &error))?;
    }
    Ok(())
}

/// Registers the kind of qdisc for as long as the link is open.
pub(crate) fn register(object: &mut Object) -> Result<Link, Error> {
    let began = Instant::now();
    let mut ops = object
        .maps_mut()
        .find(|map| map.name() == OsStr::new(OPS))
        .ok_or_else(|| missing(OPS))?;
    loop {
        let link: BpfResult<Link> = ops.attach_struct_ops();
        match link {
            Ok(link) => return Ok(link),
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(refused("qdisc", &error));
            }
            Err(_) if began.elapsed() >= REGISTERED_MAX => return Err(Error::Registered(KIND)),
            Err(_) => sleep(REGISTER_AGAIN),
        }
    }
}

/// Finds the arena of the qdisc that runs at a place, and the maps beside it.
pub(crate) fn find(place: Place) -> Result<Option<(Ports, Matches)>, Error> {
    for info in MapInfoIter::default() {
        if info.ty != MapType::Arena || info.name != ARENA {
            continue;
        }
        // It may be gone by now.
        let Ok(arena) = MapHandle::from_map_id(info.id) else {
            continue;
        };
        let memory = match Memory::map(arena.as_fd(), u64::from(info.max_entries) * PAGE) {
            Ok(memory) => memory,
            Err(nix::Error::EEXIST) => return Err(Error::Mapped),
            // It is somebody else's, of the same name.
            Err(_) => continue,
        };
        if !is_at(&memory, place) {
            continue;
        }
        let found = memory.u32(START + at::TABLE_VERSION);
        if found != VERSION {
            return Err(Error::Version {
                found,
                expected: VERSION,
            });
        }
        return open(memory).map(Some);
    }
    Ok(None)
}

/// Returns whether a qdisc of an arena, whatever its version, runs at a place.
fn is_at(memory: &Memory, place: Place) -> bool {
    if !memory.holds(START, TABLE_BYTES) || memory.u32(START + at::TABLE_VERSION) == 0 {
        return false;
    }
    let first = memory.u64(START + at::TABLE_PORT);
    let port_bytes = u64::from(memory.u32(START + at::TABLE_PORT_BYTES));
    let ports = 0..u64::from(memory.u32(START + at::TABLE_PORTS));
    let starts = ports.map(|port| first.saturating_add(port * port_bytes));
    let is_port = |base: &u64| {
        port_bytes >= PORT_START_BYTES && base % 8 == 0 && memory.holds(*base, PORT_START_BYTES)
    };
    starts.take_while(is_port).any(|base| {
        memory.u32(base + at::PORT_IN_USE) != 0
            && memory.u64(base + at::PORT_NETNS) == place.netns
            && memory.u32(base + at::PORT_IFINDEX) == place.ifindex
            && memory.u32(base + at::PORT_PARENT) == place.parent
    })
}

/// Opens what runs in an arena of this version.
fn open(memory: Memory) -> Result<(Ports, Matches), Error> {
    let table = |at| memory.u32(START + at);
    let layout = Layout {
        ports: table(at::TABLE_PORTS),
        room: Room {
            slots: table(at::TABLE_SLOTS),
            rules: table(at::TABLE_RULES),
            addresses: table(at::TABLE_ADDRESSES),
            text_bytes: table(at::TABLE_TEXT_BYTES),
        },
    };
    let matches = Matches::open(
        table(at::TABLE_RULES_MAP),
        table(at::TABLE_ADDRESSES_MAP),
        table(at::TABLE_TABLES_MAP),
    );
    let matches = matches.map_err(|error| refused("matches", &error))?;
    if !memory.holds(START, layout.pages() * PAGE) {
        return Err(Error::Refused {
            part: ARENA.to_owned(),
            detail: "it is shorter than its table says".to_owned(),
        });
    }
    Ok((Ports { memory, layout }, matches))
}

/// Returns whether this program has the qdisc: clang was there when it was built.
pub fn is_built() -> bool {
    !OBJECT.is_empty()
}

/// Returns how many sets of these programs the kernel has, of all devices. It frees a set some
/// time after the last qdisc has gone.
pub fn programs() -> usize {
    let programs = ProgInfoIter::default();
    programs
        .filter(|info| info.name == OsStr::new(PROGRAM))
        .count()
}
