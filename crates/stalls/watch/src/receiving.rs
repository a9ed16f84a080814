// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges the other direction: data that this host receives stalls because its application does
//! not read, until the receive buffer is full and the window closes.

use stall::predictions::Answers;
use stall::{Cause, Confidence};
use units::terse::{ms, size};

use crate::judge::Finding;
use crate::pause::threshold_ns;
use crate::records::{Moment, Reading};

/// A window that is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Closed {
    from_ns: u64,
    unread_bytes: u32,
    srtt_ns: u64,
}

/// What is known of this host's window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiving {
    closed: Option<Closed>,
}

/// A stall of received data, and when it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotRead {
    pub(crate) start_ns: u64,
    pub(crate) finding: Finding,
}

impl Receiving {
    /// Notes a reading. Returns the stall that it ends.
    pub(crate) fn note(&mut self, reading: &Reading) -> Option<NotRead> {
        let (unread_bytes, window_bytes) = reading.segment;
        match reading.moment {
            Moment::Receive if window_bytes == 0 => {
                // Nothing was taken since the last data came. When it came is not known if it
                // came before watching began.
                let known_ns = Some(reading.peer_data_ns).filter(|at_ns| *at_ns > 0);
                self.closed.get_or_insert(Closed {
                    from_ns: known_ns.unwrap_or(reading.time_ns),
                    unread_bytes,
                    srtt_ns: reading.srtt_ns,
                });
                None
            }
            Moment::Receive => self.end(reading.time_ns, "until it read"),
            Moment::End => self.end(reading.time_ns, "until the connection ended"),
            _ => None,
        }
    }

    /// Ends the stall that lasts, if one does.
    pub(crate) fn end(&mut self, now_ns: u64, until: &str) -> Option<NotRead> {
        let for_ns = self.stalled_ns(now_ns);
        let closed = self.closed.take()?;
        let explanation = format!(
            "the application on this host did not read for {}, {until}: {} waited for it, and the \
             window was closed",
            ms(for_ns?),
            size(u64::from(closed.unread_bytes)),
        );
        Some(NotRead {
            start_ns: closed.from_ns,
            finding: Finding {
                answers: Answers::default(),
                cause: Cause::ReceiverWindowClosed,
                confidence: Confidence::High,
                explanation,
            },
        })
    }

    /// Returns how long the window has been closed, if that is a stall.
    pub(crate) fn stalled_ns(&self, now_ns: u64) -> Option<u64> {
        let closed = self.closed.as_ref()?;
        let for_ns = now_ns.saturating_sub(closed.from_ns);
        (for_ns >= threshold_ns(closed.srtt_ns)).then_some(for_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::ack;

    const MS: u64 = 1_000_000;

    fn receive(at_ms: u64, data_ms: u64, segment: (u32, u32)) -> Reading {
        Reading {
            moment: Moment::Receive,
            peer_data_ns: data_ms * MS,
            segment,
            ..ack(at_ms)
        }
    }

    /// The start of the stall, in ms, and a part of its explanation.
    type Expected<'a> = Option<(u64, &'a str)>;

    #[test]
    fn windows_that_close() {
        let full = 80_000;
        let cases: [(&[Reading], Expected<'_>); 6] = [
            (
                // The second probe carries a byte.
                &[
                    receive(300, 100, (full, 0)),
                    receive(700, 300, (full, 0)),
                    receive(1100, 700, (0, 60_000)),
                ],
                Some((
                    100,
                    "did not read for 1000 ms, until it read: 80.0 kB waited",
                )),
            ),
            (
                &[receive(130, 100, (full, 0)), receive(139, 130, (0, 60_000))],
                None, // shorter than two round trips
            ),
            (
                &[receive(300, 0, (full, 0)), receive(400, 300, (0, 60_000))],
                Some((300, "did not read for 100 ms")),
            ),
            (&[receive(300, 100, (full, 0))], None),
            (&[receive(300, 100, (0, 60_000))], None),
            (
                &[
                    receive(300, 100, (full, 0)),
                    Reading {
                        moment: Moment::End,
                        ..ack(600)
                    },
                ],
                Some((100, "for 500 ms, until the connection ended")),
            ),
        ];
        for (readings, expected) in cases {
            let mut receiving = Receiving::default();
            let found: Vec<_> = readings.iter().filter_map(|r| receiving.note(r)).collect();
            let (start_ms, words) = match expected {
                Some(expected) => expected,
                None => {
                    assert_eq!(found, [], "{readings:?}");
                    continue;
                }
            };
            let [stall] = &found[..] else {
                panic!("{found:?}");
            };
            assert_eq!(stall.start_ns, start_ms * MS);
            let text = &stall.finding.explanation;
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn a_window_that_stays_closed() {
        let mut receiving = Receiving::default();
        receiving.note(&receive(300, 100, (1, 0)));
        assert_eq!(receiving.stalled_ns(139 * MS), None);
        assert_eq!(receiving.stalled_ns(400 * MS), Some(300 * MS));
        assert!(receiving.end(400 * MS, "and still does not").is_some());
        assert_eq!(receiving.end(500 * MS, ""), None);
    }
}
