// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data that the sender sends: new, retransmitted, or late.

use std::num::NonZeroU64;

use capture::segment::{Flags, Segment};
use units::time::NS_PER_MS;

use super::Flow;
use super::at::At;
use super::facts::{Closed, LET_GO_NS};
use super::ip_ids::Identified;
use super::sent::timestamp;
use super::sequence::{FAR, ORIGIN};
use super::state::data::FirstData;
use crate::history::What;

/// What comes later after a probe than this, beside one and a half round trips, is not its answer.
pub(super) const PROBE_ANSWER_NS: u64 = 10 * NS_PER_MS;

impl Flow {
    /// Processes a segment of the sender that is neither SYN nor RST.
    pub(crate) fn on_data(&mut self, at: At, segment: &Segment, identified: &Identified) {
        if let Some(timestamps) = segment.timestamps {
            self.sizes.has_timestamps = true;
            let pause_ns = self.pauses.threshold_ns;
            self.sender_clock.note(timestamps.value, at.now, pause_ns);
            let echo = timestamps.echo.filter(|_| segment.flags.any(Flags::ACK));
            self.stamps.echo = echo;
            if let Some(echo) = echo {
                if self.pauses.gap.known.is_asked() {
                    let way_ns = self.trips.sender_rtt_ns().unwrap_or(0);
                    self.pauses.gap.known.echoed(echo, at.now, way_ns);
                }
                if self.trips.sender_side.echoed(echo, at.now) {
                    self.renew_threshold();
                }
            }
        }
        let length = u64::from(segment.sequence_length());
        let near = self.space.nxt;
        let quiet_ns = at.now.saturating_sub(self.data.last_ns());
        let start = self.space.sequence.offset(segment.seq, near);
        if length == 0 {
            self.on_empty(at, start);
            return;
        }
        let end = start + length;
        if start > self.space.nxt + FAR || end + FAR < self.space.una || length > FAR {
            self.counts.jumps += 1;
            return;
        }
        self.note_payload(at, segment);
        if segment.flags.any(Flags::FIN) {
            self.space.fin = NonZeroU64::new(end);
            if self.pauses.after_open {
                self.note_after(|after| after.has_ended = true);
            }
        }
        if self.is_keepalive(segment, start, end) {
            self.counts.keepalives += 1;
            return;
        }
        self.data.missed = identified.sent.map(|sent| sent - 1);
        let pause = self.pause_facts(at);
        let mut is_new = end > self.space.nxt;
        let was_waiting = self.space.una < self.space.sent_end();
        if self.is_window_probe(segment, start, end) {
            self.on_window_probe(at);
            if is_new {
                self.push_probe(at, segment, start.max(self.space.nxt), end);
            }
            return;
        }
        if start < self.space.nxt {
            let from = start.max(self.space.una);
            if self
                .space
                .probe_from
                .is_some_and(|probe| from >= probe.get())
            {
                // The receiver had no room for the data when it was sent as a probe.
                self.on_first_in_window(at, segment, from, end.min(self.space.nxt));
                is_new = true;
            } else if !self.on_sent_before(
                at,
                segment,
                identified,
                (start, end.min(self.space.nxt)),
            ) {
                return;
            }
        }
        (self.data.last_sent, self.data.last_sent_ns) = ((start, end, segment.ip_id), at.now);
        if end > self.space.nxt {
            let from = start.max(self.space.nxt);
            self.on_new(at, segment, from, end);
        }
        if is_new {
            if self.is_progress(at, was_waiting && pause.is_some()) {
                self.close_pause(at, pause, Closed::NewData);
            } else {
                self.pauses.gap.dirty = true;
                self.pauses.gap.new_segments += 1;
            }
        }
        self.rounds.note_flight(self.board.flight_bytes());
        self.note_what_the_sender_knew(at, end, (end > near).then_some(quiet_ns));
    }

    /// Returns whether a segment asks for nothing but a sign of life, as far as can be told before
    /// it is processed: its one byte was sent before, or may have been before the capture began.
    pub(crate) fn is_sign_of_life(&mut self, segment: &Segment) -> bool {
        if segment.payload_bytes != 1 {
            return false;
        }
        let near = self.space.nxt;
        self.begins_amidst() || self.space.sequence.offset(segment.seq, near) < near
    }

    /// Returns whether all data of a segment was captured before, and whether the segment ends below
    /// what was captured. The other side drops such a segment if it has that already, with whatever it
    /// acknowledges (RFC 9293, 3.10.7.4).
    #[inline]
    pub(crate) fn is_known(&mut self, segment: &Segment) -> (bool, bool) {
        if !self.data.is_any {
            return (false, false);
        }
        let near = self.space.nxt;
        let start = self.space.sequence.offset(segment.seq, near);
        let is_repeat = start + u64::from(segment.payload_bytes) <= near;
        let is_passed = start + u64::from(segment.sequence_length()) < near;
        (is_repeat, is_passed)
    }

    /// Returns whether a segment is a keepalive: its byte was sent before and has been
    /// acknowledged, or is the last one of a larger segment. It repairs nothing and asks for an
    /// answer (RFC 9293, 3.8.4).
    fn is_keepalive(&self, segment: &Segment, start: u64, end: u64) -> bool {
        if segment.payload_bytes > 1 || segment.flags.any(Flags::FIN) || end > self.space.nxt {
            return false;
        }
        let is_part =
            || end == self.space.nxt && self.board.at(start).is_some_and(|s| s.start < start);
        self.space.una == self.space.nxt || is_part()
    }

    /// Returns whether a segment is a window probe: less than a full segment from beyond the
    /// window's edge. The receiver cannot accept it; the sender only asks whether the window is
    /// open (RFC 9293, 3.8.6.1). A full segment there shows that the capture lacks a window
    /// update.
    fn is_window_probe(&self, segment: &Segment, start: u64, end: u64) -> bool {
        let is_beyond = self.acks.is_any && start >= self.window.edge && self.is_window_closed();
        is_beyond && end - start < self.sizes.mss() && !segment.flags.any(Flags::FIN)
    }

    /// Adds data that was sent as a window probe. It is known from here on, but does not count
    /// as sent.
    fn push_probe(&mut self, at: At, segment: &Segment, start: u64, end: u64) {
        if start > self.space.nxt {
            self.board
                .push(self.space.nxt, start, at.now, at.packet.get(), 0);
        }
        let probe_from = self.space.probe_from;
        let from = probe_from.map_or(start, |from| from.get().min(start));
        self.space.probe_from = NonZeroU64::new(from);
        self.counts.bytes += end - start;
        self.board.push(start, end, at.now, at.packet.get(), 1);
        self.describe_last(segment);
        self.space.nxt = end;
        self.show(|| What::New {
            start: start.saturating_sub(ORIGIN),
            end: end.saturating_sub(ORIGIN),
        });
    }

    /// Processes data that was sent before only as a window probe and is now sent into an open
    /// window.
    fn on_first_in_window(&mut self, at: At, segment: &Segment, start: u64, end: u64) {
        self.board.cut(start, end);
        let (value, id) = (timestamp(segment), segment.ip_id);
        let is_whole = self.board.change((start, end), false, |sent| {
            (sent.first_ns, sent.last_ns, sent.packet) = (at.now, at.now, at.packet.get());
            (sent.copies, sent.timestamp, sent.ip_id) = (1, value, id);
        });
        if !is_whole {
            self.counts.repeats_beyond += 1;
        }
        self.space.probe_from = NonZeroU64::new(end).filter(|_| end < self.space.nxt);
        (self.data.last_ns, self.data.last_bytes) = (NonZeroU64::new(at.now), end - start);
        self.data.unanswered_segments += 1;
        self.note_timestamp(segment);
    }

    fn describe_last(&mut self, segment: &Segment) {
        if let Some(sent) = self.board.last_mut() {
            sent.timestamp = timestamp(segment);
            sent.ip_id = segment.ip_id;
        }
    }

    /// Notes what the sender knew when it sent this segment: the acknowledgements that had been
    /// captured one round trip between capture and sender before. `quiet_ns`: the time since
    /// the new data before, if this data is new.
    fn note_what_the_sender_knew(&mut self, at: At, end: u64, quiet_ns: Option<u64>) {
        let way_ns = self.trips.sender_rtt_ns().unwrap_or(0);
        let Some((since_ns, (una, edge))) = self.sender_view.at(at.now, way_ns) else {
            return;
        };
        if self.window.scale.is_some() {
            let at_edge = end + self.sizes.mss() > edge;
            self.rounds
                .note_used_window(end.saturating_sub(una), at_edge);
        }
        let Some(quiet_ns) = quiet_ns else { return };
        let rtt_ns = self.trips.receiver_rtt_ns().unwrap_or(0) + way_ns;
        if quiet_ns >= rtt_ns / 4 {
            let allowed_ns = (rtt_ns / 16).max(LET_GO_NS);
            self.rounds
                .note_burst(at.now.saturating_sub(since_ns) <= allowed_ns);
        }
    }

    /// Returns whether new data counts as progress. It does not if it is sent into a silence: a
    /// sender may probe the tail with new data (RFC 8985), and such data answers nothing.
    fn is_progress(&self, at: At, is_pause: bool) -> bool {
        let waiting = || self.space.una < self.space.nxt && self.board.len() > 1;
        let unanswered = || at.now.saturating_sub(self.acks.last_ns) >= self.pauses.threshold_ns;
        !(is_pause && waiting() && unanswered() && self.trips.receiver_side.samples > 0)
    }

    fn note_payload(&mut self, at: At, segment: &Segment) {
        let payload = u64::from(segment.payload_bytes);
        self.data.first_ns.get_or_insert(at.now);
        if payload > 0 {
            let (asked, settled_ns) = (self.peer.data, self.peer.settled_ns);
            self.data.first.get_or_insert(FirstData {
                at,
                asked,
                settled_ns,
            });
        }
        self.data.is_any = true;
        self.counts.data_packets += 1;
        self.counts.ce_marked += u64::from(segment.ecn == 3);
        self.sizes.note_payload(payload);
        self.loss_stats.last_data_ns = at.now;
    }

    /// Processes a segment without data: an acknowledgement, or a probe that has an old number.
    fn on_empty(&mut self, at: At, start: u64) {
        if !self.space.sequence.is_known()
            || start + 1 != self.space.una.max(ORIGIN)
            || !self.data.is_any
        {
            return;
        }
        if self.is_window_closed() || self.pauses.gap.opened.is_some() {
            self.on_window_probe(at);
        } else {
            self.counts.keepalives += 1;
        }
    }

    fn on_window_probe(&mut self, at: At) {
        self.pauses.gap.dirty = true;
        self.pauses.gap.window_probes.push(at.packet.get());
        self.pauses.gap.last_window_probe_ns = at.now;
        self.pauses.gap.probes_unanswered += u32::from(self.pauses.gap.is_probe_pending);
        self.pauses.gap.is_probe_pending = true;
    }

    fn on_new(&mut self, at: At, segment: &Segment, start: u64, end: u64) {
        if start > self.space.nxt {
            // The bytes between were skipped: lost before the capture, by it, or still in
            // flight.
            if self.begins_amidst() {
                // The receiver said what it has: the rest was under way when the capture began,
                // or lost before.
                if self.acks.is_any && start - self.space.una <= super::USUAL_FLIGHT {
                    self.board
                        .push(self.space.una, start, at.now, at.packet.get(), 0);
                    self.space.early_end = NonZeroU64::new(start);
                } else {
                    self.space.una = self.space.una.max(start);
                }
            } else {
                self.pauses.gap.dirty = true;
                self.pauses.gap.holes += 1;
                self.pauses.gap.hole = (self.space.nxt, start);
                self.board
                    .push(self.space.nxt, start, at.now, at.packet.get(), 0);
            }
            if self.pauses.after_open {
                self.note_after(|after| after.holes += 1);
            }
        }
        let idle = self.space.una >= self.space.nxt
            && at.now.saturating_sub(self.acks.last_ns)
                > self.trips.sender_rtt_ns().unwrap_or(0) + NS_PER_MS;
        if idle {
            self.loss_stats.interrupt();
        }
        let mss = self.sizes.mss();
        let is_small = |bytes: u64| bytes > 0 && bytes < mss;
        let under_way = self.space.una < self.space.nxt && is_small(self.data.last_bytes);
        self.data.sends_small_ones |= under_way && is_small(end - start);
        self.board.push(start, end, at.now, at.packet.get(), 1);
        self.describe_last(segment);
        self.space.nxt = end;
        let fin = u64::from(segment.flags.any(Flags::FIN));
        let bytes = (end - start).saturating_sub(fin);
        self.counts.bytes += bytes;
        // Most segments are one, which takes no division.
        let segments = if bytes <= mss { 1 } else { bytes.div_ceil(mss) };
        self.data.unanswered_segments += segments;
        self.pauses.burst_bytes = self.pauses.burst_bytes.saturating_add(bytes);
        self.note_timestamp(segment);
        if self.pauses.after_open {
            let ticks_apart = self.data.ticks_apart;
            self.note_after(|after| {
                if bytes > 0 && after.next_data_ns.is_none() {
                    (after.next_data_ns, after.next_ticks) = (NonZeroU64::new(at.now), ticks_apart);
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
        if let Some(clocked) = &mut self.trips.clocked {
            if clocked.sent(at.now, end.saturating_sub(ORIGIN), mss) {
                self.renew_threshold();
            }
        }
        self.rounds.note_new(at, bytes, idle);
        // Sooner behind this side's last data, it may be an answer to what was asked before.
        let quiet_ns = self.stamps.asked_ns.saturating_sub(self.data.last_ns());
        if bytes > 0 && quiet_ns > self.trips.handshake_sender_ns.unwrap_or(0) {
            self.stamps.note_answer(at.now);
        }
        (self.data.last_ns, self.data.last_bytes) = (NonZeroU64::new(at.now), bytes);
        self.show(|| What::New {
            start: start.saturating_sub(ORIGIN),
            end: end.saturating_sub(ORIGIN),
        });
        while self.board.len() > self.options.outstanding_most {
            if let Some(end) = self.board.forget_head() {
                self.space.una = self.space.una.max(end);
                self.counts.forgotten += 1;
            }
        }
    }

    /// Notes how long after the data before it this data was sent, by the sender's own clock.
    fn note_timestamp(&mut self, segment: &Segment) {
        let value = segment.timestamps.map(|timestamps| timestamps.value);
        let ticks = value.zip(self.data.last_timestamp);
        self.data.ticks_apart = ticks
            .map(|(value, last)| value.wrapping_sub(last))
            .filter(|&ticks| ticks < 1 << 31);
        self.data.last_timestamp = value;
    }

    /// Returns whether an answer of this side came sooner than that.
    pub(crate) fn has_answered_within(&self, ns: u64) -> bool {
        self.stamps
            .answered_us
            .is_some_and(|us| u64::from(us.get()) * 1000 < ns)
    }

    /// Returns whether this is the first captured data of a connection that had begun before.
    fn begins_amidst(&self) -> bool {
        !self.space.has_begin && self.counts.bytes == 0 && self.board.is_empty()
    }
}
