// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows a QUIC connection through its qlog, and judges the pauses in which nothing moved: no
//! new data was sent, none was acknowledged and none was received.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use units::display::count;

use super::answers::answers;
use super::causes::{Context, End, Key, Pause, judgement};
use super::connection::{QuicConnection, Vantage};
use super::event::{Event, Frame, Metrics, Packet, What};
use super::parse::Head;
use super::streams::Streams;
use crate::analysis::Stall;
use crate::cause::{Cause, Confidence};
use crate::direction::Direction;
use crate::options::Options;
use crate::predictions::most;
use crate::verdict::sum_up;

/// Sent packets that are remembered until they are acknowledged or lost.
const OUTSTANDING_MOST: usize = 1 << 18;
/// Paths whose packet numbers are remembered.
const PATHS_MOST: usize = 64;
/// Stalls that are kept.
const STALLS_MOST: usize = 1000;
/// Events that are named for a stall.
const EVIDENCE_MOST: usize = 16;
/// Round trips that a pause must exceed to be a stall.
const ROUND_TRIPS: u64 = 2;
/// Least time between two occasions at which old data is sent again.
const REPEAT_NS: u64 = 10_000_000;
/// Packets that a probe timeout sends (RFC 9002, 6.2.4).
const PROBES_MOST: u64 = 2;
/// No receiver holds an acknowledgement for so long: the log states another unit.
const HELD_MOST_NS: u64 = 1_000_000_000;

/// A connection that is being read.
pub(super) struct Judge {
    min_stall_ns: Option<u64>,
    of: QuicConnection,
    last_ns: u64,
    last_event: u64,
    outstanding: BTreeSet<Key>,
    sent: Streams,
    received: Streams,
    /// How far the data of the handshake was sent, by packet number space.
    handshake_sent: [u64; 3],
    /// The highest number received of each packet number space and path.
    highest: BTreeMap<(u8, u64), u64>,
    blocked: bool,
    peer_blocked: bool,
    is_application_limited: bool,
    has_frames: bool,
    cwnd_bytes: Option<u64>,
    in_flight_bytes: Option<u64>,
    min_rtt_ns: Option<u64>,
    dropped: u64,
    pause: Pause,
    is_begun: bool,
    is_closed: bool,
    /// Whether it has packets behind those that are named initial.
    has_later: bool,
    /// Whether the log states how long acknowledgements were held in another unit.
    is_held_unknown: bool,
    /// What came since a pause of the other end's application, which a probe would look like.
    resumed: Option<Resumed>,
}

/// A pause that data of the other end has ended.
struct Resumed {
    stall: usize,
    at_ns: u64,
    packets: u64,
}

impl Judge {
    pub(super) fn new(min_stall_ns: Option<u64>) -> Self {
        Self {
            min_stall_ns,
            of: QuicConnection::default(),
            last_ns: 0,
            last_event: 0,
            outstanding: BTreeSet::new(),
            sent: Streams::default(),
            received: Streams::default(),
            handshake_sent: [0; 3],
            highest: BTreeMap::new(),
            blocked: false,
            peer_blocked: false,
            is_application_limited: false,
            has_frames: false,
            cwnd_bytes: None,
            in_flight_bytes: None,
            min_rtt_ns: None,
            dropped: 0,
            pause: Pause::default(),
            is_begun: false,
            is_closed: false,
            has_later: false,
            is_held_unknown: false,
            resumed: None,
        }
    }

    /// Whether more than the first packets of a handshake belong to it.
    pub(super) fn is_connection(&self) -> bool {
        self.has_later
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
                    self.outstanding.remove(&(packet.space, packet.path, lost));
                }
            }
            What::TimerExpired => {
                self.pause.timers += 1;
                self.note(number);
            }
            What::Metrics(metrics) => self.metrics(now, number, &metrics),
            What::Parameters {
                is_peers,
                all_bytes,
                stream_bytes,
            } => {
                let streams = if is_peers {
                    &mut self.sent
                } else {
                    &mut self.received
                };
                streams.begin(all_bytes, stream_bytes);
            }
            What::ApplicationLimited(is_limited) => self.is_application_limited = is_limited,
            What::Other => {}
        }
    }

    fn metrics(&mut self, now: u64, event: u64, metrics: &Metrics) {
        let rtt_ns = metrics.smoothed_rtt_ns;
        self.of.smoothed_rtt_ns = rtt_ns.or(self.of.smoothed_rtt_ns);
        self.min_rtt_ns = metrics.min_rtt_ns.or(self.min_rtt_ns);
        self.cwnd_bytes = metrics.cwnd_bytes.or(self.cwnd_bytes);
        self.pause.timeouts = self.pause.timeouts.max(metrics.pto_count.unwrap_or(0));
        self.is_application_limited = metrics
            .is_application_limited
            .unwrap_or(self.is_application_limited);
        let lost = metrics.lost.unwrap_or(0);
        self.of.packets_lost = self.of.packets_lost.saturating_add(lost);
        self.pause.losses = self.pause.losses.saturating_add(lost);
        let before = self.in_flight_bytes;
        self.in_flight_bytes = metrics.in_flight_bytes.or(before);
        // Where frames are not logged, this alone shows data and acknowledgements.
        if let (false, Some(bytes)) = (self.has_frames, metrics.in_flight_bytes) {
            match bytes.cmp(&before.unwrap_or(0)) {
                Ordering::Less => self.moved(
                    now,
                    event,
                    &End::Acknowledged {
                        oldest: true,
                        all: bytes == 0,
                        is_probe_lost: false,
                        held_ns: None,
                    },
                ),
                Ordering::Greater => {
                    let goes_on = self.is_begun;
                    let answers = false;
                    self.moved(now, event, &End::Sent { goes_on, answers });
                }
                Ordering::Equal => {}
            }
            self.pause.oldest = (bytes > 0).then_some((2, 0, 0));
        }
    }

    fn note(&mut self, event: u64) {
        let is_known = self.pause.evidence.last() == Some(&event);
        if !is_known && self.pause.evidence.len() < EVIDENCE_MOST {
            self.pause.evidence.push(event);
        }
    }

    fn sent(&mut self, now: u64, event: u64, packet: &Packet) {
        self.of.packets_sent += 1;
        self.has_later |= packet.space > 0;
        self.has_frames |= packet.frames.is_some();
        let frames = packet.frames.as_deref();
        let all = frames.unwrap_or_default();
        let is_eliciting = all
            .iter()
            .any(|f| !matches!(f, Frame::Ack { .. } | Frame::Silent | Frame::Close));
        let is_data = |f: &Frame| matches!(f, Frame::Data | Frame::Crypto(..) | Frame::Stream(..));
        let has_data = all.iter().any(is_data);
        let (mut is_new, mut goes_on, mut answers) = (false, false, false);
        for frame in all {
            match *frame {
                Frame::Blocked => {
                    self.blocked = true;
                    self.pause.was_blocked = true;
                    self.note(event);
                }
                Frame::Credit(id, limit) => {
                    self.peer_blocked = false;
                    self.pause.peer_was_full |= self.received.is_full();
                    self.pause.credit_ns = Some(now);
                    self.received.credit(id, limit);
                }
                Frame::Data => is_new = true,
                Frame::Crypto(offset, bytes) => {
                    let of = self.handshake_sent.get_mut(usize::from(packet.space));
                    let end = offset.map(|offset| offset.saturating_add(bytes));
                    is_new |= match (of, end) {
                        (Some(of), Some(end)) => {
                            let is_beyond = end > *of;
                            *of = end.max(*of);
                            is_beyond
                        }
                        _ => true,
                    };
                }
                Frame::Stream(id, offset, bytes) => {
                    goes_on |= self.sent.is_known(id) || offset.is_some_and(|o| o > 0);
                    answers |= self.received.is_known(id);
                    self.pause.was_full |= self.sent.is_full();
                    is_new |= self.sent.data(id, offset, bytes);
                    self.of.bytes_sent = self.of.bytes_sent.saturating_add(bytes);
                }
                _ => {}
            }
        }
        // A probe may carry new data. Where the log does not name it, its PING does, or that nothing
        // else may be sent: the congestion window is full.
        let flight = self.in_flight_bytes.zip(self.cwnd_bytes);
        let is_full = flight.is_some_and(|(flight, cwnd)| flight >= cwnd);
        if has_data && (!is_new || is_full || all.contains(&Frame::Ping)) {
            self.repeated(now, event);
        }
        let is_probe = packet.is_probe || self.pause.expiries() > 0;
        if is_probe && is_eliciting {
            self.pause.has_probe = true;
            self.note(event);
        } else if is_new {
            self.moved(now, event, &End::Sent { goes_on, answers });
        }
        // Acknowledgements of frames without data are no progress.
        if let (true, Some(number)) = (has_data || is_probe && is_eliciting, packet.number) {
            let key = (packet.space, packet.path, number);
            self.outstanding.insert(key);
            if self.outstanding.len() > OUTSTANDING_MOST {
                self.outstanding.pop_first();
            }
            if has_data && !is_probe {
                self.pause.oldest = self.outstanding.first().copied();
                self.pause.newest = Some(key);
            }
        }
        if all.contains(&Frame::Close) {
            self.close(now, event);
        }
    }

    /// Old data is sent again, or a probe, although nothing was acknowledged: a timer has expired.
    fn repeated(&mut self, now: u64, event: u64) {
        let pause = &mut self.pause;
        let since = pause.repeated_ns.unwrap_or(pause.begin_ns);
        let least_ns = (self.of.smoothed_rtt_ns.unwrap_or(0) / 2).max(REPEAT_NS);
        if pause.oldest.is_some() && now.saturating_sub(since) >= least_ns {
            pause.repeats += 1;
            pause.repeated_ns = Some(now);
            self.note(event);
        }
    }

    /// The connection is closed: what stands is judged, and nothing after it.
    fn close(&mut self, now: u64, event: u64) {
        self.note(event);
        self.judge(now, &End::Over);
        self.is_closed = true;
    }

    fn received(&mut self, now: u64, event: u64, packet: &Packet) {
        self.of.packets_received += 1;
        self.has_later |= packet.space > 0;
        self.has_frames |= packet.frames.is_some();
        let all = packet.frames.as_deref().unwrap_or_default();
        let (mut acked, mut acked_oldest, mut held_ns) = (None, false, None);
        let (mut has_data, mut goes_on, mut is_answer, mut is_new) = (false, false, false, false);
        let missing = self.missing(packet);
        // A probe is sent because acknowledgements are missing, not because there is data.
        let follows = missing == Some(0) && !all.contains(&Frame::Ping);
        self.pause.missing += missing.unwrap_or(0);
        for frame in all {
            match frame {
                Frame::Ack {
                    path,
                    ranges,
                    held_ns: held,
                } => {
                    self.is_held_unknown |= held.is_some_and(|ns| ns > HELD_MOST_NS);
                    held_ns = held.filter(|_| !self.is_held_unknown).or(held_ns);
                    let space = packet.space;
                    for &(first, last) in ranges {
                        let range = (space, *path, first)..=(space, *path, last);
                        let keys: Vec<Key> = self.outstanding.range(range).copied().collect();
                        for key in keys {
                            self.outstanding.remove(&key);
                            acked = acked.max(Some(key));
                            acked_oldest |= self.pause.oldest == Some(key);
                        }
                    }
                    if space == 2 {
                        // What the handshake left open is no longer acknowledged.
                        self.outstanding = self.outstanding.split_off(&(2, 0, 0));
                        if self.pause.oldest.is_some_and(|(space, ..)| space < 2) {
                            self.pause.oldest = self.outstanding.first().copied();
                        }
                    }
                }
                &Frame::Stream(id, offset, bytes) => {
                    has_data = true;
                    goes_on |= self.received.is_known(id) || offset.is_some_and(|o| o > 0);
                    is_answer |= self.sent.is_known(id);
                    self.pause.peer_was_full |= self.received.is_full();
                    is_new |= self.received.data(id, offset, bytes);
                    self.of.bytes_received = self.of.bytes_received.saturating_add(bytes);
                }
                Frame::Data | Frame::Crypto(..) => has_data = true,
                Frame::Blocked => {
                    self.peer_blocked = true;
                    self.pause.peer_was_blocked = true;
                    self.note(event);
                }
                &Frame::Credit(id, limit) => {
                    self.blocked = false;
                    self.pause.was_full |= self.sent.is_full();
                    self.pause.credit_ns = Some(now);
                    self.sent.credit(id, limit);
                    self.note(event);
                }
                Frame::Ping | Frame::Silent | Frame::Close | Frame::Other => {}
            }
        }
        if is_new {
            self.resumed(now);
        }
        if let Some(acked) = acked {
            let oldest = acked_oldest;
            let first = self.outstanding.first().copied();
            let all = first.is_none_or(|first| Some(first) > self.pause.newest);
            let end = End::Acknowledged {
                oldest,
                all,
                is_probe_lost: all && first.is_some_and(|first| first < acked),
                held_ns,
            };
            self.moved(now, event, &end);
        } else if has_data {
            let end = End::Received {
                goes_on,
                is_answer,
                follows: follows && is_new,
            };
            self.moved(now, event, &end);
        } else if !self.has_frames {
            let end = End::Received {
                goes_on: self.is_begun,
                is_answer: false,
                follows,
            };
            self.moved(now, event, &end);
        }
        if all.contains(&Frame::Close) {
            self.close(now, event);
        }
    }

    /// Notes a received packet's number; returns how many before it have not come, since the
    /// highest.
    fn missing(&mut self, packet: &Packet) -> Option<u64> {
        let number = packet.number?;
        let key = (packet.space, packet.path);
        let before = self.highest.get(&key).copied();
        if before.is_some() || self.highest.len() < PATHS_MOST {
            self.highest.insert(key, number.max(before.unwrap_or(0)));
        }
        number.checked_sub(before?.checked_add(1)?)
    }

    /// Data of the other end came. One or two packets may be a probe; it answers no more of them
    /// within a round trip.
    fn resumed(&mut self, now: u64) {
        // A full queue has lengthened the usual round trip; where acknowledgements were lost, it is empty.
        let rtt_ns = self.min_rtt_ns.min(self.of.smoothed_rtt_ns);
        let within_ns = rtt_ns.or(self.of.smoothed_rtt_ns).unwrap_or(0) / 2;
        let Some(resumed) = &mut self.resumed else {
            return;
        };
        resumed.packets += 1;
        if now.saturating_sub(resumed.at_ns) > within_ns {
            self.resumed = None;
        } else if resumed.packets > PROBES_MOST {
            if let Some(stall) = self.of.stalls.get_mut(resumed.stall) {
                stall.confidence = Confidence::Medium.min(most(stall.cause, stall.asked));
                stall
                    .explanation
                    .push_str(" More followed at once than a probe has.");
            }
            self.resumed = None;
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
            newest: self.outstanding.last().copied(),
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
        if !self.is_begun || self.is_closed || duration_ns == 0 || duration_ns < self.least_ns() {
            return;
        }
        let flight = self.in_flight_bytes.zip(self.cwnd_bytes);
        let context = Context {
            duration_ns,
            rtt_ns: self.of.smoothed_rtt_ns,
            is_application_limited: self.is_application_limited,
            has_room: self.is_application_limited
                || flight.is_some_and(|(flight, cwnd)| flight < cwnd / 2),
        };
        let Some(judgement) = judgement(&self.pause, &context, end) else {
            if !matches!(end, End::Over) {
                self.of.idle.note(duration_ns);
            }
            return;
        };
        if self.of.stalls.len() >= STALLS_MOST {
            self.dropped += 1;
            return;
        }
        if judgement.cause == Cause::Application && judgement.is_peers && self.has_frames {
            self.resumed = Some(Resumed {
                stall: self.of.stalls.len(),
                at_ns: now,
                packets: 1,
            });
        }
        let asked = answers(&self.pause, &context, end, judgement.is_peers);
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
            confidence: judgement.confidence.min(most(judgement.cause, asked)),
            evidence: std::mem::take(&mut self.pause.evidence),
            count: 1,
            explanation: judgement.explanation,
            advice: judgement.cause.advice().to_owned(),
            asked,
            number: None,
        });
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
