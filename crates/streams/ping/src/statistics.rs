// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts and delays of the probes of a run.

use std::collections::VecDeque;

use serde::Serialize;

use crate::delays::{Delays, Summary};
use crate::packet::{Header, Kind};

/// Number of probes that are remembered; an answer to an older one counts as a stranger.
pub const REMEMBERED: usize = 1 << 17;

/// A sent probe. Times are those of CLOCK_TAI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its number; the numbers come in order, without gaps.
    pub sequence: u64,
    /// Time from its due time to its sending.
    pub late_ns: u64,
    /// Time at which it was handed to the kernel.
    pub sent_ns: u64,
}

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The first answer to its probe.
    Answer {
        /// Time from the sender to the reflector and back.
        round_trip_ns: u64,
        /// Time from the sender to the reflector, if both clocks agree.
        one_way_ns: Option<u64>,
    },
    /// A further answer to a probe.
    Duplicate,
    /// An answer to no probe of this run, or to one too old to be remembered.
    Stranger,
}

/// Collects the counts and delays of a run's probes.
#[derive(Debug)]
pub struct Statistics {
    session: u64,
    one_way: bool,
    /// The remembered probes, from number `first` on.
    probes: VecDeque<Probe>,
    first: u64,
    highest: Option<u64>,
    counts: Counts,
    delays: Distributions,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    /// When the program handed it over.
    handed_ns: u64,
    /// The same, or the kernel's timestamp.
    sent_ns: u64,
    by_kernel: bool,
    answered: bool,
}

#[derive(Debug, Default)]
struct Distributions {
    round_trip: Delays,
    there: Delays,
    there_with_wait: Delays,
    back: Delays,
    late: Delays,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Probes handed to the kernel.
    pub sent: u64,
    /// Probes that the kernel did not accept.
    pub unsent: u64,
    /// Probes that were answered.
    pub received: u64,
    /// Probes that were sent and not answered.
    pub lost: u64,
    /// Further answers to answered probes.
    pub duplicates: u64,
    /// Answers that came after the answer to a later probe.
    pub reordered: u64,
    /// Answers to no probe of this run.
    pub strangers: u64,
    /// Answers with a negative delay in either direction, which shows that the clocks disagree.
    pub implausible: u64,
    /// Datagrams for which this host's socket had no room: they were lost here, not on the path.
    pub overrun: u64,
    /// Round trips with timestamps of the kernel at both ends.
    pub kernel_stamped: u64,
}

/// The results of a run; as JSON, `docs/use/formats.md`, "Probes".
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Results {
    /// Counts of probes and answers.
    #[serde(flatten)]
    pub counts: Counts,
    /// Delays from the sender to the reflector and back.
    pub round_trip: Option<Summary>,
    /// Delays from the sender to the reflector.
    pub one_way: Option<Summary>,
    /// Delays from the sender's handing a probe to its kernel to the reflector: with the wait in the
    /// sender's own queues, which the kernel's timestamps of `one_way` come after.
    pub one_way_with_wait: Option<Summary>,
    /// Delays from the reflector to the sender.
    pub way_back: Option<Summary>,
    /// Error of the sender itself: how late it sent the probes.
    pub send_late: Option<Summary>,
}

impl Statistics {
    /// Starts the statistics of the run `session`. `one_way`: both hosts have one clock, or
    /// synchronized clocks, so one-way delays are measured too.
    pub fn new(session: u64, one_way: bool) -> Self {
        Self {
            session,
            one_way,
            probes: VecDeque::new(),
            first: 0,
            highest: None,
            counts: Counts::default(),
            delays: Distributions::default(),
        }
    }

    /// Records that a probe is about to be sent. The caller reports it before sending, because the
    /// answer may arrive before a later report. O(1).
    pub fn sent(&mut self, sent: Sent) {
        self.delays.late.record(sent.sequence, sent.late_ns);
        self.counts.sent += 1;
        if self.probes.len() >= REMEMBERED {
            self.probes.pop_front();
            self.first += 1;
        }
        self.probes.push_back(Probe {
            handed_ns: sent.sent_ns,
            sent_ns: sent.sent_ns,
            by_kernel: false,
            answered: false,
        });
    }

    /// Records that the kernel did not accept the probe. O(1).
    pub fn unsent(&mut self, sequence: u64) {
        if let Some(probe) = self.probe(sequence).filter(|p| !p.answered) {
            // A probe that was never sent cannot be answered.
            probe.answered = true;
            self.counts.sent -= 1;
            self.counts.unsent += 1;
        }
    }

    /// Records the kernel's timestamp of a sent probe. O(1).
    pub fn sent_timestamp(&mut self, sequence: u64, sent_ns: u64) {
        if let Some(probe) = self.probe(sequence).filter(|p| !p.answered) {
            probe.sent_ns = sent_ns;
            probe.by_kernel = true;
        }
    }

    /// Records how many datagrams the socket has had no room for so far. O(1).
    pub fn overrun(&mut self, datagrams: u64) {
        self.counts.overrun = self.counts.overrun.max(datagrams);
    }

    /// Records an answer that arrived at `received_ns`, by the kernel's timestamp or this
    /// program's. O(1).
    pub fn answer(&mut self, header: &Header, received_ns: u64, by_kernel: bool) -> Outcome {
        let ours = header.kind == Kind::Answer && header.session == self.session;
        let Some(probe) = self.probe(header.sequence).filter(|_| ours) else {
            self.counts.strangers += 1;
            return Outcome::Stranger;
        };
        if probe.answered {
            self.counts.duplicates += 1;
            return Outcome::Duplicate;
        }
        probe.answered = true;
        let (handed_ns, sent_ns) = (probe.handed_ns, probe.sent_ns);
        let by_kernel = by_kernel && probe.by_kernel;
        let sequence = header.sequence;
        self.counts.received += 1;
        self.counts.kernel_stamped += u64::from(by_kernel);
        match self.highest {
            Some(highest) if sequence < highest => self.counts.reordered += 1,
            _ => self.highest = Some(sequence),
        }
        // The difference is negative only if the clock was set back.
        let round_trip_ns = received_ns.saturating_sub(sent_ns);
        self.delays.round_trip.record(sequence, round_trip_ns);
        let one_way_ns = if self.one_way {
            self.record_directions(header, (handed_ns, sent_ns), received_ns)
        } else {
            None
        };
        Outcome::Answer {
            round_trip_ns,
            one_way_ns,
        }
    }

    /// Records the delay of each direction. Returns that to the reflector, or `None` if the clocks
    /// disagree.
    fn record_directions(
        &mut self,
        header: &Header,
        (handed_ns, sent_ns): (u64, u64),
        received_ns: u64,
    ) -> Option<u64> {
        let there_ns = header.received_ns.checked_sub(sent_ns);
        let back_ns = received_ns.checked_sub(header.reflected_ns);
        let Some((there_ns, back_ns)) = there_ns.zip(back_ns) else {
            self.counts.implausible += 1;
            return None;
        };
        self.delays.there.record(header.sequence, there_ns);
        let with_wait_ns = header.received_ns.saturating_sub(handed_ns);
        self.delays
            .there_with_wait
            .record(header.sequence, with_wait_ns);
        self.delays.back.record(header.sequence, back_ns);
        Some(there_ns)
    }

    fn probe(&mut self, sequence: u64) -> Option<&mut Probe> {
        let index = sequence.checked_sub(self.first)?;
        self.probes.get_mut(usize::try_from(index).ok()?)
    }

    /// Returns the number of probes sent and not answered so far.
    pub fn outstanding(&self) -> u64 {
        self.counts.sent - self.counts.received
    }

    /// Returns the results so far.
    pub fn results(&self) -> Results {
        Results {
            counts: Counts {
                lost: self.outstanding(),
                ..self.counts
            },
            round_trip: self.delays.round_trip.summary(),
            one_way: self.delays.there.summary(),
            one_way_with_wait: self.delays.there_with_wait.summary(),
            way_back: self.delays.back.summary(),
            send_late: self.delays.late.summary(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(probes: u64) -> Statistics {
        let mut run = Statistics::new(9, true);
        for sequence in 0..probes {
            run.sent(Sent {
                sequence,
                late_ns: sequence,
                sent_ns: 1000 * sequence,
            });
        }
        run
    }

    fn answer(sequence: u64) -> Header {
        Header {
            kind: Kind::Answer,
            session: 9,
            sequence,
            sent_ns: 0,
            received_ns: 1000 * sequence + 30,
            reflected_ns: 1000 * sequence + 40,
        }
    }

    #[test]
    fn loss_duplicates_and_order() {
        let mut run = run(5);
        for sequence in [0, 3, 1, 1] {
            run.answer(&answer(sequence), 1000 * sequence + 100, false);
        }
        let counts = run.results().counts;
        assert_eq!((counts.sent, counts.received, counts.lost), (5, 3, 2));
        assert_eq!((counts.duplicates, counts.reordered), (1, 1));
    }

    #[test]
    fn every_direction_is_measured() {
        let mut run = run(2);
        run.sent_timestamp(1, 1010);
        assert_eq!(
            run.answer(&answer(1), 1110, true),
            Outcome::Answer {
                round_trip_ns: 100,
                one_way_ns: Some(20)
            }
        );
        let results = run.results();
        assert_eq!(results.counts.kernel_stamped, 1);
        assert_eq!(results.way_back.unwrap().max_ns, 70);
        // The kernel's timestamp came 10 ns after the program's.
        assert_eq!(results.one_way_with_wait.unwrap().max_ns, 30);
        assert_eq!(results.send_late.unwrap().max_sequence, 1);
    }

    #[test]
    fn clocks_that_disagree_are_counted() {
        let mut run = run(1);
        let early = Header {
            reflected_ns: 500,
            ..answer(0)
        };
        let outcome = run.answer(&early, 100, false);
        assert_eq!(
            outcome,
            Outcome::Answer {
                round_trip_ns: 100,
                one_way_ns: None
            }
        );
        assert_eq!(run.results().counts.implausible, 1);
        assert!(run.results().one_way.is_none());
    }

    #[test]
    fn answers_of_strangers_do_not_count() {
        let mut run = run(1);
        let other = Header {
            session: 8,
            ..answer(0)
        };
        let probe = Header {
            kind: Kind::Probe,
            ..answer(0)
        };
        for header in [other, probe, answer(7)] {
            assert_eq!(run.answer(&header, 100, false), Outcome::Stranger);
        }
        run.sent(Sent {
            sequence: 1,
            late_ns: 0,
            sent_ns: 0,
        });
        run.unsent(1);
        assert_eq!(run.answer(&answer(1), 2000, false), Outcome::Duplicate);
        assert_eq!((run.results().counts.unsent, run.outstanding()), (1, 1));
    }

    #[test]
    fn memory_is_bounded() {
        let mut run = run(REMEMBERED as u64 + 10);
        assert_eq!(run.answer(&answer(9), 100_000, false), Outcome::Stranger);
        assert!(matches!(
            run.answer(&answer(10), 100_000, false),
            Outcome::Answer { .. }
        ));
        assert_eq!(run.probes.len(), REMEMBERED);
    }
}
