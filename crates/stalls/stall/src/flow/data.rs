// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data that the sender sends: new, retransmitted, or late.

use capture::segment::{Flags, Segment};
use units::time::NS_PER_MS;

use super::at::At;
use super::facts::{Closed, LET_GO_NS, Retransmitted};
use super::ip_ids::Identified;
use super::sent::Sent;
use super::sequence::{FAR, ORIGIN};
use super::{Flow, RECENT_RETRANSMISSIONS, Recent};
use crate::history::{RetransmissionKind as Kind, What};

/// What comes later after a probe than this, beside one and a half round trips, is not its answer.
pub(super) const PROBE_ANSWER_NS: u64 = 10 * NS_PER_MS;
/// The largest TCP payload that fits an Ethernet frame, in bytes.
const ETHERNET_PAYLOAD: u64 = 1460;
/// The largest TCP payload that fits a jumbo frame, in bytes.
const JUMBO_PAYLOAD: u64 = 8960;
/// Data that came late by less than this was overtaken, where nothing else tells.
const REORDERED_NS: u64 = 3 * NS_PER_MS;
/// A copy of a packet follows it within this time, where the round trip is not known.
const COPY_NS: u64 = NS_PER_MS;
/// An acknowledgement that comes within this time, beside the round trip, is an immediate
/// answer.
const AT_ONCE_NS: u64 = 10 * NS_PER_MS;

impl Flow {
    /// Processes a segment of the sender that is neither SYN nor RST.
    pub(crate) fn on_data(&mut self, at: At, segment: &Segment, identified: Identified) {
        if let Some(timestamps) = segment.timestamps {
            self.has_timestamps = true;
            let pause_ns = self.threshold_ns;
            self.sender_clock.note(timestamps.value, at.now, pause_ns);
            let echo = timestamps.echo.filter(|_| segment.flags.any(Flags::ACK));
            if let Some(echo) = echo {
                let way_ns = self.sender_rtt_ns().unwrap_or(0);
                self.gap.known.echoed(echo, at.now, way_ns);
                if self.sender_side.echoed(echo, at.now) {
                    self.renew_threshold();
                }
            }
        }
        let length = u64::from(segment.sequence_length());
        let near = self.nxt;
        let quiet_ns = at.now.saturating_sub(self.last_data_ns);
        let start = self.sequence.offset(segment.seq, near);
        if length == 0 {
            self.on_empty(at, start);
            return;
        }
        let end = start + length;
        if start > self.nxt + FAR || end + FAR < self.una || length > FAR {
            self.counts.jumps += 1;
            return;
        }
        self.note_payload(at, segment);
        if segment.flags.any(Flags::FIN) {
            self.fin = Some(end);
        }
        if self.is_keepalive(segment, start, end) {
            self.counts.keepalives += 1;
            return;
        }
        let pause = self.pause_facts(at);
        let mut is_new = end > self.nxt;
        let was_waiting = self.una < self.sent_end();
        if self.is_window_probe(segment, start, end) {
            self.on_window_probe(at);
            if is_new {
                self.push_probe(at, segment, start.max(self.nxt), end);
            }
            return;
        }
        if start < self.nxt {
            let from = start.max(self.una);
            if from >= self.probe_from {
                // The receiver had no room for the data when it was sent as a probe.
                self.on_first_in_window(at, segment, from, end.min(self.nxt));
                is_new = true;
            } else if !self.on_again(at, segment, identified, (start, end.min(self.nxt))) {
                return;
            }
        }
        (self.last_sent, self.last_sent_ns) = ((start, end, segment.ip_id), at.now);
        if end > self.nxt {
            let from = start.max(self.nxt);
            self.on_new(at, segment, from, end);
        }
        if is_new {
            if self.is_progress(at, was_waiting && pause.is_some()) {
                self.close_pause(at, pause, Closed::NewData);
            } else {
                self.gap.dirty = true;
                self.gap.new_segments += 1;
            }
        }
        self.rounds.note_flight(self.board.flight_bytes());
        self.note_what_the_sender_knew(at, end, (end > near).then_some(quiet_ns));
    }

    /// Returns whether a segment is a keepalive: its byte was sent before and has been
    /// acknowledged, or is the last one of a larger segment. It repairs nothing and asks for an
    /// answer (RFC 9293, 3.8.4).
    fn is_keepalive(&self, segment: &Segment, start: u64, end: u64) -> bool {
        if segment.payload_bytes > 1 || segment.flags.any(Flags::FIN) || end > self.nxt {
            return false;
        }
        let is_part = || end == self.nxt && self.board.at(start).is_some_and(|s| s.start < start);
        self.una == self.nxt || is_part()
    }

    /// Returns whether a segment is a window probe: less than a full segment from beyond the
    /// window's edge. The receiver cannot accept it; the sender only asks whether the window is
    /// open (RFC 9293, 3.8.6.1). A full segment there shows that the capture lacks a window
    /// update.
    fn is_window_probe(&self, segment: &Segment, start: u64, end: u64) -> bool {
        let is_beyond = self.has_ack && start >= self.edge && self.is_window_closed();
        is_beyond && end - start < self.mss() && !segment.flags.any(Flags::FIN)
    }

    /// Adds data that was sent as a window probe. It is known from here on, but does not count
    /// as sent.
    fn push_probe(&mut self, at: At, segment: &Segment, start: u64, end: u64) {
        if start > self.nxt {
            self.board.push(self.nxt, start, at.now, at.packet, 0);
        }
        self.probe_from = self.probe_from.min(start);
        self.counts.bytes += end - start;
        self.board.push(start, end, at.now, at.packet, 1);
        self.describe_last(segment);
        self.nxt = end;
        self.show(|| What::New {
            start: start.saturating_sub(ORIGIN),
            end: end.saturating_sub(ORIGIN),
        });
    }

    /// Processes data that was sent before only as a window probe and is now sent into an open
    /// window.
    fn on_first_in_window(&mut self, at: At, segment: &Segment, start: u64, end: u64) {
        self.board.cut(start, end);
        let (value, id) = (segment.timestamps.map_or(0, |s| s.value), segment.ip_id);
        let is_whole = self.board.change((start, end), false, |sent| {
            (sent.first_ns, sent.last_ns, sent.packet) = (at.now, at.now, at.packet);
            (sent.copies, sent.timestamp, sent.ip_id) = (1, value, id);
        });
        if !is_whole {
            self.counts.repeats_beyond += 1;
        }
        self.probe_from = if end < self.nxt { end } else { u64::MAX };
        (self.last_data_ns, self.last_data_bytes) = (at.now, end - start);
        self.unanswered_segments += 1;
        self.note_timestamp(segment);
    }

    fn describe_last(&mut self, segment: &Segment) {
        if let Some(sent) = self.board.last_mut() {
            sent.timestamp = segment.timestamps.map_or(0, |timestamps| timestamps.value);
            sent.ip_id = segment.ip_id;
        }
    }

    /// Notes what the sender knew when it sent this segment: the acknowledgements that had been
    /// captured one round trip between capture and sender before. `quiet_ns`: the time since
    /// the new data before, if this data is new.
    fn note_what_the_sender_knew(&mut self, at: At, end: u64, quiet_ns: Option<u64>) {
        let way_ns = self.sender_rtt_ns().unwrap_or(0);
        let Some((since_ns, (una, edge))) = self.sender_view.at(at.now, way_ns) else {
            return;
        };
        if self.scale.is_some() {
            let at_edge = end + self.mss() > edge;
            self.rounds
                .note_used_window(end.saturating_sub(una), at_edge);
        }
        let rtt_ns = self.rtt_min_ns();
        if quiet_ns.is_some_and(|quiet_ns| quiet_ns >= rtt_ns / 4) {
            let allowed_ns = (rtt_ns / 16).max(LET_GO_NS);
            self.rounds.note_burst(at.now - since_ns <= allowed_ns);
        }
    }

    /// Returns whether new data counts as progress. It does not if it is sent into a silence: a
    /// sender may probe the tail with new data (RFC 8985), and such data answers nothing.
    fn is_progress(&self, at: At, is_pause: bool) -> bool {
        let waiting = self.una < self.nxt && !self.board.is_empty() && self.board.len() > 1;
        let unanswered = at.now.saturating_sub(self.last_ack_ns) >= self.threshold_ns;
        !(is_pause && waiting && unanswered && self.receiver_side.samples > 0)
    }

    fn note_payload(&mut self, at: At, segment: &Segment) {
        let payload = u64::from(segment.payload_bytes);
        self.first_data_ns.get_or_insert(at.now);
        if payload > 0 {
            self.first_data.get_or_insert((at, self.peer_data));
        }
        self.has_data = true;
        self.counts.data_packets += 1;
        self.counts.ce_marked += u64::from(segment.ecn == 3);
        self.payload_max = self.payload_max.max(payload);
        if payload <= ETHERNET_PAYLOAD || self.payload_max <= JUMBO_PAYLOAD {
            self.mss_seen = self.mss_seen.max(payload);
        }
        if self.payload_max > JUMBO_PAYLOAD && self.mss_seen > ETHERNET_PAYLOAD {
            self.mss_seen = ETHERNET_PAYLOAD - super::TIMESTAMPS_BYTES;
        }
        self.loss_stats.last_data_ns = at.now;
    }

    /// Processes a segment without data: an acknowledgement, or a probe that has an old number.
    fn on_empty(&mut self, at: At, start: u64) {
        if !self.sequence.is_known() || start + 1 != self.una.max(ORIGIN) || !self.has_data {
            return;
        }
        if self.is_window_closed() || self.gap.opened.is_some() {
            self.on_window_probe(at);
        } else {
            self.counts.keepalives += 1;
        }
    }

    fn on_window_probe(&mut self, at: At) {
        self.gap.dirty = true;
        self.gap.window_probes.push(at.packet);
        self.gap.last_window_probe_ns = at.now;
        self.gap.probes_unanswered += u32::from(self.gap.is_probe_pending);
        self.gap.is_probe_pending = true;
    }

    fn on_new(&mut self, at: At, segment: &Segment, start: u64, end: u64) {
        if start > self.nxt {
            // The bytes between were skipped: lost before the capture, by it, or still in
            // flight.
            if self.begins_amidst() {
                self.una = self.una.max(start);
            } else {
                self.gap.dirty = true;
                self.gap.holes += 1;
                self.gap.hole = (self.nxt, start);
                self.board.push(self.nxt, start, at.now, at.packet, 0);
            }
            if self.after_open {
                self.note_after(|after| after.holes += 1);
            }
        }
        let idle = self.una >= self.nxt
            && at.now.saturating_sub(self.last_ack_ns)
                > self.sender_rtt_ns().unwrap_or(0) + NS_PER_MS;
        if idle {
            self.loss_stats.interrupt();
        }
        self.board.push(start, end, at.now, at.packet, 1);
        self.describe_last(segment);
        self.nxt = end;
        let fin = u64::from(segment.flags.any(Flags::FIN));
        let bytes = (end - start).saturating_sub(fin);
        self.counts.bytes += bytes;
        let segments = bytes.div_ceil(self.mss()).max(1);
        self.unanswered_segments += segments;
        self.burst_bytes = self.burst_bytes.saturating_add(bytes);
        if self.after_open {
            self.note_after(|after| {
                if bytes > 0 {
                    after.next_data_ns.get_or_insert(at.now);
                }
                after.burst_bytes += bytes;
                if !after.acked {
                    after.new_segments += segments;
                }
                if at.now <= after.prompt_until_ns {
                    after.prompt_segments += segments;
                    after.prompt_bytes += bytes;
                }
            });
        }
        self.tick_rounds(at);
        let mss = self.mss();
        if let Some(clocked) = &mut self.clocked {
            if clocked.sent(at.now, end.saturating_sub(ORIGIN), mss) {
                self.renew_threshold();
            }
        }
        self.rounds.note_new(at, bytes, idle);
        (self.last_data_ns, self.last_data_bytes) = (at.now, bytes);
        self.note_timestamp(segment);
        self.show(|| What::New {
            start: start.saturating_sub(ORIGIN),
            end: end.saturating_sub(ORIGIN),
        });
        while self.board.len() > self.options.outstanding_most {
            if let Some(end) = self.board.forget_head() {
                self.una = self.una.max(end);
                self.counts.forgotten += 1;
            }
        }
    }

    /// Notes how long after the data before it this data was sent, by the sender's own clock.
    fn note_timestamp(&mut self, segment: &Segment) {
        let value = segment.timestamps.map(|timestamps| timestamps.value);
        let ticks = value.zip(self.last_timestamp);
        self.ticks_apart = ticks
            .map(|(value, last)| value.wrapping_sub(last))
            .filter(|&ticks| ticks < 1 << 31);
        self.last_timestamp = value;
    }

    /// Returns whether this is the first captured data of a connection that had begun before.
    fn begins_amidst(&self) -> bool {
        !self.has_begin && self.counts.bytes == 0 && self.board.is_empty()
    }

    /// Processes data below the highest byte sent. Returns `false` if the segment is a second
    /// capture of one packet: then nothing happened.
    fn on_again(
        &mut self,
        at: At,
        segment: &Segment,
        identified: Identified,
        (start, end): (u64, u64),
    ) -> bool {
        if end <= self.una {
            let last = self.last_sent;
            if last == (start, end, segment.ip_id) && self.is_too_soon(at.now - self.last_sent_ns) {
                self.counts.copies += 1;
                return false;
            }
            if self.has_ack {
                self.on_acknowledged_again(at, segment, identified, (start, end));
            }
            return true;
        }
        let from = start.max(self.una);
        let Some(first) = self.board.cut(from, end) else {
            return true; // data that was sent before the capture began
        };
        let is_whole = start == first.start && end == first.end;
        let timestamp = segment.timestamps.map_or(0, |timestamps| timestamps.value);
        let is_same = first.ip_id == segment.ip_id && first.timestamp == timestamp && is_whole;
        let is_numbered = first.ip_id == segment.ip_id && self.ip_ids.tells(segment.ip_id);
        let since_ns = at.now.saturating_sub(first.last_ns);
        if first.copies > 0 && (is_numbered || is_same && self.is_too_soon(since_ns)) {
            self.counts.copies += 1;
            return false;
        }
        let segments = (end - first.start).div_ceil(self.mss()).max(1);
        if first.copies == 0 && self.is_overtaken(at, segment, &first, end) {
            self.counts.bytes += end - first.start;
            self.counts.out_of_order += segments;
            self.loss_stats.overtaken(at, 1);
            self.mark_copies(at, segment, (from, end), None);
            self.show(|| What::OutOfOrder {
                start: start.saturating_sub(ORIGIN),
                end: end.saturating_sub(ORIGIN),
            });
            return true;
        }
        if first.copies == 0 {
            self.counts.bytes += end - first.start;
            self.counts.lost_before += segments;
            self.note_hole_filled(first.start);
        } else {
            self.counts.lost_after += segments;
        }
        if first.sacked {
            self.counts.resent_reported += segments;
        }
        let kind = self.kind_of(at, &first, end);
        let was_passed = self.is_passed(&first, end, kind);
        self.note_retransmitted(at, &first, end, kind);
        let recent = Recent {
            start: first.start,
            end,
            segments,
            kind,
            at_ns: at.now,
            was_passed,
            spurious: false,
        };
        self.retransmitted(at, recent);
        if first.copies >= 2 && first.kind != Some(Kind::Probe) {
            self.retransmissions.of_lost_retransmission += segments;
        }
        self.mark_copies(at, segment, (from, end), Some(kind));
        true
    }

    /// Notes that a repair filled a hole that a pause ended with.
    fn note_hole_filled(&mut self, start: u64) {
        if let Some(stall) = self.stalls.last_mut() {
            let (first, end) = stall.gap.hole;
            stall.is_hole_filled |= (first..end).contains(&start);
        }
    }

    /// Returns whether a copy came too soon for any answer or timer to have made the sender
    /// repeat it: the network or the capture made the copy.
    fn is_too_soon(&self, since_ns: u64) -> bool {
        let whole_ns = self.receiver_rtt_ns().zip(self.sender_rtt_ns());
        since_ns < whole_ns.map_or(COPY_NS, |(receiver_ns, sender_ns)| receiver_ns + sender_ns)
    }

    /// Returns whether a segment that fills a hole was sent before the segments that overtook
    /// it.
    fn is_overtaken(&self, at: At, segment: &Segment, hole: &Sent, next: u64) -> bool {
        let late_ns = at.now.saturating_sub(hole.first_ns);
        let next = self.board.at(next).filter(|next| next.copies == 1);
        if let (Some(timestamps), Some(next)) = (segment.timestamps, next) {
            let age = timestamps.value.wrapping_sub(next.timestamp) as i32;
            if age != 0 {
                return age < 0;
            }
        }
        // A repair needs a report of the hole and then its own path to here: a round trip.
        let round_ns = self.receiver_rtt_ns().and(self.sender_rtt_ns());
        late_ns < round_ns.map_or(REORDERED_NS, |_| self.rtt_min_ns() / 4 * 3)
    }

    fn mark_copies(&mut self, at: At, segment: &Segment, range: (u64, u64), kind: Option<Kind>) {
        let is_whole = self.board.change(range, kind.is_some(), |sent| {
            let again = u8::from(kind.is_some() && sent.copies == 0);
            // A retransmission that fills a hole is a second copy: the first one was not
            // captured.
            sent.copies = sent.copies.saturating_add(1 + again);
            sent.last_ns = at.now;
            sent.packet = at.packet;
            let timestamp = segment.timestamps.map_or(0, |timestamps| timestamps.value);
            sent.has_new_timestamp = timestamp != sent.timestamp;
            sent.timestamp = timestamp;
            sent.ip_id = segment.ip_id;
            sent.kind = kind.or(sent.kind);
        });
        if !is_whole {
            self.counts.repeats_beyond += 1;
        }
    }

    /// Returns what made the sender retransmit `first` and what follows it.
    fn kind_of(&mut self, at: At, first: &Sent, end: u64) -> Kind {
        let is_head = first.start <= self.una;
        let is_tail = end >= self.nxt;
        let since_ns = at.now.saturating_sub(self.last_ack_ns.max(first.last_ns));
        let quiet_ns = at.now.saturating_sub(self.last_ack_ns);
        let rto_ns = self.rto_ns();
        let ran_out = is_head && since_ns >= rto_ns / 10 * 8;
        if self.loss_point.is_some() {
            return if ran_out {
                Kind::Timeout
            } else {
                Kind::AfterTimeout
            };
        }
        if ran_out {
            return Kind::Timeout;
        }
        let Some(rtt_ns) = self.rtt_ns() else {
            return if self.has_loss_evidence(end) {
                Kind::Fast
            } else {
                Kind::Unclear
            };
        };
        let silent = quiet_ns >= (rtt_ns + rtt_ns / 2).max(AT_ONCE_NS);
        if silent && is_tail {
            return Kind::Probe;
        }
        let reported = self.board.sacked_above(end);
        if silent && is_head && reported < 3 * self.mss() {
            return Kind::Timeout;
        }
        if self.has_loss_evidence(end) {
            Kind::Fast
        } else {
            Kind::Unclear
        }
    }

    /// Returns whether the receiver had told of data above a segment while the segment, sent
    /// once, was missing. A sender that goes back also sends again what nobody missed.
    fn is_passed(&self, first: &Sent, end: u64, kind: Kind) -> bool {
        let is_hole = self.board.highest_sacked() > end
            || first.start <= self.una && self.gap.duplicate_acks.count() > 0;
        kind == Kind::Fast && first.copies == 1 && !first.sacked && is_hole
    }

    fn has_loss_evidence(&self, end: u64) -> bool {
        self.board.highest_sacked() > end
            || self.gap.duplicate_acks.count() > 0
            || self.recovery_point.is_some()
    }

    fn retransmitted(&mut self, at: At, recent: Recent) {
        let (start, end, segments, kind) = (recent.start, recent.end, recent.segments, recent.kind);
        self.tick_rounds(at);
        self.rounds.note_retransmitted(at, segments);
        self.loss_stats.retransmitted(at);
        let count = match kind {
            Kind::Fast => &mut self.retransmissions.fast,
            Kind::Timeout => &mut self.retransmissions.timeout,
            Kind::AfterTimeout => &mut self.retransmissions.after_timeout,
            Kind::Probe => &mut self.retransmissions.probe,
            Kind::Unclear => &mut self.retransmissions.unclear,
        };
        *count += segments;
        match kind {
            Kind::Timeout => {
                self.loss_point = Some(self.nxt);
                self.recovery_point = None;
                self.backoff = self.backoff.saturating_add(1);
                self.board.all_lost();
                self.rounds.note_collapse();
            }
            Kind::Fast if self.recovery_point.is_none() => {
                self.recovery_point = Some(self.nxt);
                self.loss_stats.fast_begins();
            }
            _ => {}
        }
        if self.after_open {
            self.note_after(|after| after.retransmissions += 1);
        }
        if self.recent.len() >= RECENT_RETRANSMISSIONS {
            self.recent.pop_front();
        }
        self.recent.push_back(recent);
        self.show(|| What::Retransmission {
            start: start.saturating_sub(ORIGIN),
            end: end.saturating_sub(ORIGIN),
            kind,
        });
    }

    /// Processes a retransmission whose acknowledgement was captured before: the sender did not
    /// have it.
    fn on_acknowledged_again(
        &mut self,
        at: At,
        segment: &Segment,
        identified: Identified,
        (start, end): (u64, u64),
    ) {
        let segments = (end - start).div_ceil(self.mss()).max(1);
        let since_ns = at.now.saturating_sub(self.last_ack_ns);
        let kind = if since_ns >= self.rto_ns() / 10 * 8 {
            Kind::Timeout
        } else {
            Kind::Unclear
        };
        self.counts.retransmitted_acked += 1;
        self.gap.dirty = true;
        self.gap.retransmitted_acked.push(at.packet);
        self.gap.first_acked_ns.get_or_insert(at.now);
        let (acked, is_below_window) = self.acked_by;
        let echo = segment.timestamps.and_then(|timestamps| timestamps.echo);
        self.gap.known.repeated(echo, acked, identified.sent);
        self.gap.known.below_window |= is_below_window;
        let unknown_bytes = self.una.saturating_sub(start);
        self.gap.unknown_acked_bytes = self.gap.unknown_acked_bytes.max(unknown_bytes);
        self.gap.acked_answer = (at.now, 0);
        self.retransmissions.spurious += segments;
        match kind {
            Kind::Timeout => self.retransmissions.timeout += segments,
            _ => self.retransmissions.unclear += segments,
        }
        self.show(|| What::Retransmission {
            start: start.saturating_sub(ORIGIN),
            end: end.saturating_sub(ORIGIN),
            kind,
        });
    }

    fn note_retransmitted(&mut self, at: At, first: &Sent, end: u64, kind: Kind) {
        let reorder_ns = self.rtt_min_ns() / 4;
        let retransmitted = Retransmitted {
            at_ns: at.now,
            bytes: end - first.start,
            copies_before: first.copies,
            last_ns: first.last_ns,
            kind_before: first.kind,
            sacked_above: self.board.sacked_above(first.start),
            sent_above: self.board.captured_above(end),
            was_knowable: self.newest_delivered_ns > first.last_ns + reorder_ns,
            is_head: first.start <= self.una,
        };
        let is_head = retransmitted.is_head;
        let gap = &mut self.gap;
        gap.dirty = true;
        if is_head {
            let interval_ns = at.now.saturating_sub(first.last_ns);
            gap.head_copies += 1;
            gap.backoffs +=
                u32::from(gap.head_interval_ns > 0 && interval_ns >= gap.head_interval_ns / 2 * 3);
            gap.head_interval_ns = interval_ns;
        }
        gap.retransmitted.push(at.packet);
        gap.last_resent_ns = at.now;
        gap.retransmitted_bytes_min = match gap.retransmitted.count() {
            1 => retransmitted.bytes,
            _ => gap.retransmitted_bytes_min.min(retransmitted.bytes),
        };
        gap.retransmitted_bytes_max = gap.retransmitted_bytes_max.max(retransmitted.bytes);
        if end > gap.retransmitted_high {
            gap.retransmitted_high = end;
            gap.retransmitted_segments += 1;
        }
        match kind {
            Kind::Timeout => {
                gap.timeouts += 1;
                gap.first_timeout.get_or_insert(retransmitted);
            }
            Kind::Probe => {
                gap.probes += 1;
                gap.first_probe.get_or_insert(retransmitted);
            }
            _ => gap.fast += 1,
        }
    }
}
