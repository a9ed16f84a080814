// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs programs of the host.

use std::process::{Command, Output, Stdio};

use crate::error::Error;

/// Last lines of a failed program's output that its error contains.
const TAIL_LINES: usize = 12;

/// Runs a program to its end and returns its standard output.
pub(crate) fn output(command: &mut Command, what: &str) -> Result<String, Error> {
    let output = start(command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(failure(what, &output))
}

/// Runs a program to its end, and returns its output whether or not it failed.
pub(crate) fn start(command: &mut Command) -> Result<Output, Error> {
    command
        .stdin(Stdio::null())
        .env("LC_ALL", "C")
        .output()
        .map_err(|source| Error::Start {
            program: command.get_program().to_string_lossy().into_owned(),
            source,
        })
}

/// Returns an error with the end of the program's output.
pub(crate) fn failure(what: &str, output: &Output) -> Error {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
    Error::Command {
        what: what.to_owned(),
        detail: if tail.is_empty() {
            output.status.to_string()
        } else {
            format!("{}\n{tail}", output.status)
        },
    }
}
