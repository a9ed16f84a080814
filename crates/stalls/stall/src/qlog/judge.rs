// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows a QUIC connection through its qlog, and judges the pauses in which nothing moved: no
//! new data was sent, none was acknowledged and none was received.

use std::collections::{BTreeSet, HashSet};

use units::display::count;
use units::terse::ms;

use super::connection::{QuicConnection, Vantage};
use super::event::{Event, Frame, Packet, What};
use super::parse::Head;
use crate::analysis::{Stall, StallKind};
use crate::cause::{Cause, Confidence};
use crate::direction::Direction;
use crate::options::Options;
use crate::verdict::sum_up;

/// Sent packets that are remembered until they are acknowledged or lost.
const OUTSTANDING_MOST: usize = 1 << 18;
/// Streams that are remembered of each direction.
const STREAMS_MOST: usize = 1 << 16;
/// Stalls that are kept.
const STALLS_MOST: usize = 1000;
/// Events that are named for a stall.
const EVIDENCE_MOST: usize = 16;
/// Probe timeouts from which on the path, and not the loss of a tail, is the cause.
const SILENT_EXPIRIES: u64 = 3;
/// Round trips that a pause must exceed to be a stall.
const ROUND_TRIPS: u64 = 2;

/// Packet number space and packet number.
type Key = (u8, u64);

/// What has happened since something moved last.
#[derive(Debug, Default)]
struct Pause {
    begin_ns: u64,
    evidence: Vec<u64>,
    /// The oldest packet that was outstanding.
    oldest: Option<Key>,
    /// Expiries of the timer, probe timeouts by their count, and whether there were probes: a log
    /// may have any of the three.
    timers: u64,
    timeouts: u64,
    has_probe: bool,
    losses: u64,
    /// Whether credit was missing, at this end or at the other.
    was_blocked: bool,
    peer_was_blocked: bool,
    /// When credit came or was given.
    credit_ns: Option<u64>,
}

impl Pause {
    /// Returns the number of probe timeouts.
    fn expiries(&self) -> u64 {
        self.timers.max(self.timeouts).max(self.has_probe.into())
    }
}

/// How a pause ended.
enum End {
    /// Data was sent: on a stream that had carried data, on one with a request, or neither.
    Sent { goes_on: bool, answers: bool },
    /// A packet was acknowledged; whether the pause's oldest was among them.
    Acknowledged { oldest: bool },
    /// Data was received: on a stream that had carried data, the first on one that this end has
    /// sent on, or neither.
    Received { goes_on: bool, is_answer: bool },
    /// The log is over.
    Over,
}

/// A cause and what speaks for it.
struct Judgement {
    cause: Cause,
    confidence: Confidence,
    kind: StallKind,
    /// Whether the data is that of the other end.
    is_peers: bool,
    explanation: String,
}

/// A connection that is being read.
pub(super) struct Judge {
    min_stall_ns: Option<u64>,
    of: QuicConnection,
    last_ns: u64,
    last_event: u64,
    outstanding: BTreeSet<Key>,
    sent_on: HashSet<u64>,
    received_on: HashSet<u64>,
    blocked: bool,
    peer_blocked: bool,
    is_application_limited: bool,
    has_frames: bool,
    cwnd_bytes: Option<u64>,
    in_flight_bytes: Option<u64>,
    dropped: u64,
    pause: Pause,
    is_begun: bool,
}

impl Judge {
    pub(super) fn new(min_stall_ns: Option<u64>) -> Self {
        Self {
            min_stall_ns,
            of: QuicConnection::default(),
            last_ns: 0,
            last_event: 0,
            outstanding: BTreeSet::new(),
            sent_on: HashSet::new(),
            received_on: HashSet::new(),
            blocked: false,
            peer_blocked: false,
            is_application_limited: false,
            has_frames: false,
            cwnd_bytes: None,
            in_flight_bytes: None,
            dropped: 0,
            pause: Pause::default(),
            is_begun: false,
        }
    }

    pub(super) fn event(&mut self, event: Event) {
        self.of.events += 1;
        let (now, number) = (event.time_ns, event.number);
        self.last_ns = now;
        self.last_event = number;
        match event.what {
            What::Sent(packet) => self.sent(now, number, &packet),
            What::Received(packet) => self.received(now, number, &packet),
            What::Lost(packet) => {
                self.of.packets_lost += 1;
                self.pause.losses += 1;
                self.note(number);
                if let Some(lost) = packet.number {
                    self.outstanding.remove(&(packet.space, lost));
                }
            }
            What::TimerExpired => {
                self.pause.timers += 1;
                self.note(number);
            }
            What::Metrics {
                smoothed_rtt_ns,
                cwnd_bytes,
                in_flight_bytes,
                pto_count,
            } => {
                self.of.smoothed_rtt_ns = smoothed_rtt_ns.or(self.of.smoothed_rtt_ns);
                self.cwnd_bytes = cwnd_bytes.or(self.cwnd_bytes);
                self.in_flight_bytes = in_flight_bytes.or(self.in_flight_bytes);
                self.pause.timeouts = self.pause.timeouts.max(pto_count.unwrap_or(0));
            }
            What::ApplicationLimited(is_limited) => self.is_application_limited = is_limited,
            What::Other => {}
        }
    }

    fn note(&mut self, event: u64) {
        if self.pause.evidence.len() < EVIDENCE_MOST {
            self.pause.evidence.push(event);
        }
    }

    fn sent(&mut self, now: u64, event: u64, packet: &Packet) {
        self.of.packets_sent += 1;
        self.has_frames |= packet.frames.is_some();
        let frames = packet.frames.as_deref();
        let all = frames.unwrap_or_default();
        let is_eliciting = frames.is_none_or(|all| {
            let is_silent = |f: &Frame| matches!(f, Frame::Ack(_) | Frame::Silent);
            !all.iter().all(is_silent)
        });
        let has_data = frames.is_none_or(|all| {
            let is_data = |f: &Frame| matches!(f, Frame::Data | Frame::Stream(..));
            all.iter().any(is_data)
        });
        if all.contains(&Frame::Blocked) {
            self.blocked = true;
            self.pause.was_blocked = true;
            self.note(event);
        }
        if all.contains(&Frame::Credit) {
            self.peer_blocked = false;
            self.pause.credit_ns = Some(now);
        }
        let is_probe = packet.is_probe || self.pause.expiries() > 0;
        if is_probe && is_eliciting {
            self.pause.has_probe = true;
            self.note(event);
        } else if has_data {
            let mut end = (false, false);
            for frame in all {
                if let Frame::Stream(id, offset, _) = frame {
                    end.0 |= self.sent_on.contains(id) || offset.is_some_and(|o| o > 0);
                    end.1 |= self.received_on.contains(id);
                }
            }
            let end = End::Sent {
                goes_on: end.0,
                answers: end.1,
            };
            self.moved(now, event, &end);
        }
        for frame in all {
            if let Frame::Stream(id, _, bytes) = frame {
                self.of.bytes_sent = self.of.bytes_sent.saturating_add(*bytes);
                if self.sent_on.len() < STREAMS_MOST {
                    self.sent_on.insert(*id);
                }
            }
        }
        // Acknowledgements of frames without data are no progress.
        if let (true, Some(number)) = (has_data || is_probe && is_eliciting, packet.number) {
            self.outstanding.insert((packet.space, number));
            if self.outstanding.len() > OUTSTANDING_MOST {
                self.outstanding.pop_first();
            }
            if has_data && !is_probe {
                self.pause.oldest = self.outstanding.first().copied();
            }
        }
    }

    fn received(&mut self, now: u64, event: u64, packet: &Packet) {
        self.of.packets_received += 1;
        self.has_frames |= packet.frames.is_some();
        let all = packet.frames.as_deref().unwrap_or_default();
        let (mut acked, mut acked_oldest) = (false, false);
        let (mut has_data, mut goes_on, mut is_answer) = (false, false, false);
        for frame in all {
            match frame {
                Frame::Ack(ranges) => {
                    for &(first, last) in ranges {
                        let space = packet.space;
                        let range = (space, first)..=(space, last);
                        let keys: Vec<Key> = self.outstanding.range(range).copied().collect();
                        for key in keys {
                            self.outstanding.remove(&key);
                            acked = true;
                            acked_oldest |= self.pause.oldest == Some(key);
                        }
                    }
                    if packet.space == 2 {
                        // What the handshake left open is no longer acknowledged.
                        self.outstanding = self.outstanding.split_off(&(2, 0));
                        if self.pause.oldest.is_some_and(|(space, _)| space < 2) {
                            self.pause.oldest = self.outstanding.first().copied();
                        }
                    }
                }
                Frame::Stream(id, offset, bytes) => {
                    has_data = true;
                    goes_on |= self.received_on.contains(id) || offset.is_some_and(|o| o > 0);
                    is_answer |= self.sent_on.contains(id);
                    self.of.bytes_received = self.of.bytes_received.saturating_add(*bytes);
                    if self.received_on.len() < STREAMS_MOST {
                        self.received_on.insert(*id);
                    }
                }
                Frame::Data => has_data = true,
                Frame::Blocked => {
                    self.peer_blocked = true;
                    self.pause.peer_was_blocked = true;
                    self.note(event);
                }
                Frame::Credit => {
                    self.blocked = false;
                    self.pause.credit_ns = Some(now);
                    self.note(event);
                }
                Frame::Silent | Frame::Other => {}
            }
        }
        if acked {
            let oldest = acked_oldest;
            self.moved(now, event, &End::Acknowledged { oldest });
        } else if has_data {
            self.moved(now, event, &End::Received { goes_on, is_answer });
        }
    }

    /// Something moved: judges the pause before it, and begins the next.
    fn moved(&mut self, now: u64, event: u64, end: &End) {
        self.note(event);
        self.judge(now, end);
        self.is_begun = true;
        self.pause = Pause {
            begin_ns: now,
            evidence: vec![event],
            oldest: self.outstanding.first().copied(),
            was_blocked: self.blocked,
            peer_was_blocked: self.peer_blocked,
            ..Pause::default()
        };
    }

    fn least_ns(&self) -> u64 {
        let usual = Options::of_stalls_from(self.min_stall_ns);
        match (self.min_stall_ns, self.of.smoothed_rtt_ns) {
            (Some(least), _) => least,
            (None, Some(rtt)) => (rtt.saturating_mul(ROUND_TRIPS)).max(usual.min_stall_ns),
            (None, None) => usual.min_stall_blind_ns,
        }
    }

    fn judge(&mut self, now: u64, end: &End) {
        let duration_ns = now.saturating_sub(self.pause.begin_ns);
        if !self.is_begun || duration_ns == 0 || duration_ns < self.least_ns() {
            return;
        }
        let Some(judgement) = self.judgement(duration_ns, end) else {
            if !matches!(end, End::Over) {
                self.of.idle.note(duration_ns);
            }
            return;
        };
        if self.of.stalls.len() >= STALLS_MOST {
            self.dropped += 1;
            return;
        }
        // Which direction this is follows from the log's end.
        let direction = if judgement.is_peers {
            Direction::ToClient
        } else {
            Direction::ToServer
        };
        self.of.stalls.push(Stall {
            direction,
            start_ns: self.pause.begin_ns,
            duration_ns,
            kind: judgement.kind,
            bytes_cost: None,
            cause: judgement.cause,
            root: None,
            side: judgement.cause.side(),
            confidence: judgement.confidence,
            evidence: std::mem::take(&mut self.pause.evidence),
            count: 1,
            explanation: judgement.explanation,
            advice: judgement.cause.advice().to_owned(),
            asked: crate::predictions::Answers::default(),
            number: 0,
        });
    }

    /// Returns the cause of a pause; `None` if neither end had anything to do.
    fn judgement(&self, duration_ns: u64, end: &End) -> Option<Judgement> {
        let (pause, time) = (&self.pause, ms(duration_ns));
        let ours = |cause, confidence, explanation: String| {
            Some(Judgement {
                cause,
                confidence,
                kind: StallKind::Silence,
                is_peers: false,
                explanation,
            })
        };
        // Credit that came early in the pause does not explain the rest of it.
        let waited_ns = |at: u64| at.saturating_sub(pause.begin_ns);
        let is_credits = pause
            .credit_ns
            .is_none_or(|at| waited_ns(at) > duration_ns / 2);
        if pause.was_blocked && is_credits && pause.expiries() == 0 {
            return ours(
                Cause::ReceiverWindowClosed,
                Confidence::Medium,
                format!("This end had data and no credit for {time}: it sent blocked frames."),
            );
        }
        if pause.peer_was_blocked && is_credits {
            let explanation = format!(
                "The other end had data and no credit from this one for {time}: it sent blocked \
                 frames."
            );
            let (cause, confidence) = (Cause::ReceiverWindowClosed, Confidence::Medium);
            return ours(cause, confidence, explanation).map(peers);
        }
        if pause.oldest.is_some() {
            return self.outstanding_data(&time, end);
        }
        match end {
            End::Sent { goes_on: true, .. } => {
                let confidence = if self.is_application_limited {
                    Confidence::Medium
                } else {
                    Confidence::Low
                };
                let explanation = format!(
                    "All that was sent was acknowledged, and a stream went on {time} later: its \
                     application had given nothing."
                );
                ours(Cause::Application, confidence, explanation)
            }
            End::Sent { answers: true, .. } => {
                let explanation = format!("A request was answered {time} after it had come.");
                ours(Cause::ResponseTime, Confidence::Medium, explanation).map(wait)
            }
            End::Received {
                is_answer: true,
                goes_on: false,
            } => {
                let explanation = format!(
                    "The request was acknowledged, and the first of the answer came {time} later."
                );
                let found = ours(Cause::ResponseTime, Confidence::Low, explanation);
                found.map(wait).map(peers)
            }
            End::Received { goes_on: true, .. } => {
                let explanation = format!(
                    "A stream that had begun brought nothing for {time}; why, only a qlog of its \
                     sender shows."
                );
                ours(Cause::Unknown, Confidence::Low, explanation).map(peers)
            }
            _ => None,
        }
    }

    /// Judges a pause that began while packets were outstanding.
    fn outstanding_data(&self, time: &str, end: &End) -> Option<Judgement> {
        let expiries = self.pause.expiries();
        let expired = match expiries {
            0 => "no probe timeout is logged".to_owned(),
            1 => "one probe timeout expired".to_owned(),
            n => format!("{} probe timeouts expired", count(n)),
        };
        let (cause, confidence, what) = match (end, expiries) {
            (End::Over, 0) => return None,
            (End::Over, _) => (
                Cause::SilentPath,
                Confidence::Medium,
                "nothing came any more until the log's end",
            ),
            (End::Acknowledged { oldest: true }, _) => (
                Cause::DelaySpike,
                Confidence::Medium,
                "then what had been sent before was acknowledged: it was late and not lost",
            ),
            (End::Acknowledged { oldest: false }, SILENT_EXPIRIES..) => (
                Cause::SilentPath,
                Confidence::Medium,
                "and all that was sent meanwhile was lost",
            ),
            (End::Acknowledged { oldest: false }, 2) => (
                Cause::RtoTail,
                Confidence::Medium,
                "and the second probe found out that the last packets were lost",
            ),
            (End::Acknowledged { oldest: false }, 1) => (
                Cause::TailLossProbe,
                Confidence::Medium,
                "and the probe found out that the last packets were lost",
            ),
            (End::Acknowledged { oldest: false }, 0) => (
                Cause::RtoOther,
                Confidence::Low,
                "and later packets were acknowledged first",
            ),
            (End::Sent { .. }, 0) if self.has_room() => (
                Cause::Application,
                Confidence::Low,
                "and the congestion window had room: the application had given nothing",
            ),
            _ => (
                Cause::Unknown,
                Confidence::Low,
                "and the log does not show what was waited for",
            ),
        };
        let losses = match self.pause.losses {
            0 => String::new(),
            1 => "; one packet was taken for lost".to_owned(),
            n => format!("; {} packets were taken for lost", count(n)),
        };
        Some(Judgement {
            cause,
            confidence,
            kind: StallKind::Silence,
            is_peers: false,
            explanation: format!("Packets were outstanding for {time}: {expired}, {what}{losses}."),
        })
    }

    /// Whether more could have been sent.
    fn has_room(&self) -> bool {
        let flight = self.in_flight_bytes.zip(self.cwnd_bytes);
        self.is_application_limited || flight.is_some_and(|(flight, cwnd)| flight < cwnd / 2)
    }

    /// Ends the connection and returns its results.
    pub(super) fn finish(mut self, head: &Head) -> QuicConnection {
        self.note(self.last_event);
        self.judge(self.last_ns, &End::Over);
        let mut of = self.of;
        of.name.clone_from(&head.name);
        of.vantage = head.vantage;
        of.duration_ns = self.last_ns;
        if head.vantage == Vantage::Server {
            for stall in &mut of.stalls {
                stall.direction = stall.direction.opposite();
            }
        }
        if !matches!(head.vantage, Vantage::Client | Vantage::Server) {
            of.notes.push(
                "the log does not say that its end is the client or the server; it is taken for \
                 the client"
                    .to_owned(),
            );
        }
        if !self.has_frames {
            let what = "frames are not logged: acknowledgements and credit are not seen";
            of.notes.push(what.to_owned());
        }
        if self.dropped > 0 {
            let dropped = self.dropped;
            of.notes
                .push(format!("{dropped} more stalls were left out"));
        }
        let packets = |n: u64, what: &str| match n {
            1 => format!("1 packet {what}"),
            n => format!("{} packets {what}", count(n)),
        };
        of.verdict = format!(
            "{}, {}, {}{}.",
            packets(of.packets_sent, "sent"),
            packets(of.packets_received, "received"),
            packets(of.packets_lost, "lost"),
            sum_up(of.stalls.iter())
        );
        of
    }
}

/// The data that stalled is that of the other end.
fn peers(judgement: Judgement) -> Judgement {
    Judgement {
        is_peers: true,
        ..judgement
    }
}

/// One end was to act.
fn wait(judgement: Judgement) -> Judgement {
    Judgement {
        kind: StallKind::Wait,
        ..judgement
    }
}
