// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data below the highest byte sent: retransmitted, overtaken, or captured twice.

use std::num::{NonZeroU32, NonZeroU64};

use capture::segment::Segment;
use units::time::NS_PER_MS;

use super::Flow;
use super::at::At;
use super::facts::Retransmitted;
use super::ip_ids::Identified;
use super::sent::{Sent, timestamp};
use super::sequence::ORIGIN;
use super::state::repairs::Recent;
use crate::history::{RetransmissionKind as Kind, What};

/// Retransmissions that are remembered because a late report can still be about them.
const RECENT_RETRANSMISSIONS: usize = 64;
/// Data that came late by less than this was overtaken, where nothing else tells.
const REORDERED_NS: u64 = 3 * NS_PER_MS;
/// A copy of a packet follows it within this time, where the round trip is not known.
const COPY_NS: u64 = NS_PER_MS;
/// An acknowledgement that comes within this time, beside the round trip, is an immediate
/// answer.
const AT_ONCE_NS: u64 = 10 * NS_PER_MS;

impl Flow {
    /// Notes a packet that was captured twice.
    pub(crate) fn note_copy(&mut self, segment: &Segment) {
        self.counts.copies += 1;
        let start = self.space.sequence.offset(segment.seq, self.space.nxt);
        let is_it = |recent: &&mut Recent| (recent.start..recent.end).contains(&start);
        if let Some(recent) = self.repairs.recent.iter_mut().rev().find(is_it) {
            recent.is_copied = true;
        }
    }

    /// Processes data below the highest byte sent. Returns `false` if the segment is a second
    /// capture of one packet: then nothing happened.
    pub(super) fn on_sent_before(
        &mut self,
        at: At,
        segment: &Segment,
        identified: &Identified,
        (start, end): (u64, u64),
    ) -> bool {
        if end <= self.space.una {
            let last = self.data.last_sent;
            if last == (start, end, segment.ip_id)
                && self.is_too_soon(at.now - self.data.last_sent_ns)
            {
                self.note_copy(segment);
                return false;
            }
            if self.acks.is_any {
                self.on_retransmitted_acked(at, segment, identified, (start, end));
            }
            return true;
        }
        let from = start.max(self.space.una);
        let Some(first) = self.board.cut(from, end) else {
            return true; // data that was sent before the capture began
        };
        let is_whole = start == first.start && end == first.end;
        let is_same_stamp = first.timestamp == timestamp(segment);
        let is_same = first.ip_id == segment.ip_id && is_same_stamp && is_whole;
        let is_numbered = first.ip_id == segment.ip_id && self.ip_ids.tells(segment.ip_id);
        let since_ns = at.now.saturating_sub(first.last_ns);
        if first.copies > 0 && (is_numbered || is_same && self.is_too_soon(since_ns)) {
            self.note_copy(segment);
            return false;
        }
        let segments = (end - first.start).div_ceil(self.sizes.mss()).max(1);
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
        self.note_retransmitted(at, &first, end, (kind, identified));
        let recent = Recent {
            start: first.start,
            end,
            segments,
            kind,
            at_ns: at.now,
            was_passed,
            spurious: false,
            is_copied: false,
        };
        self.retransmitted(at, recent);
        if first.copies >= 2 && first.kind != Some(Kind::Probe) {
            self.repairs.counts.of_lost_retransmission += segments;
        }
        self.mark_copies(at, segment, (from, end), Some(kind));
        true
    }

    /// Notes that a repair filled a hole that a pause ended with.
    fn note_hole_filled(&mut self, start: u64) {
        if let Some(stall) = self.pauses.closed.last_mut() {
            let (first, end) = stall.gap.hole;
            stall.after.is_hole_filled |= (first..end).contains(&start);
        }
    }

    /// Returns whether a copy came too soon for any answer or timer to have made the sender
    /// repeat it: the network or the capture made the copy.
    fn is_too_soon(&self, since_ns: u64) -> bool {
        let whole_ns = self.trips.receiver_rtt_ns().zip(self.trips.sender_rtt_ns());
        since_ns < whole_ns.map_or(COPY_NS, |(receiver_ns, sender_ns)| receiver_ns + sender_ns)
    }

    /// Returns whether a segment that fills a hole was sent before the segments that overtook
    /// it.
    fn is_overtaken(&self, at: At, segment: &Segment, hole: &Sent, next: u64) -> bool {
        let late_ns = at.now.saturating_sub(hole.first_ns);
        let next = self.board.at(next).filter(|next| next.copies == 1);
        if let (Some(timestamps), Some(next)) = (segment.timestamps, next) {
            let next = next.timestamp.map_or(0, NonZeroU32::get);
            let age = timestamps.value.wrapping_sub(next) as i32;
            if age != 0 {
                return age < 0;
            }
        }
        // A repair needs a report of the hole and then its own path to here: a round trip.
        let round_ns = self.trips.receiver_rtt_ns().and(self.trips.sender_rtt_ns());
        late_ns < round_ns.map_or(REORDERED_NS, |_| self.trips.rtt_min_ns() / 4 * 3)
    }

    fn mark_copies(&mut self, at: At, segment: &Segment, range: (u64, u64), kind: Option<Kind>) {
        let is_whole = self.board.change(range, kind.is_some(), |sent| {
            let again = u8::from(kind.is_some() && sent.copies == 0);
            // A retransmission that fills a hole is a second copy: the first one was not
            // captured.
            sent.copies = sent.copies.saturating_add(1 + again);
            sent.last_ns = at.now;
            sent.packet = at.packet.get();
            let timestamp = timestamp(segment);
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
        let is_head = first.start <= self.space.una;
        let is_tail = end >= self.space.nxt;
        let since_ns = at.now.saturating_sub(self.acks.last_ns.max(first.last_ns));
        let quiet_ns = at.now.saturating_sub(self.acks.last_ns);
        let rto_ns = self.trips.rto_ns();
        let ran_out = is_head && since_ns >= rto_ns / 10 * 8;
        if self.repairs.loss_point.is_some() {
            return if ran_out {
                Kind::Timeout
            } else {
                Kind::AfterTimeout
            };
        }
        if ran_out {
            return Kind::Timeout;
        }
        let Some(rtt_ns) = self.trips.rtt_ns() else {
            return if self.has_loss_evidence(end) {
                Kind::Fast
            } else {
                Kind::Unclear
            };
        };
        // Neither an answer nor a copy for so long.
        let silent = quiet_ns >= (rtt_ns + rtt_ns / 2).max(AT_ONCE_NS) && since_ns >= rtt_ns;
        if silent && is_tail {
            return Kind::Probe;
        }
        let reported = self.board.sacked_above(end);
        if silent && is_head && reported < 3 * self.sizes.mss() {
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
        let is_hole = self.board.highest_sacked() > Some(end)
            || first.start <= self.space.una && self.pauses.gap.duplicate_acks.count() > 0;
        kind == Kind::Fast && first.copies == 1 && !first.sacked && is_hole
    }

    fn has_loss_evidence(&self, end: u64) -> bool {
        self.board.highest_sacked() > Some(end)
            || self.pauses.gap.duplicate_acks.count() > 0
            || self.repairs.recovery_point.is_some()
    }

    fn retransmitted(&mut self, at: At, recent: Recent) {
        let (start, end, segments, kind) = (recent.start, recent.end, recent.segments, recent.kind);
        self.tick_rounds(at);
        self.rounds.note_retransmitted(at, segments);
        self.loss_stats.retransmitted(at);
        let count = match kind {
            Kind::Fast => &mut self.repairs.counts.fast,
            Kind::Timeout => &mut self.repairs.counts.timeout,
            Kind::AfterTimeout => &mut self.repairs.counts.after_timeout,
            Kind::Probe => &mut self.repairs.counts.probe,
            Kind::Unclear => &mut self.repairs.counts.unclear,
        };
        *count += segments;
        match kind {
            Kind::Timeout => {
                self.repairs.loss_point = NonZeroU64::new(self.space.nxt);
                self.repairs.recovery_point = None;
                self.board.all_lost();
                self.rounds.note_collapse();
            }
            Kind::Fast if self.repairs.recovery_point.is_none() => {
                self.repairs.recovery_point = NonZeroU64::new(self.space.nxt);
                self.loss_stats.fast_begins();
            }
            _ => {}
        }
        if self.pauses.after_open {
            self.note_after(|after| after.retransmissions += 1);
        }
        if self.repairs.recent.len() >= RECENT_RETRANSMISSIONS {
            self.repairs.recent.pop_front();
        }
        self.repairs.recent.push_back(recent);
        self.show(|| What::Retransmission {
            start: start.saturating_sub(ORIGIN),
            end: end.saturating_sub(ORIGIN),
            kind,
        });
    }

    /// Processes a retransmission whose acknowledgement was captured before: the sender did not
    /// have it.
    fn on_retransmitted_acked(
        &mut self,
        at: At,
        segment: &Segment,
        identified: &Identified,
        (start, end): (u64, u64),
    ) {
        let segments = (end - start).div_ceil(self.sizes.mss()).max(1);
        let since_ns = at.now.saturating_sub(self.acks.last_ns);
        let kind = if since_ns >= self.trips.rto_ns() / 10 * 8 {
            Kind::Timeout
        } else {
            Kind::Unclear
        };
        self.counts.retransmitted_acked += 1;
        self.pauses.gap.dirty = true;
        self.pauses.gap.retransmitted_acked.push(at.packet.get());
        if self.pauses.gap.retransmitted_acked.count() == 1 {
            self.pauses.gap.first_acked_ns = at.now;
        }
        self.pauses.gap.last_acked_ns = at.now;
        let acked = self.acks.by;
        let echo = segment.timestamps.and_then(|timestamps| timestamps.echo);
        self.pauses.gap.known.repeated(echo, acked, identified.sent);
        let way_ns = self.trips.sender_rtt_ns().unwrap_or(0);
        let since_acked_ns = at.now.saturating_sub(self.acks.settled_ns);
        let is_last = self.space.una >= self.space.nxt && end == self.space.una;
        self.pauses.gap.known.crossed |= is_last && since_acked_ns < way_ns / 4 * 3;
        self.pauses.gap.known.below_window |= acked.is_below_window;
        let unknown_bytes = self.space.una.saturating_sub(start);
        self.pauses.gap.unknown_acked_bytes =
            self.pauses.gap.unknown_acked_bytes.max(unknown_bytes);
        self.pauses.gap.acked_answer = None;
        self.repairs.counts.spurious += segments;
        match kind {
            Kind::Timeout => self.repairs.counts.timeout += segments,
            _ => self.repairs.counts.unclear += segments,
        }
        self.show(|| What::Retransmission {
            start: start.saturating_sub(ORIGIN),
            end: end.saturating_sub(ORIGIN),
            kind,
        });
    }

    fn note_retransmitted(
        &mut self,
        at: At,
        first: &Sent,
        end: u64,
        (kind, identified): (Kind, &Identified),
    ) {
        let reorder_ns = self.trips.rtt_min_ns() / 4;
        let retransmitted = Retransmitted {
            at_ns: at.now,
            bytes: end - first.start,
            copies_before: first.copies,
            last_ns: first.last_ns,
            kind_before: first.kind,
            sacked_above: self.board.sacked_above(first.start),
            sent_above: self.board.captured_above(end),
            was_knowable: self.acks.newest_delivered_ns > first.last_ns + reorder_ns,
            missed: identified.sent.map(|sent| sent - 1),
            is_head: first.start <= self.space.una,
        };
        let is_head = retransmitted.is_head;
        let gap = &mut self.pauses.gap;
        gap.dirty = true;
        if is_head {
            let interval_ns = at.now.saturating_sub(first.last_ns);
            gap.head_copies += 1;
            gap.backoffs +=
                u32::from(gap.head_interval_ns > 0 && interval_ns >= gap.head_interval_ns / 2 * 3);
            gap.head_interval_ns = interval_ns;
        }
        gap.retransmitted.push(at.packet.get());
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
