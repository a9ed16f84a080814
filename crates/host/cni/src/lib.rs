// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer-cni`, a plugin for container networks (CNI): behind that of a network in a list it
//! paces what a pod sends and receives (docs/use/pods.md). What a pod sends is paced on the
//! pod's own device, what it receives on the host's end of a veth, each by what [`pacing`] makes as
//! `pspacer apply` would.

#![forbid(unsafe_code)]

pub mod budget;
pub mod claims;
mod commands;
pub mod config;
pub mod ends;
pub mod environment;
pub mod error;
pub mod names;
mod netns;
mod pacing;
pub mod previous;
pub mod record;
pub mod repair;
mod set;

use std::io::{Read, Write};

use config::{VERSIONS, version_of};
use environment::Command;
use error::{DECODING_FAILURE, Error, IO_FAILURE};
use serde_json::{Value, json};

/// Longest configuration.
const INPUT_BYTES: u64 = 16 << 20;

/// Where a call reads and writes.
pub struct Io<'a> {
    /// Standard input: the configuration.
    pub input: &'a mut dyn Read,
    /// Standard output: the result, or an error.
    pub out: &'a mut dyn Write,
    /// Standard error: what a person should know.
    pub log: &'a mut dyn Write,
}

/// Answers a runtime's call, or a person's with arguments. Returns whether all is well.
pub fn run(
    args: &[String],
    variable: &mut dyn FnMut(&str) -> Option<String>,
    io: &mut Io<'_>,
) -> bool {
    if !args.is_empty() {
        return match set::run(args, io.out) {
            Ok(()) => true,
            Err(error) => {
                // Nobody is left to be told that it cannot be told.
                let _ = writeln!(io.log, "pspacer-cni: {error:#}");
                false
            }
        };
    }
    let mut input = Vec::new();
    let read = (&mut *io.input)
        .take(INPUT_BYTES + 1)
        .read_to_end(&mut input);
    let version = version_of(&input);
    let version = version.as_deref().unwrap_or("1.1.0");
    let answer = match read {
        Err(error) => Err(Error::new(IO_FAILURE, format!("standard input: {error}"))),
        Ok(bytes) if bytes as u64 > INPUT_BYTES => {
            let msg = format!("standard input is longer than {INPUT_BYTES} bytes");
            Err(Error::new(DECODING_FAILURE, msg))
        }
        Ok(_) => answer(&input, version, variable, io.log),
    };
    let is_well = answer.is_ok();
    let answer = answer.unwrap_or_else(|error| Some(error.json(version)));
    let is_said = answer.is_none_or(|answer| writeln!(io.out, "{answer}").is_ok());
    is_well && is_said
}

fn answer(
    input: &[u8],
    version: &str,
    variable: &mut dyn FnMut(&str) -> Option<String>,
    log: &mut dyn Write,
) -> Result<Option<Value>, Error> {
    match Command::read(variable)? {
        Command::Version => Ok(Some(
            json!({ "cniVersion": version, "supportedVersions": VERSIONS }),
        )),
        Command::Add => commands::add(input, variable, log).map(Some),
        Command::Check => commands::check(input, variable).map(|()| None),
        Command::Del => commands::del(input, variable).map(|()| None),
        Command::Gc => commands::gc(input).map(|()| None),
        Command::Status => commands::status(input).map(|()| None),
    }
}
