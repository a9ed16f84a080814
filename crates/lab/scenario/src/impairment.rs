// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `[[impairment]]`: chosen frames of one direction of a cable that are lost on it or
//! arrive late. The ranges of the values are those of lab/wire.

use std::ops::Range;
use toml_reader::Error;

use crate::expr::Env;
use crate::model::{Cell, Direction, Impairment, ImpairmentKind};
use crate::reader::Section;
use crate::tables::{Reading, direction, reference, span, within};

pub(crate) const IMPAIRMENT: &[&str] = &[
    "cable",
    "from",
    "flow",
    "bytes_from",
    "bytes_to",
    "copies",
    "larger",
    "every",
    "start",
    "stop",
    "late",
    "held",
    "when",
    "each",
];

/// Half of the sequence numbers: bytes further on cannot be distinguished.
const BYTES_MAX: u64 = 1 << 31;

/// Reads every impairment of a cell whose flows are known.
pub(crate) fn read(
    reading: &Reading<'_>,
    cell: &mut Cell,
    env: &Env,
    clamp: bool,
) -> Result<(), Error> {
    reading.each_repetition("impairment", "[[impairment]]", IMPAIRMENT, env, |section| {
        let impairment = impairment(section, cell, clamp)?;
        cell.impairments.push(impairment);
        Ok(())
    })
}

fn impairment(section: &Section<'_, '_>, cell: &Cell, clamp: bool) -> Result<Impairment, Error> {
    let direction = direction(section, "from", cell)?;
    let flow = flow(section, cell, direction)?;
    let bytes = bytes(section, cell, direction, flow)?;
    let copies = section.number("copies", 1..1 << 32)?;
    if bytes.is_none() && copies.is_some() {
        let expected = "nothing without `bytes_from` and `bytes_to`, whose segments it counts";
        return Err(section.require("copies", expected)?.fault(expected));
    }
    let larger_bytes = section.size("larger")?;
    within(section, "larger", larger_bytes.unwrap_or(0), 0, 65_535)?;
    let (start_ns, stop_ns) = span(section, "start", "stop", cell.duration_ns, clamp)?;
    Ok(Impairment {
        direction,
        flow,
        bytes,
        copies,
        larger_bytes,
        every: section.number("every", 1..1 << 32)?,
        start_ns,
        stop_ns,
        kind: kind(section, cell, direction)?,
        place: section.table.place(),
    })
}

/// Returns the flow that the impairment affects, which must cross the cable.
fn flow(
    section: &Section<'_, '_>,
    cell: &Cell,
    direction: Direction,
) -> Result<Option<usize>, Error> {
    if section.get("flow").is_none() {
        return Ok(None);
    }
    let names = cell.flows.iter().map(|flow| flow.name.as_str());
    let flow = reference(section, "flow", "flow", names)?;
    let crosses = |hop: &Direction| hop.cable == direction.cable;
    if !cell.flows[flow].path.iter().any(crosses) {
        let expected = "a flow that crosses the cable";
        return Err(section.require("flow", expected)?.fault(expected));
    }
    Ok(Some(flow))
}

/// Returns the bytes of a TCP flow's stream that the impairment affects.
fn bytes(
    section: &Section<'_, '_>,
    cell: &Cell,
    direction: Direction,
    flow: Option<usize>,
) -> Result<Option<Range<u64>>, Error> {
    let (from, to) = (section.size("bytes_from")?, section.size("bytes_to")?);
    within(section, "bytes_from", from.unwrap_or(0), 0, BYTES_MAX)?;
    within(section, "bytes_to", to.unwrap_or(1), 1, BYTES_MAX)?;
    let (from, to) = match (from, to) {
        (None, None) => return Ok(None),
        (Some(_), None) => return Err(section.missing("bytes_to", "where the bytes end")),
        (from, Some(to)) => (from.unwrap_or(0), to),
    };
    if from >= to {
        let expected = "less than `bytes_to`";
        return Err(section.require("bytes_from", expected)?.fault(expected));
    }
    let flow = flow.map(|flow| &cell.flows[flow]);
    let carries =
        |flow: &crate::Flow| flow.kind.protocol() == "tcp" && flow.path.contains(&direction);
    if !flow.is_some_and(carries) {
        let expected = "nothing unless `flow` is a tcp flow whose data is sent by `from`";
        return Err(section.require("bytes_to", expected)?.fault(expected));
    }
    Ok(Some(from..to))
}

/// Returns what happens to the frames.
fn kind(
    section: &Section<'_, '_>,
    cell: &Cell,
    direction: Direction,
) -> Result<ImpairmentKind, Error> {
    let by_ns = section.time("late")?;
    within(section, "late", by_ns.unwrap_or(1), 1, 100_000_000_000)?;
    let is_held = section.boolean("held")?.unwrap_or(false);
    let kind = match (by_ns, is_held) {
        (None, false) => return Ok(ImpairmentKind::Lost),
        (Some(by_ns), false) => ImpairmentKind::Late { by_ns },
        (None, true) => ImpairmentKind::Held,
        (Some(_), true) => {
            let expected = "nothing beside `held`, the other way to be late";
            return Err(section.require("late", expected)?.fault(expected));
        }
    };
    let end = direction.end.index();
    let shares = |index: usize, cable: &crate::Cable| {
        let also = cable.bottlenecks[end].as_ref().and_then(|b| b.also);
        also.is_some_and(|other| other == direction.cable || index == direction.cable)
    };
    let is_shared = cell.cables.iter().enumerate().any(|(i, c)| shares(i, c));
    if is_shared {
        let expected = "a direction whose bottleneck no other cable enters, for frames to be late";
        return Err(section.require("from", expected)?.fault(expected));
    }
    Ok(kind)
}
