// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds times in which data moved, but one limit held the sender up. The sender's kernel
//! counts what it waits for.

use stall::predictions::Answers;
use stall::{Cause, Confidence};
use units::terse::ms;

use crate::judge::Finding;
use crate::records::{CaState, Reading};

const MS: u64 = 1_000_000;

/// Length of an interval that is judged: so many round trips, and at least so long.
const ROUNDS: u64 = 4;
const INTERVAL_NS: u64 = 100 * MS;
/// Length from which a limit other than the repair of losses is a phase.
const LIMITED_ROUNDS: u64 = 10;
const LIMITED_NS: u64 = 500 * MS;
/// Segments delivered in a round trip, at most, while the window is pinned in a repair.
const PINNED_SEGMENTS: u64 = 3;

/// What holds the sender up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Window,
    Buffer,
    Pinned,
}

/// A time in which one limit held the sender up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Phase {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// Numbers of the first and the last record of the phase.
    pub(crate) records: (u64, u64),
    pub(crate) finding: Finding,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    limit: Limit,
    from: (u64, u64),
    until: (u64, u64),
    window_bytes: u32,
    srtt_ns: u64,
}

/// Finds the phases of a connection from its acknowledgements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phases {
    /// The reading at which the present interval began, and its number.
    from: Option<(Reading, u64)>,
    only_repair: bool,
    running: Option<Running>,
    window_max_bytes: u32,
}

impl Phases {
    /// Processes an acknowledgement. Returns a phase if one is over.
    pub(crate) fn note(&mut self, reading: &Reading, number: u64) -> Option<Phase> {
        self.window_max_bytes = self.window_max_bytes.max(reading.window_bytes);
        let repairs = matches!(reading.ca_state, CaState::Recovery | CaState::Loss);
        let Some((from, first)) = self.from else {
            self.begin(reading, number, repairs);
            return None;
        };
        self.only_repair &= repairs;
        let took_ns = reading.time_ns.saturating_sub(from.time_ns);
        if took_ns < reading.srtt_ns.saturating_mul(ROUNDS).max(INTERVAL_NS) {
            return None;
        }
        let limit = self.limit(&from, reading, took_ns);
        self.begin(reading, number, repairs);
        let at = (reading.time_ns, number);
        match (&mut self.running, limit) {
            (Some(running), Some(limit)) if running.limit == limit => {
                running.until = at;
                running.window_bytes = running.window_bytes.min(reading.window_bytes);
                None
            }
            _ => {
                let over = self.over();
                self.running = limit.map(|limit| Running {
                    limit,
                    from: (from.time_ns, first),
                    until: at,
                    window_bytes: reading.window_bytes,
                    srtt_ns: reading.srtt_ns,
                });
                over
            }
        }
    }

    /// Ends the running phase because nothing moves or the connection ends. Returns it, if it
    /// is long enough.
    pub(crate) fn interrupt(&mut self) -> Option<Phase> {
        self.from = None;
        self.over()
    }

    fn begin(&mut self, reading: &Reading, number: u64, repairs: bool) {
        self.from = Some((*reading, number));
        self.only_repair = repairs;
    }

    fn limit(&self, from: &Reading, to: &Reading, took_ns: u64) -> Option<Limit> {
        let half = |from_ns: u64, to_ns: u64| to_ns.saturating_sub(from_ns) * 2 >= took_ns;
        if half(from.limits.window_ns, to.limits.window_ns) {
            return Some(Limit::Window);
        }
        if half(from.limits.buffer_ns, to.limits.buffer_ns) {
            return Some(Limit::Buffer);
        }
        let segments = u64::from(to.delivered.wrapping_sub(from.delivered));
        let pinned = segments.saturating_mul(to.srtt_ns) <= PINNED_SEGMENTS.saturating_mul(took_ns);
        (self.only_repair && pinned).then_some(Limit::Pinned)
    }

    fn over(&mut self) -> Option<Phase> {
        let running = self.running.take()?;
        let took_ns = running.until.0.saturating_sub(running.from.0);
        let (rounds, least_ns) = match running.limit {
            Limit::Pinned => (ROUNDS, INTERVAL_NS),
            Limit::Window | Limit::Buffer => (LIMITED_ROUNDS, LIMITED_NS),
        };
        if took_ns < running.srtt_ns.saturating_mul(rounds).max(least_ns) {
            return None;
        }
        Some(Phase {
            start_ns: running.from.0,
            end_ns: running.until.0,
            records: (running.from.1, running.until.1),
            finding: self.finding(&running, took_ns),
        })
    }

    fn finding(&self, running: &Running, took_ns: u64) -> Finding {
        let window = running.window_bytes;
        let took = ms(took_ns);
        let (cause, confidence, explanation) = match running.limit {
            Limit::Window if window < self.window_max_bytes / 2 => (
                Cause::ReceiverWindowClosed,
                Confidence::Medium,
                format!(
                    "the receiver's window held the sender up for most of {took}; it was down to \
                     {window} bytes, of {} before",
                    self.window_max_bytes
                ),
            ),
            Limit::Window => (
                Cause::ReceiverWindowSmall,
                Confidence::High,
                format!(
                    "the receiver's window of {window} bytes held the sender up for most of {took}"
                ),
            ),
            Limit::Buffer => (
                Cause::SendBuffer,
                Confidence::High,
                format!("the send buffer was full, and too small, for most of {took}"),
            ),
            Limit::Pinned => (
                Cause::RecoveryCwndPinned,
                Confidence::High,
                format!(
                    "losses were repaired at {PINNED_SEGMENTS} segments a round trip or fewer for \
                     {took}"
                ),
            ),
        };
        Finding {
            answers: Answers::default(),
            cause,
            confidence,
            explanation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::ack;

    /// Returns the phases of readings 10 ms apart, each made by `change`.
    fn phases(change: impl Fn(u64, &mut Reading)) -> Vec<Phase> {
        let mut phases = Phases::default();
        let mut found = Vec::new();
        for n in 0..100u64 {
            let mut reading = ack(n * 10);
            reading.delivered = u32::try_from(n).unwrap() * 20;
            change(n, &mut reading);
            found.extend(phases.note(&reading, n + 1));
        }
        found.extend(phases.interrupt());
        found
    }

    #[test]
    fn a_plain_transfer_has_no_phase() {
        assert_eq!(phases(|_, _| {}), []);
    }

    #[test]
    fn waits_that_the_kernel_counts_are_named() {
        let window = phases(|n, reading| reading.limits.window_ns = n * 8 * MS);
        assert_eq!(window.len(), 1);
        assert_eq!(window[0].finding.cause, Cause::ReceiverWindowSmall);
        assert_eq!((window[0].start_ns, window[0].end_ns), (0, 900 * MS));
        let shrunk = phases(|n, reading| {
            reading.limits.window_ns = n * 8 * MS;
            reading.window_bytes = if n < 5 { 500_000 } else { 3000 };
        });
        assert_eq!(shrunk[0].finding.cause, Cause::ReceiverWindowClosed);
        let buffer = phases(|n, reading| reading.limits.buffer_ns = n * 6 * MS);
        assert_eq!(buffer[0].finding.cause, Cause::SendBuffer);
        // The phase is too short to count.
        assert_eq!(phases(|n, r| r.limits.buffer_ns = n.min(30) * 6 * MS), []);
    }

    #[test]
    fn a_repair_at_a_small_window_is_named() {
        let pinned = |n: u64, reading: &mut Reading| {
            reading.ca_state = CaState::Recovery;
            // The connection delivers a segment each round trip of 20 ms.
            reading.delivered = u32::try_from(n / 2).unwrap();
        };
        let found = phases(pinned);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].finding.cause, Cause::RecoveryCwndPinned);
        let fast = phases(|_, reading| reading.ca_state = CaState::Recovery);
        assert_eq!(fast, []);
    }
}
