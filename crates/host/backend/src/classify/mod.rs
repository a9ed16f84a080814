// SPDX-License-Identifier: MIT OR Apache-2.0
//! The matches of the module's psp as one program (`bpf/classify.bpf.c`), which its one filter runs:
//! the rules of `bpf/match.h`, as without the module.
//!
//! Program and maps belong to the filter: they go on when the process ends, and go when the filter
//! goes. What the filters are is kept beside, in a map.

mod maps;

use std::collections::BTreeSet;

use host_config::{Facts, FilterState, Psp};
use tcpsp::attribute::{self, Attribute, Attributes};
use tcpsp::{Change, Filter, FilterId, Handle, PlainFilter, Tc};

use crate::error::Error;
use maps::{Loaded, Maps, Wanted};

/// The kind of filter, and its attributes (linux/pkt_cls.h).
const BPF: &str = "bpf";
const BPF_FD: u16 = 6;
const BPF_NAME: u16 = 7;
const BPF_ID: u16 = 11;
/// The name of the filter.
const NAME: &str = "pspacer-classify";

/// Returns whether a filter is the one that runs the program.
fn is_program(filter: &Filter) -> bool {
    let name = Attributes(&attribute::read(&filter.options)).string(BPF_NAME);
    filter.kind == BPF && name.as_deref() == Some(NAME)
}

/// Opens the maps of the program that a filter runs.
fn maps_of(filter: &Filter) -> Result<Maps, Error> {
    let id = Attributes(&attribute::read(&filter.options)).u32(BPF_ID);
    Maps::of_running(id.ok_or(Error::Version)?)
}

/// Checks that programs that classify can be loaded and found again.
pub fn check_usable() -> Result<(), Error> {
    let loaded = Loaded::new(&Wanted::default())?;
    Maps::of_running(loaded.descriptor()?.1)?;
    Ok(())
}

/// Returns how many of these programs the kernel has, on all devices.
pub fn programs() -> usize {
    maps::programs()
}

/// Reads what a program classifies by, in the place of the filters that the kernel's tables have of
/// a psp. O(filters).
///
/// # Errors
/// The kernel's; that it takes root.
pub(crate) fn read(psp: &mut Psp, filters: &[Filter]) -> Result<(), Error> {
    let mut of_psp = filters.iter().filter(|f| f.parent == psp.handle);
    let Some(program) = of_psp.find(|filter| is_program(filter)) else {
        return Ok(());
    };
    let at = (program.priority, program.handle);
    psp.filters.retain(|filter| filter.place() != at);
    psp.is_classified = true;
    let text = match maps_of(program) {
        Ok(maps) => maps.text()?,
        // What another version keeps is not known here: it makes room as a whole.
        Err(Error::Version) => {
            psp.is_unread = true;
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let text = std::str::from_utf8(&text).map_err(|error| Error::Text(error.to_string()))?;
    let kept = Psp::of_text(text, psp.made, psp.handle, psp.parent).map_err(Error::Text)?;
    psp.filters.extend(kept.filters);
    psp.filters.sort_by_key(FilterState::place);
    Ok(())
}

/// Puts the matches of a psp in force, with one store or by one request; filters of the kernel's
/// kinds that stood for them go then. O(filters).
pub(crate) fn put(tc: &mut Tc, facts: &Facts, psp: &Psp) -> Result<(), Error> {
    let device = facts.index;
    let filters = tc.filters(device, psp.handle)?;
    let (programs, others): (Vec<_>, Vec<_>) = filters.iter().partition(|f| is_program(f));
    let program = programs.first().copied();
    let wanted = Wanted::new(psp, facts);
    if wanted.is_empty() {
        if let Some(program) = program {
            delete(tc, program)?;
        }
    } else {
        let running = match program.map(maps_of) {
            None | Some(Err(Error::Version)) => None,
            Some(maps) => Some(maps?),
        };
        match running.filter(|maps| maps.hold(&wanted)) {
            Some(maps) => maps.write(&wanted)?,
            None => load(tc, (device, psp.handle), &wanted, program, &others)?,
        }
    }
    for filter in others.iter().rev() {
        if FilterState::new(filter).is_ours() {
            delete(tc, filter)?;
        }
    }
    Ok(())
}

/// Loads a program and lets the filter run it, which is asked before all others if there is room.
fn load(
    tc: &mut Tc,
    (device, qdisc): (u32, Handle),
    wanted: &Wanted,
    running: Option<&Filter>,
    others: &[&Filter],
) -> Result<(), Error> {
    let loaded = Loaded::new(wanted)?;
    loaded.maps.write(wanted)?;
    let taken: BTreeSet<u16> = others.iter().map(|filter| filter.priority).collect();
    let free = (1..=u16::MAX).find(|priority| !taken.contains(priority));
    let at = match running {
        Some(filter) => place(filter),
        None => FilterId {
            qdisc,
            priority: free.unwrap_or(1),
            handle: 1,
        },
    };
    let (descriptor, _) = loaded.descriptor()?;
    let filter = PlainFilter {
        at,
        kind: BPF,
        protocol: PlainFilter::ANY,
        options: vec![
            Attribute::u32(BPF_FD, u32::try_from(descriptor).unwrap_or(u32::MAX)),
            Attribute::string(BPF_NAME, NAME),
        ],
    };
    Ok(tc.put_filter(device, &filter, running.is_some())?)
}

fn place(filter: &Filter) -> FilterId {
    FilterId {
        qdisc: filter.parent,
        priority: filter.priority,
        handle: filter.handle,
    }
}

fn delete(tc: &mut Tc, filter: &Filter) -> Result<(), Error> {
    let change = Change::DeleteFilter {
        at: place(filter),
        kind: filter.kind.clone(),
        protocol: filter.protocol,
    };
    Ok(tc.change(filter.device, &change)?)
}
