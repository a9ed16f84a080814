// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proves, or corrects, the cause of a stall by what both captures show.
//!
//! What held the data up is found at the first byte that the sender had not seen acknowledged:
//! which copies of it left, which arrived, when the receiver answered, and whether that answer
//! came back. Each step has a time of its own, and the longest is where the time went.

use capture::segment::Flags;
use units::terse::ms;

use super::pairing::{Fate, Fates, Sent};
use super::path::Path;
use crate::analysis::{Stall, StallKind};
use crate::cause::{Cause, Confidence, Side};

/// Most packet numbers that a sentence names.
const NAMED_MOST: usize = 8;
/// Longest time that a receiver's timer holds an acknowledgement back, ns.
const HELD_MOST_NS: i64 = 600_000_000;

/// What both captures show of a stall.
pub(super) struct Proof {
    cause: Cause,
    side: Side,
    pub(super) shows: String,
}

impl Proof {
    fn new(cause: Cause, side: Side, shows: String) -> Self {
        Self { cause, side, shows }
    }

    /// Writes the finding into the stall. In a capture that lacks packets, one that seems lost
    /// may be one of those.
    pub(super) fn apply(self, stall: &mut Stall, is_patchy: bool) {
        if self.cause != stall.cause {
            stall.advice = self.cause.advice().to_owned();
            if !self.cause.is_loss() {
                stall.root = None;
            }
        }
        (stall.cause, stall.side) = (self.cause, self.side);
        stall.confidence = if is_patchy {
            Confidence::Medium
        } else {
            Confidence::High
        };
        stall.explanation = format!("{}. Both captures: {}", stall.explanation, self.shows);
    }
}

/// Returns what both captures show of a stall; `None` if that is no more than one shows. `data`
/// is the path of the data that stalled, `back` the other one's, `start_ns` the time that the
/// stall's times count from, and `at_sender` whether the capture that it was found in is the
/// sender's.
pub(super) fn prove(
    stall: &Stall,
    start_ns: i64,
    (data, back): (&Path, &Path),
    at_sender: bool,
) -> Option<Proof> {
    let begin_ns = start_ns + i64::try_from(stall.start_ns).ok()?;
    let end_ns = begin_ns + i64::try_from(stall.duration_ns).ok()?;
    let of = Stalled {
        begin_ns,
        end_ns,
        data: &data.fates,
        back: &back.fates,
        data_least_ns: least_ns(&data.fates),
        back_least_ns: least_ns(&back.fates),
        at_sender,
    };
    match stall.kind {
        StallKind::Slow => None,
        _ if stall.cause == Cause::ConnectionSetup => of.setup(stall),
        StallKind::Wait => of.answer(stall),
        // What is lost before the receiver's capture looks like nothing to send.
        StallKind::Silence if of.has_lost_data() => of.head(stall),
        StallKind::Silence => match stall.cause {
            Cause::ReceiverWindowClosed | Cause::ZeroWindowProbe => of.window(),
            Cause::Application | Cause::WaitingForPeer => of.answer(stall),
            _ => of.head(stall),
        },
    }
}

fn least_ns(fates: &Fates) -> i64 {
    fates.delays().map(|(_, delay)| delay).min().unwrap_or(0)
}

struct Stalled<'a> {
    begin_ns: i64,
    end_ns: i64,
    data: &'a Fates,
    back: &'a Fates,
    data_least_ns: i64,
    back_least_ns: i64,
    /// Whether the stall was found in the sender's capture.
    at_sender: bool,
}

fn numbers(packets: &[&Sent]) -> String {
    let named: Vec<_> = packets
        .iter()
        .take(NAMED_MOST)
        .map(|s| s.packet.number.to_string())
        .collect();
    let more = match packets.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let noun = if packets.len() == 1 {
        "packet"
    } else {
        "packets"
    };
    format!("{noun} {}{more}", named.join(", "))
}

/// Says how long something took.
fn time(ns: i64) -> String {
    ms(u64::try_from(ns).unwrap_or(0))
}

/// Returns whether a sequence number is before another.
fn is_before(a: u32, b: u32) -> bool {
    a != b && b.wrapping_sub(a) < 1 << 31
}

fn arrived_ns(sent: &Sent) -> Option<i64> {
    match sent.fate {
        Fate::Arrived(ns) => Some(ns),
        _ => None,
    }
}

impl Stalled<'_> {
    /// Returns whether data that was sent in the stall never arrived.
    fn has_lost_data(&self) -> bool {
        let within = self.begin_ns - self.close_ns()..self.end_ns;
        let is_lost = |sent: &Sent| sent.packet.payload_bytes > 0 && sent.fate == Fate::Lost;
        let sent = self.data.sent.iter();
        !self.at_sender && sent.filter(|s| within.contains(&s.sent_ns)).any(is_lost)
    }

    /// Returns the first byte that the sender had not seen acknowledged when the stall began.
    fn first_unacknowledged(&self) -> Option<u32> {
        // Seen at the receiver the stall begins with the acknowledgement that it sent.
        let known = self.back.sent.iter().filter(|sent| {
            let seen_ns = if self.at_sender {
                arrived_ns(sent)
            } else {
                arrived_ns(sent).map(|_| sent.sent_ns)
            };
            seen_ns.is_some_and(|ns| ns <= self.begin_ns) && sent.packet.has(Flags::ACK)
        });
        known
            .map(|sent| sent.packet.ack)
            .reduce(|a, b| if is_before(a, b) { b } else { a })
    }

    /// The least way back: a capture at the receiver has the stall's begin so much earlier.
    fn close_ns(&self) -> i64 {
        self.back_least_ns.max(0)
    }

    /// Judges a silence with something under way: at the first byte that was not acknowledged.
    fn head(&self, stall: &Stall) -> Option<Proof> {
        let head = self.first_unacknowledged()?;
        let covers = |sent: &&Sent| {
            let packet = &sent.packet;
            !is_before(head, packet.seq) && is_before(head, packet.end())
        };
        let until_ns = self.end_ns;
        let copies: Vec<_> = self
            .data
            .sent
            .iter()
            .filter(|sent| sent.sent_ns <= until_ns)
            .filter(covers)
            .collect();
        let first = copies.first()?;
        match first.fate {
            Fate::Unknown => None,
            Fate::Lost => self.lost(stall, &copies),
            Fate::Arrived(at_ns) => self.arrived(stall, head, first, at_ns),
        }
    }

    /// The first copy was lost: how many more were, and what arrived behind it.
    fn lost(&self, stall: &Stall, copies: &[&Sent]) -> Option<Proof> {
        let lost: Vec<_> = copies
            .iter()
            .copied()
            .take_while(|sent| sent.fate == Fate::Lost)
            .collect();
        let head = lost.first()?;
        let is_acknowledged = |sent: &Sent| {
            sent.packet.has(Flags::ACK) && is_before(head.packet.seq, sent.packet.ack)
        };
        if lost.len() == copies.len() && self.back.sent.iter().any(is_acknowledged) {
            return None; // it arrived: the capture there missed it
        }
        let repaired = copies.get(lost.len()).and_then(|sent| arrived_ns(sent));
        let until_ns = repaired.unwrap_or(self.end_ns);
        let behind = self
            .data
            .sent
            .iter()
            .filter(|sent| is_before(head.packet.seq, sent.packet.seq))
            .filter(|sent| sent.sent_ns < self.begin_ns + self.close_ns().max(1))
            .filter(|sent| arrived_ns(sent).is_some_and(|ns| ns < until_ns))
            .count();
        let shows = format!(
            "{} left the sender and never reached the receiver, {behind} segments behind did",
            numbers(&lost)
        );
        let in_silence = self.data.sent.iter().filter(|sent| {
            (self.begin_ns..=self.end_ns).contains(&sent.sent_ns) && sent.packet.payload_bytes > 0
        });
        let is_all_lost = lost.len() >= 3 && in_silence.clone().all(|s| s.fate == Fate::Lost);
        let cause = match stall.cause {
            Cause::PmtuBlackHole | Cause::RtoStorm => stall.cause,
            Cause::SilentPath if is_all_lost => Cause::SilentPath,
            Cause::TailLossProbe if lost.len() == 1 => Cause::TailLossProbe,
            _ if lost.len() >= 2 => Cause::RtoLostRetransmission,
            Cause::RtoTail | Cause::RtoFewDupacks | Cause::RtoOther | Cause::Unknown => {
                match behind {
                    0 => Cause::RtoTail,
                    1 | 2 => Cause::RtoFewDupacks,
                    _ => Cause::RtoOther,
                }
            }
            Cause::RtoLostRetransmission if behind == 0 => Cause::RtoTail,
            kept if kept.is_loss() => kept,
            _ if behind == 0 => Cause::RtoTail,
            _ => Cause::RtoOther,
        };
        Some(Proof::new(cause, Side::Network, shows))
    }

    /// The first copy arrived: what became of the answer.
    fn arrived(&self, stall: &Stall, head: u32, first: &Sent, at_ns: i64) -> Option<Proof> {
        let answers: Vec<_> = self
            .back
            .sent
            .iter()
            .filter(|sent| sent.sent_ns >= at_ns && sent.sent_ns <= self.end_ns)
            .filter(|sent| sent.packet.has(Flags::ACK) && is_before(head, sent.packet.ack))
            .collect();
        let number = first.packet.number;
        let Some(answer) = answers.first() else {
            let is_silent = matches!(stall.cause, Cause::SilentPath | Cause::Unknown);
            let shows = format!(
                "packet {number} reached the receiver, which did not acknowledge it in the time"
            );
            return is_silent.then(|| Proof::new(stall.cause, Side::Receiver, shows));
        };
        let lost: Vec<_> = answers
            .iter()
            .copied()
            .take_while(|sent| sent.fate == Fate::Lost)
            .collect();
        if !lost.is_empty() {
            let shows = format!(
                "packet {number} reached the receiver, which acknowledged it: {} of its capture \
                 left it and never reached the sender",
                numbers(&lost)
            );
            return Some(Proof::new(Cause::AckLoss, Side::Network, shows));
        }
        let there_ns = at_ns - first.sent_ns - self.data_least_ns;
        let held_ns = answer.sent_ns - at_ns;
        let back_ns = arrived_ns(answer)? - answer.sent_ns - self.back_least_ns;
        let took_ns = self.end_ns - self.begin_ns;
        let most_ns = there_ns.max(held_ns).max(back_ns);
        if most_ns < took_ns / 2 {
            return None; // the time went elsewhere
        }
        let shows = |what: &str, ns| format!("packet {number} was not lost: {what} {}", time(ns));
        if most_ns == held_ns {
            let shows = shows("the receiver had it and acknowledged it after", held_ns);
            let cause = if held_ns <= HELD_MOST_NS {
                Cause::DelayedAck
            } else {
                Cause::Unknown // the host stood still, or did not want to
            };
            return Some(Proof::new(cause, Side::Receiver, shows));
        }
        let (what, ns) = if most_ns == there_ns {
            ("beyond its least, its way to the receiver took", there_ns)
        } else {
            ("beyond its least, the answer's way back took", back_ns)
        };
        Some(Proof::new(
            Cause::DelaySpike,
            Side::Network,
            shows(what, ns),
        ))
    }

    /// Judges a closed window: whether the receiver told that it was open again.
    fn window(&self) -> Option<Proof> {
        let head = self.first_unacknowledged()?;
        let answers = self.back.sent.iter().filter(|sent| {
            let packet = &sent.packet;
            let is_in_time =
                (self.begin_ns - self.close_ns()..=self.end_ns).contains(&sent.sent_ns);
            is_in_time && packet.has(Flags::ACK) && packet.ack == head
        });
        // From the last time on that it was closed.
        let answers: Vec<_> = answers.collect();
        let closed = answers.iter().rposition(|sent| sent.packet.window == 0);
        let updates = &answers[closed.map_or(0, |place| place + 1)..];
        let lost: Vec<_> = updates
            .iter()
            .copied()
            .take_while(|sent| sent.fate == Fate::Lost)
            .collect();
        let took_ns = self.end_ns - self.begin_ns;
        if let Some(update) = lost.first() {
            let left_ns = self.end_ns - update.sent_ns;
            let shows = format!(
                "{} of the receiver's capture opened the window {} before the end, left the \
                 receiver and never reached the sender",
                numbers(&lost),
                time(left_ns)
            );
            return (left_ns > took_ns / 2)
                .then(|| Proof::new(Cause::ZeroWindowProbe, Side::Network, shows));
        }
        let opened_ns = updates.first().map_or(self.end_ns, |sent| sent.sent_ns);
        let closed_ns = opened_ns - self.begin_ns;
        closed?;
        let shows = format!(
            "at the receiver the window stayed closed for {}",
            time(closed_ns)
        );
        (closed_ns > took_ns / 2)
            .then(|| Proof::new(Cause::ReceiverWindowClosed, Side::Receiver, shows))
    }

    /// Judges a time in which one side was to send: whether the host or the path took it.
    fn answer(&self, stall: &Stall) -> Option<Proof> {
        let took_ns = self.end_ns - self.begin_ns;
        let has_data = |sent: &&Sent| sent.packet.payload_bytes > 0;
        // What the sender sent at the end, and what it had to wait for before: the other
        // side's last data, and its own data's acknowledgement.
        let reach_ns = self.data_least_ns.max(0) + self.back_least_ns.max(0);
        let after = self.data.sent.iter().filter(has_data).find(|sent| {
            let seen_ns = arrived_ns(sent).unwrap_or(sent.sent_ns);
            sent.sent_ns > self.begin_ns - reach_ns && seen_ns >= self.end_ns - reach_ns / 2 - 1
        })?;
        let before = self.back.sent.iter().filter(|sent| {
            has_data(sent) || sent.packet.has(Flags::SYN) || stall.cause == Cause::Application
        });
        let before = before
            .filter_map(arrived_ns)
            .filter(|ns| *ns <= after.sent_ns)
            .max()?;
        let within_ns = after.sent_ns - before;
        if within_ns < took_ns / 5 * 4 {
            return None;
        }
        let shows = format!(
            "the sending host had all that it waited for and sent packet {} of its capture {} later",
            after.packet.number,
            time(within_ns)
        );
        Some(Proof::new(stall.cause, stall.side, shows))
    }

    /// Judges a connection that was not answered at once.
    fn setup(&self, stall: &Stall) -> Option<Proof> {
        // The data of a setup is the one side's, or the other's: its SYN is in either path.
        let is_syn = |sent: &&Sent, is_answer: bool| {
            sent.packet.has(Flags::SYN) && sent.packet.has(Flags::ACK) == is_answer
        };
        let in_time = |sent: &&Sent| sent.sent_ns <= self.end_ns;
        let both = [self.data, self.back];
        let of = |is_answer: bool| {
            let all = both.into_iter().flat_map(|fates| &fates.sent);
            let all = all
                .filter(move |sent| is_syn(sent, is_answer))
                .filter(in_time);
            all.collect::<Vec<_>>()
        };
        let (syns, answers) = (of(false), of(true));
        let lost = |all: &[&Sent]| -> Vec<_> {
            all.iter()
                .copied()
                .filter(|s| s.fate == Fate::Lost)
                .map(|s| s.packet.number)
                .collect()
        };
        let (lost_syns, lost_answers): (Vec<u64>, Vec<u64>) = (lost(&syns), lost(&answers));
        let found = |side, shows| Some(Proof::new(Cause::ConnectionSetup, side, shows));
        if lost_syns.is_empty() && lost_answers.is_empty() {
            let arrived = syns.iter().find_map(|sent| arrived_ns(sent))?;
            let answered = answers.first().map_or(self.end_ns, |sent| sent.sent_ns);
            let within_ns = answered - arrived;
            if within_ns < (self.end_ns - self.begin_ns) / 2 {
                return None;
            }
            let shows = format!("the SYN reached the server, which took {}", time(within_ns));
            let server_sends = stall.direction == crate::Direction::ToClient;
            let side = if server_sends {
                Side::Sender
            } else {
                Side::Receiver
            };
            return found(side, shows);
        }
        let shows = match (lost_syns.len(), lost_answers.len()) {
            (syns, 0) => format!("{syns} of the client's SYNs never reached the server"),
            (0, answers) => format!("{answers} of the server's answers never reached the client"),
            (syns, answers) => format!(
                "{syns} of the client's SYNs never reached the server, and {answers} of its \
                 answers never the client"
            ),
        };
        found(Side::Network, shows)
    }
}
