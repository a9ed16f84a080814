// SPDX-License-Identifier: MIT OR Apache-2.0
//! A timeout in processor time, because other programs may keep the machine busy.

use std::fs;
use std::time::{Duration, Instant};

/// Limit of wall-clock time, in multiples of the limit of processor time. It also ends a guest that
/// waits for the processor or for an event that never comes.
const WALL: u32 = 4;
/// Unit of the times in `/proc` (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

/// The timeout of one process.
pub(crate) struct CpuTimeout {
    process: u32,
    begin: Instant,
    limit: Duration,
}

impl CpuTimeout {
    /// Starts the timeout now. `limit` is the processor time of all threads together.
    pub fn new(process: u32, limit: Duration) -> Self {
        Self {
            process,
            begin: Instant::now(),
            limit,
        }
    }

    /// Returns whether the process used more processor time than the limit, or four limits of
    /// wall-clock time are over.
    pub fn is_over(&self) -> bool {
        let had = processor_time(self.process);
        had.is_some_and(|had| had > self.limit) || self.begin.elapsed() > self.limit * WALL
    }
}

/// Returns the processor time of all threads of a process, proc(5); `None` without such a process.
fn processor_time(process: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may contain any character; utime and stime are the 12th and 13th field behind it.
    let (_, behind) = stat.rsplit_once(')')?;
    let ticks = behind.split_whitespace().skip(11).take(2);
    ticks
        .map(|field| field.parse::<u32>().ok())
        .sum::<Option<u32>>()
        .map(|n| TICK * n)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use std::process::Command;
    use std::thread::sleep;

    use super::*;

    fn had_enough(shell: &str, limit_ms: u64, after_ms: u64) -> bool {
        let mut child = Command::new("sh").args(["-c", shell]).spawn().unwrap();
        let timeout = CpuTimeout::new(child.id(), Duration::from_millis(limit_ms));
        let begin = Instant::now();
        while !timeout.is_over() && begin.elapsed() < Duration::from_millis(after_ms) {
            sleep(Duration::from_millis(5));
        }
        let ended = timeout.is_over();
        child.kill().unwrap();
        child.wait().unwrap();
        ended
    }

    #[test]
    fn work_is_counted_and_waiting_four_times_less() {
        assert!(had_enough("while :; do :; done", 50, 60_000), "works");
        assert!(!had_enough("exec sleep 60", 5000, 100), "waits");
        assert!(
            had_enough("exec sleep 60", 20, 60_000),
            "waits for too long"
        );
    }

    #[test]
    fn a_process_that_does_not_exist_has_no_time() {
        assert_eq!(processor_time(u32::MAX), None);
        assert!(processor_time(std::process::id()).is_some());
    }
}
