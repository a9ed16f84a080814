// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `[[capture]]` and `[[stop]]`: where a cell is captured, and which stalls with which
//! causes are known before the run.

use crate::expr::Env;
use crate::model::{Capture, Cell, KnownStop, StopSide};
use crate::reader::Section;
use crate::tables::{Names, Reading, direction, is_word, reference, required, span};
use toml_reader::Error;

pub(crate) const CAPTURE: &[&str] = &["name", "cable", "at", "when", "each"];
pub(crate) const STOP: &[&str] = &["flow", "cause", "side", "from", "to", "when", "each"];

/// Length of Ethernet, IPv4 and TCP headers with the longest TCP options.
const SNAP_MIN: u32 = 94;

/// Reads every capture of a cell whose cables are known.
pub(crate) fn captures(reading: &Reading<'_>, cell: &mut Cell, env: &Env) -> Result<(), Error> {
    let mut names = Names::default();
    reading.each_repetition("capture", "[[capture]]", CAPTURE, env, |section| {
        let expected = "a name of letters, digits, `.`, `_` and `-`, not \"wire\"";
        let fits = |name: &str| is_word(name, 31) && name != "wire";
        let name = names.take(section, expected, fits)?;
        let at = direction(section, "at", cell)?;
        if cell.cables[at.cable].snap_bytes < SNAP_MIN {
            let expected = format!("a cable with a `snap` of {SNAP_MIN} or more");
            return Err(section.require("cable", &expected)?.fault(&expected));
        }
        cell.captures.push(Capture { name, at });
        Ok(())
    })
}

/// Reads every known stall of a cell whose flows are known.
pub(crate) fn stops(
    reading: &Reading<'_>,
    cell: &mut Cell,
    env: &Env,
    clamp: bool,
) -> Result<(), Error> {
    reading.each_repetition("stop", "[[stop]]", STOP, env, |section| {
        let stop = stop(section, cell, clamp)?;
        cell.stops.push(stop);
        Ok(())
    })
}

fn stop(section: &Section<'_, '_>, cell: &Cell, clamp: bool) -> Result<KnownStop, Error> {
    let flows = cell.flows.iter().map(|flow| flow.name.as_str());
    let flow = reference(section, "flow", "flow", flows)?;
    if cell.flows[flow].kind.protocol() != "tcp" {
        let expected = "a tcp flow";
        return Err(section.require("flow", expected)?.fault(expected));
    }
    let expected = "a cause of docs/use/stalls.md, or \"none\"";
    let cause = required(section, "cause", section.text("cause")?, expected)?;
    let sides = ["sender", "receiver", "network"];
    let side = match section.get("side") {
        None if cause == "none" => None,
        _ => {
            let side = reference(section, "side", "side", sides.into_iter())?;
            Some([StopSide::Sender, StopSide::Receiver, StopSide::Network][side])
        }
    };
    let (from_ns, to_ns) = span(section, "from", "to", cell.duration_ns, clamp)?;
    Ok(KnownStop {
        flow,
        cause,
        side,
        from_ns,
        to_ns,
        place: section.table.place(),
    })
}
