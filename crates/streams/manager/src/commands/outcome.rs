// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the subcommands print, how they end, and the words that their options share.

use std::fs::File;
use std::io::Read;

use anyhow::Context;

/// Exit status of a request that the manager cannot grant.
pub const REFUSED: u8 = 3;
/// Exit status of a request that is not valid.
const USAGE: u8 = 2;

/// Heading of the options that say with whom to talk, and how.
pub const CONNECTION: &str = "Connection";
/// Heading of the options that describe a stream.
pub const STREAM: &str = "Stream";
/// Heading of the options that control how the command runs.
pub const RUN: &str = "Run";
/// Heading of the options that choose what is written.
pub const OUTPUT: &str = "Output";

/// What a subcommand prints to standard output, and its exit status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub text: String,
    pub status: u8,
}

/// A request that is not valid.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Returns the exit status of an error.
pub fn status_of(error: &anyhow::Error) -> u8 {
    if error.is::<Usage>() { USAGE } else { 1 }
}

/// Parses a time above 0, ns.
pub fn some_time(text: &str) -> Result<u64, String> {
    let known = units::parse::time_ns(text).filter(|ns| *ns > 0);
    known.ok_or_else(|| "expected a time above 0, such as 10ms or 1s".to_owned())
}

/// Returns bytes that nobody else chooses.
pub fn random<const COUNT: usize>() -> anyhow::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    let source = "/dev/urandom";
    let mut file = File::open(source).context(source)?;
    file.read_exact(&mut bytes).context(source)?;
    Ok(bytes)
}

/// Returns a time in a person's form.
pub fn time(ns: u64) -> String {
    units::display::time(ns as f64 / units::time::NS_PER_S as f64)
}
