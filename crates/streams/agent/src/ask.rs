// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks a manager for a node's duty over and over: each question waits for the next change.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use linux_io::clock::boottime_ns;
use manager_proto::client::{Client, ClientError};
use manager_proto::enforce::NodeDuty;

use crate::known::Report;

/// Wait after the first question without an answer, unless the longest time without one is shorter.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Longest wait between two questions to a manager that does not answer.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// What a manager has answered.
#[derive(Debug)]
pub struct Heard {
    /// A time at which the answer was true, CLOCK_BOOTTIME: not after the manager made it, and before that
    /// by no more than its way took.
    pub asked_ns: u64,
    pub answer: Result<NodeDuty, ClientError>,
}

/// Returns how long to wait until a manager is asked again: twice as long after each question without
/// an answer, up to a bound.
fn next_wait(before: Duration, poll: Duration, has_answered: bool) -> Duration {
    if has_answered {
        Duration::ZERO
    } else if before.is_zero() {
        poll.min(FIRST_WAIT)
    } else {
        before.saturating_mul(2).min(LONGEST_WAIT)
    }
}

/// Asks a manager until `hear` returns false: at first for what is, then for what is new, and for what is
/// after `poll` without anything new. After each answer it waits for `next`.
pub fn ask(
    client: &Client,
    node: &str,
    poll: Duration,
    next: &Receiver<()>,
    mut hear: impl FnMut(io::Result<Heard>) -> bool,
) {
    let poll_ns = u64::try_from(poll.as_nanos()).unwrap_or(u64::MAX);
    let mut known: Option<NodeDuty> = None;
    let mut wait = Duration::ZERO;
    loop {
        let heard = question(client, node, known.as_ref(), poll_ns);
        let answer = heard.as_ref().ok().map(|heard| &heard.answer);
        // The next question needs no more of it.
        known = answer.and_then(|of| of.as_ref().ok()).map(|duty| NodeDuty {
            node: node.to_owned(),
            changes: duty.changes,
            ..NodeDuty::default()
        });
        wait = next_wait(wait, poll, known.is_some());
        if !hear(heard) || next.recv().is_err() {
            return;
        }
        if next.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

fn question(
    client: &Client,
    node: &str,
    known: Option<&NodeDuty>,
    poll_ns: u64,
) -> io::Result<Heard> {
    let before_ns = boottime_ns()?;
    let answer = match known {
        Some(known) => client.changed_duty(known, poll_ns),
        None => client.duty(node),
    };
    let waited_ns = answer.as_ref().map_or(0, |duty| duty.waited_ns);
    Ok(Heard {
        // A manager cannot have waited for longer than until now.
        asked_ns: before_ns.saturating_add(waited_ns).min(boottime_ns()?),
        answer,
    })
}

/// Reports to a manager what it is due until nobody says so any more. Of several lists the newest has all.
/// `took` hears of each report that the manager took, and returns whether to go on.
pub fn report(
    client: &Client,
    node: &str,
    due: &Receiver<Vec<Report>>,
    mut took: impl FnMut(Report) -> bool,
) {
    while let Ok(mut reports) = due.recv() {
        while let Ok(newer) = due.try_recv() {
            reports = newer;
        }
        for report in reports {
            // One that is not taken is due again after the next answer.
            let answer = client.report(&report.id, node, report.in_force);
            if answer.is_ok() && !took(report) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_back_off() {
        let ms = Duration::from_millis;
        for (poll, expected) in [
            (ms(10_000), [1000, 2000, 4000, 8000, 10_000, 10_000]),
            (ms(200), [200, 400, 800, 1600, 3200, 6400]),
        ] {
            let mut wait = Duration::ZERO;
            for expected in expected {
                wait = next_wait(wait, poll, false);
                assert_eq!(wait, ms(expected));
            }
            assert_eq!(next_wait(wait, poll, true), Duration::ZERO);
        }
    }
}
