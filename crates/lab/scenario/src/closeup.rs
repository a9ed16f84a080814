// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `[[closeup]]`: a span of time drawn in finer intervals than the whole cell.

use crate::expr::Env;
use crate::model::{Cell, Closeup};
use crate::reader::Section;
use crate::tables::{Names, Reading, required, span};
use toml_reader::Error;

pub(crate) const CLOSEUP: &[&str] = &["name", "from", "to", "interval", "mean", "when", "each"];

/// Most intervals; a picture cannot show more.
const INTERVALS_MAX: u64 = 100_000;

/// Reads every closeup of a cell whose duration is known.
pub(crate) fn read(
    reading: &Reading<'_>,
    cell: &mut Cell,
    env: &Env,
    clamp: bool,
) -> Result<(), Error> {
    let mut names = Names::default();
    reading.each_repetition("closeup", "[[closeup]]", CLOSEUP, env, |section| {
        let fits = |name: &str| !name.is_empty() && !name.contains(char::is_control);
        let name = names.take(section, "a name", fits)?;
        let closeup = closeup(section, cell, name, clamp)?;
        cell.closeups.push(closeup);
        Ok(())
    })
}

fn closeup(
    section: &Section<'_, '_>,
    cell: &Cell,
    name: String,
    clamp: bool,
) -> Result<Closeup, Error> {
    let (from_ns, to_ns) = span(section, "from", "to", cell.duration_ns, clamp)?;
    let expected = "a time above 0, such as \"500us\"";
    let interval_ns = required(section, "interval", section.time("interval")?, expected)?;
    let intervals = (to_ns - from_ns).checked_div(interval_ns);
    if intervals.is_none_or(|count| count > INTERVALS_MAX) {
        let expected = format!("a time with at most {INTERVALS_MAX} of it in the closeup");
        return Err(section.require("interval", &expected)?.fault(&expected));
    }
    let mean_ns = section.time("mean")?;
    if mean_ns.is_some_and(|mean_ns| mean_ns < interval_ns || mean_ns % interval_ns != 0) {
        let expected = "a multiple of `interval`";
        return Err(section.require("mean", expected)?.fault(expected));
    }
    Ok(Closeup {
        name,
        from_ns,
        to_ns,
        interval_ns,
        mean_ns,
    })
}
