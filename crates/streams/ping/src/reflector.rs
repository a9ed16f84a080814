// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides which datagrams a reflector answers.
//!
//! A reflector answers only probes, so that two reflectors never answer each other. An answer is as
//! long as its probe, and the rate of answers is limited: a probe from a forged source address does
//! no more harm than the forger could do directly.

use serde::Serialize;
use units::time::NS_PER_S;

use crate::packet::{Header, Kind};

/// Counts of received datagrams, by what the reflector did with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reflected {
    pub answered: u64,
    /// Datagrams that are no probes: those of other programs, damaged probes, answers.
    pub invalid: u64,
    /// Probes not answered, because the rate limit was reached.
    pub over_rate: u64,
}

/// A reflector: a token bucket and counters.
#[derive(Clone, Debug)]
pub struct Reflector {
    rate_pps: u64,
    /// Token bucket: answers that may be given now, each worth a second divided by `rate_pps`.
    tokens_ns: u64,
    last_ns: u64,
    counts: Reflected,
}

impl Reflector {
    /// Returns a reflector that answers at most `rate_pps` probes a second, and as many in a burst.
    pub fn new(rate_pps: u64) -> Self {
        Self {
            rate_pps,
            tokens_ns: NS_PER_S,
            last_ns: 0,
            counts: Reflected::default(),
        }
    }

    /// Turns a datagram that was received at `received_ns` (CLOCK_TAI) into its answer, in place.
    /// Returns `false` if it gets no answer. `now_ns` is the time of any clock that does not go
    /// back. O(1).
    pub fn answer(&mut self, datagram: &mut [u8], received_ns: u64, now_ns: u64) -> bool {
        let header = match Header::read(datagram) {
            Ok(header) if header.kind == Kind::Probe => header,
            _ => {
                self.counts.invalid += 1;
                return false;
            }
        };
        if !self.take(now_ns) {
            self.counts.over_rate += 1;
            return false;
        }
        let answer = Header {
            kind: Kind::Answer,
            received_ns,
            ..header
        };
        self.counts.answered += 1;
        answer.write(datagram).is_ok()
    }

    /// Returns the counts of all datagrams.
    pub fn counts(&self) -> Reflected {
        self.counts
    }

    fn take(&mut self, now_ns: u64) -> bool {
        let passed_ns = now_ns.saturating_sub(self.last_ns);
        self.last_ns = self.last_ns.max(now_ns);
        self.tokens_ns = self.tokens_ns.saturating_add(passed_ns).min(NS_PER_S);
        // With a rate of 0 an answer costs more than the bucket ever holds.
        let cost_ns = NS_PER_S.checked_div(self.rate_pps).unwrap_or(u64::MAX);
        match self.tokens_ns.checked_sub(cost_ns) {
            Some(left) => {
                self.tokens_ns = left;
                true
            }
            None => false,
        }
    }
}

/// Writes the time at which an answer leaves into its header.
pub fn timestamp(answer: &mut [u8], reflected_ns: u64) {
    if let Ok(header) = Header::read(answer) {
        let timestamped = Header {
            reflected_ns,
            ..header
        };
        // The header fits, because it was read from the same bytes.
        let _ = timestamped.write(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe() -> [u8; 100] {
        let mut bytes = [0; 100];
        let header = Header {
            kind: Kind::Probe,
            session: 1,
            sequence: 2,
            sent_ns: 3,
            received_ns: 0,
            reflected_ns: 0,
        };
        header.write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_probe_is_answered_in_place() {
        let mut reflector = Reflector::new(10);
        let mut bytes = probe();
        assert!(reflector.answer(&mut bytes, 50, 0));
        timestamp(&mut bytes, 60);
        let answer = Header::read(&bytes).unwrap();
        assert_eq!((answer.kind, answer.sequence), (Kind::Answer, 2));
        assert_eq!(
            (answer.sent_ns, answer.received_ns, answer.reflected_ns),
            (3, 50, 60)
        );
        // The reflector does not answer an answer.
        assert!(!reflector.answer(&mut bytes, 70, 0));
        assert_eq!(reflector.counts().invalid, 1);
    }

    #[test]
    fn answers_stay_below_the_rate() {
        let mut reflector = Reflector::new(10);
        let mut answers = |now_ns| {
            (0..100)
                .filter(|_| reflector.answer(&mut probe(), 0, now_ns))
                .count()
        };
        assert_eq!(answers(0), 10);
        assert_eq!(answers(NS_PER_S / 10), 1);
        assert_eq!(answers(5 * NS_PER_S), 10);
        // A clock that goes back adds nothing to the allowance.
        assert_eq!(answers(NS_PER_S), 0);
        assert_eq!(reflector.counts().over_rate, 400 - 21);
        assert!(!Reflector::new(0).answer(&mut probe(), 0, 0));
    }
}
