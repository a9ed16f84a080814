// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the programs, and finds them where they run.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use libbpf_rs::{MapCore, ObjectBuilder, OpenObject};

use super::error::{Error, refused};
use super::layout::{Layout, PAGE, START};
use super::memory::{Memory, check_free};

/// The object that build.rs compiled; empty if clang was missing.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/qdisc.bpf.o"));

const LISTS: &str = "psp_lists";
const ARENA: &str = "psp_arena";
const OPS: &str = "psp_ops";
/// Longest name of a kind of qdisc.
const NAME_MAX: usize = 15;

/// Loads the programs for an arena and registers the qdisc under a name.
pub(crate) fn load(name: &str, layout: Layout) -> Result<Memory, Error> {
    if OBJECT.is_empty() {
        return Err(Error::NotBuilt);
    }
    let free = check_free(layout.pages() * PAGE);
    free.map_err(|error| refused(ARENA, &error))?;
    let mut builder = ObjectBuilder::default();
    let open = builder.open_memory(OBJECT);
    let mut open = open.map_err(|error| refused("programs", &error))?;
    prepare(&mut open, name, layout)?;
    let mut object = open.load().map_err(|error| refused("programs", &error))?;
    let missing = |name: &str| Error::Refused {
        part: name.to_owned(),
        detail: "the object has no such map".to_owned(),
    };
    let arena = object.maps().find(|map| map.name() == OsStr::new(ARENA));
    let arena = arena.ok_or_else(|| missing(ARENA))?;
    let arena = arena.as_fd().try_clone_to_owned();
    let arena = arena.map_err(|error| refused(ARENA, &error))?;
    let mut ops = object
        .maps_mut()
        .find(|map| map.name() == OsStr::new(OPS))
        .ok_or_else(|| missing(OPS))?;
    let link = ops.attach_struct_ops();
    let mut link = link.map_err(|error| refused("qdisc", &error))?;
    // The kernel keeps what is registered until it is taken away.
    link.disconnect();
    // libbpf has mapped the arena for as long as the object is open.
    drop(object);
    let memory = Memory::map(arena, layout.pages() * PAGE);
    memory.map_err(|error| refused(ARENA, &error))
}

fn prepare(open: &mut OpenObject, name: &str, layout: Layout) -> Result<(), Error> {
    let lists = layout.ports * layout.slots;
    let pages = u32::try_from(layout.pages()).unwrap_or(u32::MAX);
    for mut map in open.maps_mut() {
        let set = match map.name().to_str() {
            Some(LISTS) => map.set_max_entries(lists),
            Some(ARENA) => map
                .set_map_extra(START)
                .and_then(|()| map.set_max_entries(pages)),
            Some(OPS) => {
                let id = map
                    .initial_value_mut()
                    .and_then(|value| value.get_mut(..=NAME_MAX));
                if let Some(id) = id {
                    id.fill(0);
                    for (to, from) in id.iter_mut().take(NAME_MAX).zip(name.bytes()) {
                        *to = from;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        };
        set.map_err(|error| refused("maps", &error))?;
    }
    Ok(())
}
