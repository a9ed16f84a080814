// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes to standard output and standard error. A failure to write is an error and not a panic; if
//! the reader of standard output has gone, the command ends quietly.

use std::io::{self, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

use crate::terminal;

/// Exit status after the reader has gone, as a shell reports a program that SIGPIPE ended.
pub const CLOSED: u8 = 141;

/// Whether the reader of standard output has gone.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Standard output whose errors name it.
pub struct Out(StdoutLock<'static>);

/// Locks standard output for the calling thread.
pub fn out() -> Out {
    Out(io::stdout().lock())
}

/// Writes text to standard output.
pub fn print(text: &str) -> Result<()> {
    Ok(out().write_all(text.as_bytes())?)
}

pub fn flush() -> Result<()> {
    Ok(out().flush()?)
}

/// Returns whether writing failed because the reader has gone.
pub fn is_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}

/// Writes a line about the progress to standard error, unless --quiet was given. Errors are
/// ignored, because nothing depends on the line being read.
pub fn note(text: &str) {
    if !terminal::is_quiet() {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

/// Writes an error to standard error. Each cause is written once, though several layers may report
/// it.
pub fn error(error: &anyhow::Error) {
    let _ = writeln!(io::stderr().lock(), "pspacer: {}", sentence(error));
}

/// Joins the error and its causes, without those already reported.
fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.ends_with(&cause) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause);
    }
    text
}

impl Out {
    fn standard_output_error(error: io::Error) -> io::Error {
        if error.kind() == io::ErrorKind::BrokenPipe {
            IS_CLOSED.store(true, Ordering::Relaxed);
        }
        // The caller of the writer tries again after an interruption.
        if error.kind() == io::ErrorKind::Interrupted {
            return error;
        }
        io::Error::new(
            error.kind(),
            format!("cannot write to standard output: {error}"),
        )
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(Self::standard_output_error)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(Self::standard_output_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_reported_once() {
        let gone = || anyhow::Error::from(io::Error::from(io::ErrorKind::NotFound));
        let layers = gone().context("a.pcap: entity not found").context("here");
        assert_eq!(sentence(&layers), "here: a.pcap: entity not found");
        let other = gone().context("a.pcap").context("here");
        assert_eq!(sentence(&other), "here: a.pcap: entity not found");
    }
}
