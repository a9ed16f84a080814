// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `[[program]]`: a program of the guest that runs on a host beside the flows.

use toml_reader::{Error, quote};

use crate::expr::Env;
use crate::model::{Cell, HostProgram, ProgramFile};
use crate::reader::{Fill, Section};
use crate::tables::{Reading, WORD, host, is_word};

const PROGRAM: &[&str] = &[
    "host", "run", "file", "text", "ready", "start", "stop", "when", "each",
];

/// Reads every program of a cell whose hosts are known.
pub(crate) fn read(
    reading: &Reading<'_>,
    cell: &mut Cell,
    env: &Env,
    clamp: bool,
) -> Result<(), Error> {
    reading.each_repetition("program", "[[program]]", PROGRAM, env, |section| {
        let program = program(section, cell, clamp)?;
        cell.host_programs.push(program);
        Ok(())
    })
}

fn program(section: &Section<'_, '_>, cell: &Cell, clamp: bool) -> Result<HostProgram, Error> {
    let host = host(section, "host", cell)?;
    let expected =
        "a program's name and its arguments, quotes closed, such as \"pspacer router r.toml\"";
    let item = section.require("run", expected)?;
    let text = item.filled(section.env, expected)?;
    let fault = || item.fault_of(&quote(&text), expected);
    let args = shlex::split(&text).ok_or_else(fault)?;
    let is_named = args.first().is_some_and(|name| is_word(name, 31));
    if !is_named || text.contains(['\n', '\0']) {
        return Err(fault());
    }
    let (start_ns, stop_ns) = times(section, cell, clamp)?;
    Ok(HostProgram {
        host,
        args,
        file: file(section)?,
        ready: ready(section, start_ns)?,
        start_ns,
        stop_ns,
        place: item.place(),
    })
}

/// Reads when the program starts and when it is ended, if the table says so.
fn times(
    section: &Section<'_, '_>,
    cell: &Cell,
    clamp: bool,
) -> Result<(Option<u64>, Option<u64>), Error> {
    let start_ns = section.time("start")?;
    let stop_ns = section.time("stop")?;
    let end_ns = cell.duration_ns;
    let within = |at_ns: u64| if clamp { at_ns.min(end_ns) } else { at_ns };
    let stop_ns = stop_ns.map(within);
    if stop_ns.is_some_and(|at_ns| at_ns > end_ns) {
        let expected = "a time up to the cell's duration";
        return Err(section.require("stop", expected)?.fault(expected));
    }
    let last_ns = stop_ns.unwrap_or(end_ns);
    if start_ns.is_some_and(|at_ns| at_ns >= last_ns) {
        let expected = format!("a time before {last_ns} ns, where it ends");
        return Err(section.require("start", &expected)?.fault(&expected));
    }
    Ok((start_ns, stop_ns))
}

/// Reads the file that the program finds in its folder.
fn file(section: &Section<'_, '_>) -> Result<Option<ProgramFile>, Error> {
    let Some(item) = section.get("file") else {
        if let Some(text) = section.get("text") {
            return Err(text.fault("nothing without `file`, the name of the file that has it"));
        }
        return Ok(None);
    };
    let name = item.filled(section.env, WORD)?;
    if !is_word(&name, 63) {
        return Err(item.fault_of(&quote(&name), WORD));
    }
    let expected = "the text of the file";
    let text = section.require("text", expected)?;
    let text = text.filled(section.env, expected)?;
    Ok(Some(ProgramFile { name, text }))
}

/// Reads what the program prints once it is ready.
fn ready(section: &Section<'_, '_>, start_ns: Option<u64>) -> Result<Option<String>, Error> {
    let Some(item) = section.get("ready") else {
        return Ok(None);
    };
    if start_ns.is_some() {
        return Err(item.fault("nothing beside `start`: only t = 0 waits for it"));
    }
    let expected = "what the program prints in a line once it is ready";
    let text = item.filled(section.env, expected)?;
    if text.is_empty() || text.contains(char::is_control) {
        return Err(item.fault_of(&quote(&text), expected));
    }
    Ok(Some(text))
}
