// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `[[freeze]]`: a time in which a program gets no CPU, as if it were busy with
//! something else: a sender has nothing to send, a receiver does not read.

use crate::expr::Env;
use crate::flow_kind::FlowKind;
use crate::model::{Cell, Freeze, Program};
use crate::reader::Section;
use crate::tables::{Reading, host, required, span};
use toml_reader::Error;

pub(crate) const FREEZE: &[&str] = &["host", "program", "from", "to", "when", "each"];

const PROGRAM: &str = "\"sender\" or \"receiver\"";

/// Reads every freeze of a cell whose flows are known.
pub(crate) fn read(
    reading: &Reading<'_>,
    cell: &mut Cell,
    env: &Env,
    clamp: bool,
) -> Result<(), Error> {
    reading.each_repetition("freeze", "[[freeze]]", FREEZE, env, |section| {
        let freeze = freeze(section, cell, clamp)?;
        cell.freezes.push(freeze);
        Ok(())
    })
}

fn freeze(section: &Section<'_, '_>, cell: &Cell, clamp: bool) -> Result<Freeze, Error> {
    let host = host(section, "host", cell)?;
    let program = match required(section, "program", section.text("program")?, PROGRAM)?.as_str() {
        "sender" => Program::Sender,
        "receiver" => Program::Receiver,
        _ => return Err(section.require("program", PROGRAM)?.fault(PROGRAM)),
    };
    let runs = cell.flows.iter().any(|flow| {
        let at = match program {
            Program::Sender => flow.from,
            Program::Receiver => flow.to,
        };
        at == host && !matches!(flow.kind, FlowKind::Pktgen { .. })
    });
    if !runs {
        let expected = "a program of a flow at this host";
        return Err(section.require("program", expected)?.fault(expected));
    }
    let (from_ns, to_ns) = span(section, "from", "to", cell.duration_ns, clamp)?;
    let overlaps = |other: &Freeze| {
        (other.host, other.program) == (host, program)
            && other.from_ns <= to_ns
            && from_ns <= other.to_ns
    };
    if cell.freezes.iter().any(overlaps) {
        let expected = "a time apart from the program's other freezes";
        return Err(section.require("from", expected)?.fault(expected));
    }
    Ok(Freeze {
        host,
        program,
        from_ns,
        to_ns,
    })
}
