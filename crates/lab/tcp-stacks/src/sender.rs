// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sending half of a scripted TCP: what may be sent, loss detection and repair, probes.

use std::collections::VecDeque;

use crate::ground_truth::Why;
use crate::profile::{MS, Profile, Recovery};
use crate::rtt::Rtt;
use crate::segment::{Chunk, Phase, Segment};

/// The sending half.
#[derive(Clone, Debug)]
pub struct Sender {
    recovery: Recovery,
    threshold: u32,
    nagle: bool,
    send_bytes: u64,
    persist: (u64, u64),
    probe_bytes: u64,
    mss: u64,
    una: u64,
    next: u64,
    /// Byte after what the application wrote.
    written: u64,
    fin: bool,
    fin_sent: bool,
    /// Right edge of the receiver's window, and the widest window seen.
    edge: u64,
    widest: u64,
    cwnd: u64,
    ssthresh: u64,
    phase: Phase,
    /// A new fast repair begins only beyond this byte (RFC 6582).
    recover: u64,
    duplicates: u32,
    segments: VecDeque<Segment>,
    rtt: Rtt,
    least_rtt_ns: u64,
    /// When the packet delivered last had been sent.
    delivered_sent_ns: u64,
    timeout_ns: Option<u64>,
    probe_ns: Option<u64>,
    probed: bool,
    reorder_ns: Option<u64>,
    persist_ns: Option<u64>,
    persist_count: u32,
    last_sent_ns: u64,
    out: Vec<Chunk>,
}

impl Sender {
    /// Makes the sender of a stream; `mss` is what a segment carries.
    pub fn new(profile: &Profile, mss: u64, use_sack: bool) -> Self {
        let recovery = match profile.recovery {
            Recovery::Sack | Recovery::Rack if !use_sack => Recovery::NewReno,
            other => other,
        };
        Self {
            recovery,
            threshold: profile.duplicate_acks,
            nagle: profile.nagle,
            send_bytes: profile.send_bytes,
            persist: (profile.persist_min_ns, profile.persist_max_ns),
            probe_bytes: profile.probe_bytes,
            mss,
            una: 1,
            next: 1,
            written: 1,
            fin: false,
            fin_sent: false,
            edge: 1,
            widest: 0,
            cwnd: profile.initial_window * mss,
            ssthresh: u64::MAX / 4,
            phase: Phase::Open,
            recover: 1,
            duplicates: 0,
            segments: VecDeque::new(),
            rtt: Rtt::new(profile),
            least_rtt_ns: u64::MAX,
            delivered_sent_ns: 0,
            timeout_ns: None,
            probe_ns: None,
            probed: false,
            reorder_ns: None,
            persist_ns: None,
            persist_count: 0,
            last_sent_ns: 0,
            out: Vec::new(),
        }
    }

    /// Takes the round trip of the handshake.
    pub fn sample(&mut self, rtt_ns: u64) {
        self.rtt.sample(rtt_ns);
        self.least_rtt_ns = self.least_rtt_ns.min(rtt_ns);
    }

    /// Takes up to `bytes` of the application, as many as the buffer has room for.
    pub fn write(&mut self, bytes: u64) -> u64 {
        if self.fin {
            return 0;
        }
        let room = self
            .send_bytes
            .saturating_sub(self.written - self.una.min(self.written));
        let taken = bytes.min(room);
        self.written += taken;
        taken
    }

    /// Ends the stream behind what was written.
    pub fn close(&mut self) {
        self.fin = true;
    }

    /// Returns the next byte to send for the first time.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Returns bytes that the application wrote and the peer has not acknowledged.
    pub fn queued(&self) -> u64 {
        self.written.saturating_sub(self.una)
    }

    /// Returns whether the FIN was acknowledged.
    pub fn is_finished(&self) -> bool {
        self.fin_sent && self.una > self.written
    }

    /// Returns what is to be sent, in order.
    pub fn take(&mut self) -> Vec<Chunk> {
        std::mem::take(&mut self.out)
    }

    /// Returns when [`Self::fire`] is to be called.
    pub fn deadline(&self) -> Option<u64> {
        let timers = [
            self.timeout_ns,
            self.probe_ns,
            self.reorder_ns,
            self.persist_ns,
        ];
        timers.into_iter().flatten().min()
    }

    fn flight(&self) -> u64 {
        let outstanding = self.segments.iter().filter(|s| !s.sacked && !s.lost);
        outstanding.map(|s| s.end - s.begin).sum()
    }

    /// Takes an acknowledgement. `pure` says that the segment has neither data nor FIN.
    pub fn acknowledge(
        &mut self,
        now_ns: u64,
        ack: u64,
        edge: u64,
        sack: &[(u64, u64)],
        pure: bool,
    ) {
        let probe = if self.persist_count > 0 {
            self.probe_bytes
        } else {
            0
        };
        if ack < self.una || ack > self.next + probe {
            return;
        }
        let repeats = pure && ack == self.una && edge == self.edge && !self.segments.is_empty();
        if edge > ack + self.mss || edge > self.edge {
            self.persist_count = 0;
        }
        self.edge = edge;
        self.widest = self.widest.max(edge.saturating_sub(ack));
        let mut newest = None;
        let mut delivered = 0;
        let advances = ack > self.una;
        if advances {
            self.next = self.next.max(ack);
            while let Some(&first) = self.segments.front() {
                if first.last() > ack {
                    if first.begin < ack {
                        delivered += ack - first.begin;
                        self.segments[0].begin = ack.min(first.end);
                    }
                    break;
                }
                self.segments.pop_front();
                if !first.sacked {
                    delivered += first.end - first.begin;
                    newest = Some(first);
                }
            }
            self.una = ack;
            self.duplicates = 0;
            self.probed = false;
            self.rtt.calm();
        }
        if self.recovery >= Recovery::Sack {
            for segment in &mut self.segments {
                let (begin, last) = (segment.begin, segment.last());
                if !segment.sacked && sack.iter().any(|b| b.0 <= begin && last <= b.1) {
                    segment.sacked = true;
                    segment.lost = false;
                    delivered += segment.end - segment.begin;
                    if newest.is_none_or(|n| n.sent_ns <= segment.sent_ns) {
                        newest = Some(*segment);
                    }
                }
            }
        }
        if let Some(segment) = newest {
            self.delivered_sent_ns = self.delivered_sent_ns.max(segment.sent_ns);
            if segment.copies == 1 {
                self.sample(now_ns - segment.sent_ns);
            }
        }
        if repeats {
            self.duplicates += 1;
        }
        self.move_on(now_ns, delivered, ack);
        if delivered > 0 || advances {
            self.arm(now_ns, true);
        }
        self.push(now_ns);
    }

    /// Lets the congestion window and the repair follow an acknowledgement.
    fn move_on(&mut self, now_ns: u64, delivered: u64, ack: u64) {
        match self.phase {
            Phase::Open => {
                if delivered > 0 {
                    self.grow(delivered);
                }
                self.detect(now_ns);
            }
            Phase::Timeout(point) => {
                if delivered > 0 {
                    self.grow(delivered);
                }
                if ack >= point {
                    self.phase = Phase::Open;
                } else {
                    self.mark_lost(now_ns);
                }
            }
            Phase::Fast(point) => {
                if ack >= point || (delivered > 0 && self.recovery == Recovery::Reno) {
                    self.cwnd = self.ssthresh.max(self.mss * 2);
                    self.phase = Phase::Open;
                    self.detect(now_ns);
                } else if self.recovery >= Recovery::Sack {
                    self.mark_lost(now_ns);
                } else if delivered > 0 {
                    // A partial acknowledgement names the next hole.
                    self.cwnd = self.cwnd.saturating_sub(delivered).max(self.mss) + self.mss;
                    self.repair_first(now_ns, Why::Fast);
                } else if self.duplicates > self.threshold {
                    self.cwnd += self.mss;
                }
            }
        }
    }

    fn grow(&mut self, delivered: u64) {
        let most = 4 << 20;
        let step = if self.cwnd < self.ssthresh {
            delivered.min(self.mss * 2)
        } else {
            (self.mss * self.mss / self.cwnd.max(1)).max(1)
        };
        self.cwnd = (self.cwnd + step).min(most);
    }

    /// Marks what the receiver's reports show to be lost; returns whether there is any.
    fn mark_lost(&mut self, now_ns: u64) -> bool {
        if self.recovery < Recovery::Sack {
            return false;
        }
        let threshold = u64::from(self.threshold);
        let is_rack = self.recovery == Recovery::Rack;
        let mut above = self.segments.iter().filter(|s| s.sacked).count() as u64;
        let window_ns = if above >= threshold {
            0
        } else {
            self.least_rtt_ns.min(1 << 40) / 4
        };
        let rtt_ns = self.rtt.smoothed_ns().unwrap_or(0);
        let mut any = false;
        self.reorder_ns = None;
        let delivered_ns = self.delivered_sent_ns;
        for segment in &mut self.segments {
            if segment.sacked {
                above -= 1;
                continue;
            }
            if segment.lost {
                any = true;
                continue;
            }
            let by_count = segment.copies == 1 && above >= threshold;
            let mut by_time = false;
            if is_rack && delivered_ns > segment.sent_ns {
                let due_ns = segment.sent_ns + rtt_ns + window_ns;
                by_time = delivered_ns > segment.sent_ns + window_ns || now_ns >= due_ns;
                if !by_time {
                    self.reorder_ns = Some(self.reorder_ns.map_or(due_ns, |t| t.min(due_ns)));
                }
            }
            if by_count || by_time {
                segment.lost = true;
                any = true;
            }
        }
        any
    }

    /// Starts a repair if the reports are enough.
    fn detect(&mut self, now_ns: u64) {
        let by_sack = self.mark_lost(now_ns);
        let by_count = self.duplicates >= self.threshold && self.una >= self.recover;
        if self.segments.is_empty() || !(by_sack || by_count) {
            return;
        }
        let outstanding = self.next - self.una;
        self.ssthresh = (outstanding / 2).max(self.mss * 2);
        self.recover = self.next;
        if self.recovery == Recovery::Tahoe {
            self.cwnd = self.mss;
            self.phase = Phase::Timeout(self.next);
            self.segments.iter_mut().for_each(|s| s.lost = true);
            self.repair_first(now_ns, Why::Fast);
            return;
        }
        self.phase = Phase::Fast(self.next);
        self.cwnd = self.ssthresh;
        if self.recovery < Recovery::Sack {
            self.cwnd += u64::from(self.threshold) * self.mss;
        }
        self.repair_first(now_ns, Why::Fast);
    }

    /// Retransmits the first missing segment, whatever the window.
    fn repair_first(&mut self, now_ns: u64, why: Why) {
        if let Some(index) = self.segments.iter().position(|s| !s.sacked) {
            self.retransmit(now_ns, index, why);
        }
    }

    fn retransmit(&mut self, now_ns: u64, index: usize, why: Why) {
        if let Some(segment) = self.segments.get_mut(index) {
            segment.lost = false;
            segment.copies += 1;
            segment.sent_ns = now_ns;
            let (begin, bytes, fin) = (segment.begin, segment.end - segment.begin, segment.fin);
            self.out.push(Chunk {
                begin,
                bytes,
                fin,
                why,
            });
            self.last_sent_ns = now_ns;
        }
    }

    /// Sends what may be sent now.
    pub fn push(&mut self, now_ns: u64) {
        let why = match self.phase {
            Phase::Timeout(_) => Why::AfterTimeout,
            _ => Why::Fast,
        };
        let mut flight = self.flight();
        let mut sent = false;
        while let Some(index) = self.segments.iter().position(|s| s.lost) {
            let bytes = self.segments[index].end - self.segments[index].begin;
            if flight > 0 && flight + bytes > self.cwnd {
                break;
            }
            self.retransmit(now_ns, index, why);
            flight += bytes;
            sent = true;
        }
        if !self.segments.iter().any(|s| s.lost) {
            while self.push_new(now_ns, &mut flight, Why::New) {
                sent = true;
            }
        }
        if sent {
            self.arm(now_ns, false);
        }
        self.watch_window(now_ns);
    }

    /// Sends one new segment if windows and Nagle's rule allow it.
    fn push_new(&mut self, now_ns: u64, flight: &mut u64, why: Why) -> bool {
        let unsent = self.written.saturating_sub(self.next);
        let usable = self.edge.saturating_sub(self.next);
        let bytes = unsent.min(self.mss).min(usable);
        let fin = self.fin && !self.fin_sent && bytes == unsent;
        if bytes == 0 && !fin {
            return false;
        }
        if *flight + bytes > self.cwnd && why == Why::New {
            return false;
        }
        // Less than a segment: neither into a small window (RFC 1122, 4.2.3.4) nor while
        // something is under way (RFC 896).
        let is_small = bytes < self.mss && !fin;
        if is_small && bytes < unsent && bytes * 2 < self.widest {
            return false;
        }
        if is_small && self.nagle && !self.segments.is_empty() {
            return false;
        }
        let segment = Segment {
            begin: self.next,
            end: self.next + bytes,
            fin,
            sent_ns: now_ns,
            copies: 1,
            sacked: false,
            lost: false,
        };
        self.segments.push_back(segment);
        self.out.push(Chunk {
            begin: segment.begin,
            bytes,
            fin,
            why,
        });
        self.next = segment.last();
        self.fin_sent |= fin;
        self.last_sent_ns = now_ns;
        *flight += bytes;
        true
    }

    /// Sets the retransmission timer, and the probe's where the system has one.
    fn arm(&mut self, now_ns: u64, anew: bool) {
        if self.segments.is_empty() {
            self.timeout_ns = None;
            self.probe_ns = None;
            return;
        }
        if anew || self.timeout_ns.is_none() {
            self.timeout_ns = Some(self.rtt.due_ns(now_ns, self.rtt.timeout_ns()));
        }
        self.probe_ns = None;
        let may_probe = self.recovery == Recovery::Rack && self.phase == Phase::Open;
        if may_probe && !self.probed && !self.segments.iter().any(|s| s.sacked) {
            let rtt_ns = self.rtt.smoothed_ns().unwrap_or(500 * MS);
            let alone = if self.segments.len() == 1 {
                200 * MS
            } else {
                2 * MS
            };
            let due_ns = now_ns + rtt_ns * 2 + alone;
            // The probe is never later than the timeout, and takes its place.
            self.probe_ns = Some(self.timeout_ns.map_or(due_ns, |t| t.min(due_ns)));
        }
    }

    /// Sets the persist timer where only the window is in the way.
    fn watch_window(&mut self, now_ns: u64) {
        let waits = self.segments.is_empty() && self.written > self.next;
        if !waits {
            self.persist_ns = None;
            return;
        }
        if self.persist_ns.is_none() {
            let after_ns = self.rtt.timeout_ns() << self.persist_count.min(10);
            let after_ns = after_ns.clamp(self.persist.0, self.persist.1);
            self.persist_ns = Some(self.rtt.due_ns(now_ns, after_ns));
        }
    }

    /// Lets the timers fire that are due.
    pub fn fire(&mut self, now_ns: u64) {
        let is_due = |timer: Option<u64>| timer.is_some_and(|t| t <= now_ns);
        if is_due(self.reorder_ns) {
            self.reorder_ns = None;
            if self.phase == Phase::Open {
                self.detect(now_ns);
            } else {
                self.mark_lost(now_ns);
            }
            self.push(now_ns);
        }
        if is_due(self.probe_ns) {
            self.probe_ns = None;
            self.probed = true;
            let mut flight = 0;
            if !self.push_new(now_ns, &mut flight, Why::TailProbe) {
                let last = self.segments.len().wrapping_sub(1);
                self.retransmit(now_ns, last, Why::TailProbe);
            }
            self.arm(now_ns, true);
        }
        if is_due(self.timeout_ns) {
            self.time_out(now_ns);
        }
        if is_due(self.persist_ns) {
            self.persist_ns = None;
            self.persist_count += 1;
            self.probe_window(now_ns);
            self.watch_window(now_ns);
        }
    }

    fn time_out(&mut self, now_ns: u64) {
        self.timeout_ns = None;
        self.probe_ns = None;
        self.reorder_ns = None;
        if self.segments.is_empty() {
            return;
        }
        if !matches!(self.phase, Phase::Timeout(_)) {
            self.ssthresh = ((self.next - self.una) / 2).max(self.mss * 2);
        }
        self.rtt.back_off();
        self.cwnd = self.mss;
        self.phase = Phase::Timeout(self.next);
        self.recover = self.next;
        self.duplicates = 0;
        self.segments
            .iter_mut()
            .filter(|s| !s.sacked)
            .for_each(|s| s.lost = true);
        self.repair_first(now_ns, Why::Timeout);
        self.arm(now_ns, true);
    }

    /// Sends into a window without room: what fits, or a probe.
    fn probe_window(&mut self, now_ns: u64) {
        let usable = self.edge.saturating_sub(self.next);
        if usable > 0 {
            let bytes = usable.min(self.mss).min(self.written - self.next);
            let (begin, end) = (self.next, self.next + bytes);
            let (copies, sacked, lost, fin) = (1, false, false, false);
            let sent_ns = now_ns;
            self.segments.push_back(Segment {
                begin,
                end,
                fin,
                sent_ns,
                copies,
                sacked,
                lost,
            });
            self.out.push(Chunk {
                begin,
                bytes,
                fin,
                why: Why::New,
            });
            self.next = end;
            self.arm(now_ns, true);
            return;
        }
        let begin = if self.probe_bytes == 0 {
            self.next - 1
        } else {
            self.next
        };
        let (bytes, fin, why) = (self.probe_bytes, false, Why::WindowProbe);
        self.out.push(Chunk {
            begin,
            bytes,
            fin,
            why,
        });
    }

    /// Returns when something was sent last.
    pub const fn last_sent_ns(&self) -> u64 {
        self.last_sent_ns
    }
}
