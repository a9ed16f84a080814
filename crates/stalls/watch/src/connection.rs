// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of one connection and its stalls, from the records of its sender.

use std::collections::BTreeMap;

use stall::predictions::Answers;
use stall::{Cause, Direction, Side, Stall, StallKind};

use crate::drops::Drops;
use crate::facts::{Closed, Evidence, Facts, IdleFacts, Resent, Timeout};
use crate::judge::{Finding, judge, judge_idle};
use crate::names::Owner;
use crate::pause::{Over, Pause};
use crate::phases::{Phase, Phases};
use crate::rate::Rate;
use crate::receiving::{NotRead, Receiving};
use crate::records::{CaState, Dropped, Ends, Moment, Reading, TcpState};
use crate::sequence::Sequence;

const MS: u64 = 1_000_000;

/// Error of the kernel's counts of what the sender waits for: it counts in ticks of up to 10
/// ms.
const COUNT_ERROR_NS: u64 = 20 * MS;
/// Stalls kept of a connection; of more, the first ones are kept.
const STALLS_MOST: usize = 1000;
/// Segments that are remembered as retransmitted.
const RESENT_MOST: usize = 4096;
/// Stalls of one cause that are this near to each other are counted as one.
const NEAR_NS: u64 = 50 * MS;
/// Ports below this belong to servers.
const WELL_KNOWN: u16 = 1024;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Its SYN has not been answered.
    Connecting,
    /// Data moves.
    Flowing,
    /// Everything was delivered, and the application has supplied nothing since.
    Idle,
    /// Losses are being repaired.
    Repairing(CaState),
    /// Nothing has been delivered for a time.
    Stalled {
        /// Time since the last progress.
        for_ns: u64,
        /// The cause, as far as it is known now.
        cause: Cause,
    },
    /// The socket is gone.
    Ended,
}

/// A socket that sends, or may send.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Number of the connection, in the order in which connections were seen, from 1. A
    /// [`crate::Watcher`] sets it.
    pub number: u64,
    /// The connection's ends, once the kernel reported them.
    pub ends: Option<Ends>,
    /// Whose socket it is, as far as it is known. A [`crate::session::Session`] sets it.
    pub owner: Owner,
    /// When the connection was first seen.
    pub first_ns: u64,
    pub last: Reading,
    /// Number of readings, without the lost ones.
    pub readings: u64,
    /// Number of readings that the ring buffer had no room for.
    pub lost: u64,
    /// Number of retransmitted segments.
    pub retransmissions: u64,
    /// The stalls, in order; times count from `origin_ns`.
    pub stalls: Vec<Stall>,
    /// Number of stalls beyond those that are kept.
    pub stalls_dropped: u64,
    origin_ns: u64,
    is_client: Option<bool>,
    is_ended: bool,
    sequence: Sequence,
    /// First byte that was not acknowledged when this host had no more to send.
    finishing_at: Option<u32>,
    pause: Pause,
    over: Option<Over>,
    /// First bytes of segments that were retransmitted and are not acknowledged, and why.
    resent: BTreeMap<u64, Resent>,
    /// When the first SYN was sent, and how often it was retransmitted.
    setup: Option<(u64, u32)>,
    /// Since when there was nothing to send.
    idle_from_ns: Option<u64>,
    /// The offset that had been acknowledged when the sender went on after the last such time.
    idle_at: u64,
    phases: Phases,
    rate: Rate,
    receiving: Receiving,
    pub(crate) drops: Drops,
}

impl Connection {
    /// Creates a connection from its first reading. Stalls count from `origin_ns`.
    pub fn new(first: &Reading, ends: Option<Ends>, origin_ns: u64) -> Self {
        let mut connection = Self {
            number: 0,
            ends,
            owner: Owner::default(),
            first_ns: first.time_ns,
            last: *first,
            readings: 1,
            lost: u64::from(first.lost),
            retransmissions: 0,
            stalls: Vec::new(),
            stalls_dropped: 0,
            origin_ns,
            is_client: None,
            is_ended: first.moment == Moment::End,
            sequence: Sequence::default(),
            finishing_at: None,
            pause: Pause::new(first.time_ns, first, 0, 1),
            over: None,
            resent: BTreeMap::new(),
            setup: None,
            idle_from_ns: None,
            idle_at: 0,
            phases: Phases::default(),
            rate: Rate::default(),
            receiving: Receiving::default(),
            drops: Drops::default(),
        };
        // A SYN takes a sequence number and is no byte, as the FIN.
        let syn = u32::from(first.tcp_state == TcpState::SynSent);
        connection.sequence.advance(first.una.wrapping_add(syn));
        if first.advances() {
            connection.sequence.advance(first.ack);
        }
        let acked = connection.acked_bytes();
        connection.rate.note(first.time_ns, acked);
        connection.note(first);
        connection.receiving.note(first);
        connection
    }

    /// Processes the next reading. Returns the stalls that it made known.
    ///
    /// Takes constant time, and time for the segments remembered as retransmitted.
    pub fn reading(&mut self, reading: &Reading) -> Vec<Stall> {
        let before = std::mem::replace(&mut self.last, *reading);
        self.readings += 1;
        self.lost += u64::from(reading.lost);
        if reading.tcp_state == TcpState::Finishing {
            self.finishing_at.get_or_insert(reading.una);
        }
        let mut found: Vec<Stall> = self.settle(reading.time_ns).into_iter().collect();
        if before.moment == Moment::Ack && reading.delivered != before.delivered {
            // Only now is it known that the acknowledgement before reported something (SACK).
            let repeats = u32::from(!before.advances());
            self.pause.idle_acks = self.pause.idle_acks.saturating_sub(repeats);
            let number = self.readings - 1;
            found.extend(self.progress(&before, number, Closed::Delivery(1)));
        }
        found.extend(self.idle(&before, reading));
        found.extend(self.connected(reading));
        self.note(reading);
        let not_read = self.receiving.note(reading);
        found.extend(not_read.map(|stall| self.not_read(stall, reading.time_ns)));
        if reading.moment == Moment::Ack {
            found.extend(self.acknowledged(reading));
        }
        if reading.moment == Moment::End {
            found.extend(self.end(reading));
        }
        self.keep(found)
    }

    /// Notes segments that this host dropped.
    pub fn dropped(&mut self, dropped: &Dropped) {
        self.drops.note(dropped);
    }

    /// Returns the segments that this host dropped, by the reasons' names.
    pub fn dropped_segments(&self) -> Vec<(String, u64)> {
        self.drops.all()
    }

    /// Returns the stalls that are known by `now_ns` without another reading.
    pub fn tick(&mut self, now_ns: u64) -> Vec<Stall> {
        let found = self.settle(now_ns).into_iter().collect();
        self.keep(found)
    }

    /// Ends watching. Returns the stalls that were not known before, with the one that still
    /// lasts.
    pub fn finish(&mut self, now_ns: u64) -> Vec<Stall> {
        let mut found: Vec<Stall> = self.settle(u64::MAX).into_iter().collect();
        let not_read = self.receiving.end(now_ns, "and still does not");
        found.extend(not_read.map(|stall| self.not_read(stall, now_ns)));
        if !self.is_ended {
            found.extend(self.phases.interrupt().map(|phase| self.slow(phase)));
            found.extend(self.standing(now_ns).map(|facts| self.silence(facts)));
        }
        self.keep(found)
    }

    /// Returns how long all stalls of the connection took together, in ns.
    pub fn stalled_ns(&self) -> u64 {
        self.stalls.iter().map(|stall| stall.duration_ns).sum()
    }

    /// Returns what the connection is doing at `now_ns`.
    pub fn status(&self, now_ns: u64) -> Status {
        if self.is_ended {
            return Status::Ended;
        }
        if self.last.tcp_state == TcpState::SynSent {
            return Status::Connecting;
        }
        if let Some(facts) = self.standing(now_ns) {
            return Status::Stalled {
                for_ns: facts.duration_ns(),
                cause: judge(&facts).cause,
            };
        }
        if let Some(for_ns) = self.receiving.stalled_ns(now_ns) {
            let cause = Cause::ReceiverWindowClosed;
            return Status::Stalled { for_ns, cause };
        }
        match self.last.ca_state {
            state @ (CaState::Recovery | CaState::Loss) => Status::Repairing(state),
            _ if self.is_idle(now_ns) => Status::Idle,
            _ => Status::Flowing,
        }
    }

    /// Returns the bytes acknowledged since the connection was first seen.
    pub fn acked_bytes(&self) -> u64 {
        // The FIN, which comes last, takes a sequence number and is no byte.
        let finishing = self.finishing_at.filter(|&una| self.last.ack != una);
        let has_fin = finishing.is_some() && self.last.ack == self.last.nxt;
        let offset = self.sequence.offset(self.last.ack);
        offset.saturating_sub(u64::from(has_fin))
    }

    /// Returns the stream offset of a sequence number near the present ones.
    pub fn offset(&self, number: u32) -> u64 {
        self.sequence.offset(number)
    }

    /// Returns the rate of acknowledged data over the last second, in bit/s.
    pub fn rate_bps(&self, now_ns: u64) -> u64 {
        let bytes_per_s = self.rate.bytes_per_s(now_ns, self.acked_bytes());
        bytes_per_s.saturating_mul(8)
    }

    /// Returns whether this host opened the connection. If that was not seen, the ports decide.
    pub fn is_client(&self) -> bool {
        let by_port = |ends: &Ends| {
            let (local, remote) = (ends.local.port(), ends.remote.port());
            remote < WELL_KNOWN || (local >= WELL_KNOWN && local > remote)
        };
        self.is_client
            .or(self.ends.as_ref().map(by_port))
            .unwrap_or(true)
    }

    /// Returns the direction of the data that this host sends.
    fn direction(&self) -> Direction {
        if self.is_client() {
            Direction::ToServer
        } else {
            Direction::ToClient
        }
    }

    /// Notes timeouts, retransmissions and probes.
    fn note(&mut self, reading: &Reading) {
        let pause = &mut self.pause;
        pause.window_bytes = pause.window_bytes.min(reading.window_bytes);
        match reading.moment {
            Moment::CaState if reading.ca_state == CaState::Loss => {
                pause.timeouts += 1;
                let head = self.sequence.offset(reading.una);
                pause.first_timeout.get_or_insert(Timeout {
                    at_ns: reading.time_ns,
                    sacked_out: reading.sacked_out,
                    resent_before: self.resent.get(&head).copied(),
                });
                pause.evidence.push(self.readings);
            }
            Moment::Retransmit => self.note_resent(reading),
            Moment::Ack if !reading.advances() => {
                pause.idle_acks += 1;
                pause.evidence.push(self.readings);
            }
            _ => {}
        }
    }

    fn note_resent(&mut self, reading: &Reading) {
        self.retransmissions += 1;
        if reading.tcp_state == TcpState::SynSent {
            // The expired timer was started with the first SYN.
            let first_ns = reading.time_ns.saturating_sub(reading.rto_ns);
            let (_, times) = self.setup.get_or_insert((first_ns, 0));
            *times += 1;
            return;
        }
        let kind = match reading.ca_state {
            CaState::Loss => Resent::Timeout,
            CaState::Recovery => Resent::Fast,
            _ => Resent::Probe,
        };
        match kind {
            Resent::Fast => {
                self.pause.fast += 1;
                if let Some(over) = &mut self.over {
                    over.facts.after.resent += 1;
                }
            }
            Resent::Probe => {
                self.pause.first_probe_ns.get_or_insert(reading.time_ns);
            }
            Resent::Timeout => {}
        }
        self.pause.evidence.push(self.readings);
        if self.resent.len() < RESENT_MOST {
            self.resent
                .insert(self.sequence.offset(reading.segment.0), kind);
        }
    }

    /// Returns the stall before a connection was established, if its SYN was sent more than
    /// once.
    fn connected(&mut self, reading: &Reading) -> Option<Stall> {
        if reading.moment != Moment::State || reading.tcp_state == TcpState::SynSent {
            return None;
        }
        let (first_ns, times) = self.setup.take()?;
        self.is_client = Some(true);
        self.pause = Pause::new(reading.time_ns, reading, 0, self.readings);
        let finding = Finding {
            answers: Answers::default(),
            cause: Cause::ConnectionSetup,
            confidence: stall::Confidence::High,
            explanation: match reading.tcp_state {
                TcpState::Closed => {
                    format!(
                        "the SYN was sent {} times, and nothing ever answered",
                        times + 1
                    )
                }
                _ => format!(
                    "the SYN was sent {} times before it was answered",
                    times + 1
                ),
            },
        };
        let span = (first_ns, reading.time_ns);
        Some(self.stall(StallKind::Silence, span, None, finding, vec![self.readings]))
    }

    /// Checks whether there was a time with nothing to send between two readings. If there was,
    /// everything sent before it had been delivered.
    fn idle(&mut self, before: &Reading, reading: &Reading) -> Option<Stall> {
        let apart_ns = reading.time_ns.saturating_sub(before.time_ns);
        let busy_ns = reading.limits.busy_ns.saturating_sub(before.limits.busy_ns);
        let idle_ns = apart_ns.saturating_sub(busy_ns);
        if idle_ns < COUNT_ERROR_NS {
            return None;
        }
        let went_on_ns = before.time_ns + idle_ns;
        let pause = std::mem::replace(
            &mut self.pause,
            Pause::new(went_on_ns, reading, 0, self.readings),
        );
        let una = self.sequence.offset(reading.una);
        self.rate.restart(went_on_ns, una);
        let start_ns = self.idle_from_ns.take().unwrap_or(before.time_ns);
        if reading.nxt == before.nxt {
            self.idle_from_ns = Some(start_ns);
            return None;
        }
        let had_sent = before.limits.busy_ns > 0 || before.packets_out > 0;
        let sends = matches!(reading.moment, Moment::Ack | Moment::Retransmit);
        let sent_before = std::mem::replace(&mut self.idle_at, una);
        if !had_sent || !sends || went_on_ns - start_ns < pause.threshold_ns() {
            return None;
        }
        let mut evidence = Evidence::default();
        evidence.push(self.readings - 1);
        evidence.push(self.readings);
        let facts = IdleFacts {
            start_ns,
            end_ns: went_on_ns,
            peer_data_ns: reading.peer_data_ns,
            sent_bytes: una.saturating_sub(sent_before),
            mss_bytes: reading.mss_bytes,
            srtt_ns: before.srtt_ns,
            window_bytes: reading.window_bytes,
            rate_bytes_per_s: pause.rate_bytes_per_s,
            evidence,
        };
        let finding = judge_idle(&facts)?;
        let cost = cost(facts.rate_bytes_per_s, facts.duration_ns());
        let span = (facts.start_ns, facts.end_ns);
        let evidence = facts.evidence.into_numbers();
        Some(self.stall(StallKind::Silence, span, cost, finding, evidence))
    }

    fn acknowledged(&mut self, reading: &Reading) -> Vec<Stall> {
        if !reading.advances() {
            return Vec::new();
        }
        let bytes = reading.ack.wrapping_sub(reading.una);
        let segments = bytes.div_ceil(reading.mss_bytes.max(1));
        let mut found = self.progress(reading, self.readings, Closed::Delivery(segments));
        self.sequence.advance(reading.ack);
        let una = self.sequence.offset(reading.ack);
        self.resent = self.resent.split_off(&una);
        self.rate.note(reading.time_ns, una);
        let over = self.phases.note(reading, self.readings);
        found.extend(over.map(|phase| self.slow(phase)));
        found
    }

    /// Notes that something was delivered, which ends a pause if there was one. Returns the
    /// stalls that this made known.
    fn progress(&mut self, reading: &Reading, number: u64, closed: Closed) -> Vec<Stall> {
        let at_ns = reading.time_ns;
        if at_ns < self.pause.from_ns {
            return Vec::new();
        }
        let una = self.sequence.offset(reading.ack);
        let rate = self.rate.bytes_per_s(at_ns, una);
        let mut pause =
            std::mem::replace(&mut self.pause, Pause::new(at_ns, reading, rate, number));
        if at_ns.saturating_sub(pause.from_ns) < pause.threshold_ns() {
            return Vec::new();
        }
        let phase = self.phases.interrupt().map(|phase| self.slow(phase));
        let earlier = phase.into_iter().chain(self.settle(u64::MAX)).collect();
        pause.evidence.push(number);
        self.pause.rate_bytes_per_s = pause.rate_bytes_per_s;
        self.rate.restart(at_ns, una);
        self.over = Some(Over {
            facts: pause.facts(at_ns, reading, closed),
            until_ns: at_ns + 2 * reading.srtt_ns,
            dsacks: reading.dsacks,
        });
        earlier
    }

    /// Judges a pause once what follows it is known.
    fn settle(&mut self, now_ns: u64) -> Option<Stall> {
        let over = self.over.take_if(|over| now_ns > over.until_ns)?;
        let mut facts = over.facts;
        facts.after.dsacks = self.last.dsacks.wrapping_sub(over.dsacks);
        Some(self.silence(facts))
    }

    fn end(&mut self, reading: &Reading) -> Vec<Stall> {
        self.is_ended = true;
        let mut found: Vec<Stall> = self.settle(u64::MAX).into_iter().collect();
        found.extend(self.phases.interrupt().map(|phase| self.slow(phase)));
        if let Some(mut facts) = self.standing(reading.time_ns) {
            facts.closed = Closed::End;
            found.push(self.silence(facts));
        }
        found
    }

    /// Returns whether something that had been sent by the last reading is not acknowledged by
    /// it.
    fn is_waiting(&self) -> bool {
        self.last.ack != self.last.nxt
    }

    fn is_idle(&self, now_ns: u64) -> bool {
        let for_ns = now_ns.saturating_sub(self.last.time_ns);
        !self.is_waiting() && for_ns >= self.pause.threshold_ns()
    }

    /// Returns the facts of the present pause, if something shows that it is one: without a
    /// record it is not known whether there is anything to send.
    fn standing(&self, now_ns: u64) -> Option<Facts> {
        let pause = &self.pause;
        let last = &self.last;
        let is_closed = last.window_bytes < last.mss_bytes
            && last.limits.window_ns > pause.window_ns
            && last.moment == Moment::Ack;
        let shows = pause.timeouts > 0 || is_closed || self.is_waiting();
        let for_ns = now_ns.saturating_sub(pause.from_ns);
        if !shows || for_ns < pause.threshold_ns() || last.tcp_state == TcpState::SynSent {
            return None;
        }
        let mut facts = pause.facts(now_ns, last, Closed::Open);
        if is_closed {
            // The window is taken to stay closed until the next record.
            facts.window_ns += now_ns.saturating_sub(last.time_ns);
        }
        Some(facts)
    }

    fn silence(&mut self, mut facts: Facts) -> Stall {
        let evidence = std::mem::take(&mut facts.evidence).into_numbers();
        let cost = cost(facts.rate_bytes_per_s, facts.duration_ns());
        let span = (facts.start_ns, facts.end_ns);
        self.stall(StallKind::Silence, span, cost, judge(&facts), evidence)
    }

    /// Returns the stall of data that this host receives.
    fn not_read(&self, not_read: NotRead, end_ns: u64) -> Stall {
        let span = (not_read.start_ns, end_ns);
        let evidence = vec![self.readings];
        let stall = self.stall(StallKind::Silence, span, None, not_read.finding, evidence);
        Stall {
            direction: self.direction().opposite(),
            ..stall
        }
    }

    fn slow(&self, phase: Phase) -> Stall {
        let span = (phase.start_ns, phase.end_ns);
        let evidence = vec![phase.records.0, phase.records.1];
        self.stall(StallKind::Slow, span, None, phase.finding, evidence)
    }

    fn stall(
        &self,
        kind: StallKind,
        (start_ns, end_ns): (u64, u64),
        bytes_cost: Option<u64>,
        finding: Finding,
        evidence: Vec<u64>,
    ) -> Stall {
        // What is missing in a stall was sent at most a round trip before it. A receiver that holds the
        // sender up misses nothing: what was dropped at its end is the next stall's.
        let sent_ns = start_ns.saturating_sub(self.last.srtt_ns);
        let side = finding.cause.side();
        let drops = match side {
            Side::Receiver => String::new(),
            _ => self.drops.sentence(sent_ns, end_ns),
        };
        Stall {
            direction: self.direction(),
            start_ns: start_ns.saturating_sub(self.origin_ns),
            duration_ns: end_ns.saturating_sub(start_ns),
            kind,
            bytes_cost,
            cause: finding.cause,
            root: None,
            side,
            confidence: finding.confidence,
            evidence,
            count: 1,
            explanation: finding.explanation + &drops,
            advice: finding.cause.advice().to_owned(),
            asked: finding.answers,
            number: None,
        }
    }

    /// Adds stalls to the list. Returns those to report: stalls that do not continue the last
    /// one, or that are more than twice as long.
    fn keep(&mut self, found: Vec<Stall>) -> Vec<Stall> {
        let mut to_report = Vec::new();
        let near_ns = self.last.srtt_ns.saturating_mul(4).max(NEAR_NS);
        for stall in found {
            if let Some(last) = self
                .stalls
                .last_mut()
                .filter(|last| is_more(last, &stall, near_ns))
            {
                if stall.duration_ns > last.duration_ns.saturating_mul(2) {
                    to_report.push(stall.clone());
                }
                last.take_in(&stall);
                last.confidence = last.confidence.max(stall.confidence);
                continue;
            }
            if self.stalls.len() < STALLS_MOST {
                self.stalls.push(stall.clone());
            } else {
                self.stalls_dropped += 1;
            }
            to_report.push(stall);
        }
        to_report
    }
}

/// Returns whether a stall continues the last one: waits for each acknowledgement, pauses
/// between messages, or a window in which a probe found a little room.
fn is_more(last: &Stall, stall: &Stall, near_ns: u64) -> bool {
    let merges = matches!(
        stall.cause,
        Cause::DelayedAck
            | Cause::Application
            | Cause::WaitingForPeer
            | Cause::ReceiverWindowClosed
    );
    let end_ns = last.start_ns + last.duration_ns;
    merges
        && last.kind == stall.kind
        && last.direction == stall.direction
        && last.cause == stall.cause
        && stall.start_ns >= last.start_ns
        && stall.start_ns.saturating_sub(end_ns) <= near_ns
}

/// Returns the bytes that the rate before would have brought in this time; `None` if the rate
/// is not known.
fn cost(rate_bytes_per_s: u64, duration_ns: u64) -> Option<u64> {
    let cost = u128::from(rate_bytes_per_s) * u128::from(duration_ns) / 1_000_000_000;
    (rate_bytes_per_s > 0).then(|| u64::try_from(cost).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[path = "connection_tests.rs"]
pub(crate) mod tests;
