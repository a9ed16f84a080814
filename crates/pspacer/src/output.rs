// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output and standard error. A failure to write is an error and no
//! panic; a reader that has gone ends the command quietly.

use std::io::{self, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

use crate::terminal;

/// As a shell reports a program that SIGPIPE ended.
pub const CLOSED: u8 = 141;

/// Nobody reads standard output any more.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Standard output, whose errors say so.
pub struct Out(StdoutLock<'static>);

/// Standard output, for the thread that asks.
pub fn out() -> Out {
    Out(io::stdout().lock())
}

/// Writes text to standard output.
///
/// # Errors
/// When it cannot be written.
pub fn print(text: &str) -> Result<()> {
    Ok(out().write_all(text.as_bytes())?)
}

/// Writes what is left of standard output.
///
/// # Errors
/// When it cannot be written.
pub fn flush() -> Result<()> {
    Ok(out().flush()?)
}

/// Whether writing failed because nobody reads any more.
pub fn is_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}

/// Writes a line about what is going on to standard error, unless --quiet was
/// given. Nothing depends on its being read.
pub fn note(text: &str) {
    if !terminal::is_quiet() {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

/// Writes an error to standard error: each cause once, though several layers
/// may tell it.
pub fn error(error: &anyhow::Error) {
    let _ = writeln!(io::stderr().lock(), "pspacer: {}", sentence(error));
}

/// The error and its causes, without those that were told already.
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
    fn told(error: io::Error) -> io::Error {
        if error.kind() == io::ErrorKind::BrokenPipe {
            IS_CLOSED.store(true, Ordering::Relaxed);
        }
        // Whoever writes tries again.
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
        self.0.write(bytes).map_err(Self::told)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(Self::told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let gone = || anyhow::Error::from(io::Error::from(io::ErrorKind::NotFound));
        let layers = gone().context("a.pcap: entity not found").context("here");
        assert_eq!(sentence(&layers), "here: a.pcap: entity not found");
        let other = gone().context("a.pcap").context("here");
        assert_eq!(sentence(&other), "here: a.pcap: entity not found");
    }
}
