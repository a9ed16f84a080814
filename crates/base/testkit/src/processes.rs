// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that run beside a test, and what it waits for.

#![allow(clippy::panic, reason = "tests fail that way")]

use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a test waits: far longer than anything takes on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);

/// Asks again and again until there is something, and returns it.
///
/// # Panics
/// With `what` if there is nothing in two minutes.
#[track_caller]
pub fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(started.elapsed() < LIMIT, "not in {LIMIT:?}: {what}");
        sleep(POLL);
    }
}

/// A program that is killed when it is dropped.
pub struct Running(pub Child);

impl Running {
    /// Starts a program.
    ///
    /// # Panics
    /// If it does not start.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        let child = command.spawn();
        Self(child.unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_late_is_found() {
        let mut asked = 0;
        let found = until("the third time", || {
            asked += 1;
            (asked == 3).then_some("it")
        });
        assert_eq!(found, "it");
    }

    #[test]
    fn a_program_ends_with_what_holds_it() {
        let running = Running::start(Command::new("sleep").arg("1000"));
        let place = format!("/proc/{}", running.0.id());
        assert!(std::fs::exists(&place).is_ok_and(|is_there| is_there));
        drop(running);
        assert!(std::fs::exists(&place).is_ok_and(|is_there| !is_there));
    }
}
