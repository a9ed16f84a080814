// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes what the receiver says: acknowledgements, SACK blocks, windows.

use std::num::{NonZeroU32, NonZeroU64};

use capture::segment::Segment;
use units::time::NS_PER_MS;

use super::Flow;
use super::at::At;
use super::data::PROBE_ANSWER_NS;
use super::facts::{Closed, Facts};
use super::ip_ids::Identified;
use super::round_trip::is_delayed_ack;
use super::scoreboard::Delivered;
use super::sequence::{FAR, ORIGIN};
use super::state::acks::{AckedBy, Answered};
use super::state::repairs::Recent;
use crate::history::What;

/// The longest time for which a receiver holds an acknowledgement back, with what a host adds.
const HELD_BACK_MOST_NS: u64 = 1000 * NS_PER_MS;
/// An acknowledgement may lie so far beyond the window that the capture shows: it may lack an
/// update of it.
const BEYOND_BYTES: u64 = 1 << 20;

impl Flow {
    /// Processes a segment of the receiver that has an acknowledgement and is no reset.
    ///
    /// `is_below_window`: its number lies below what the sender has of the other direction.
    pub(crate) fn on_ack(
        &mut self,
        at: At,
        segment: &Segment,
        identified: &Identified,
        is_below_window: bool,
    ) {
        let near = self.space.nxt;
        let ack = self.space.sequence.offset(segment.ack, near);
        if ack > self.space.nxt + FAR || ack + FAR < self.space.una || self.is_unheard_of(ack) {
            self.counts.jumps += 1;
            return;
        }
        if let Some(timestamps) = segment.timestamps {
            self.trips
                .sender_side
                .acknowledged(timestamps.value, at.now);
            self.pauses.gap.known.replied(timestamps.value, at.now);
        }
        if !self.acks.is_any {
            self.acks.is_any = true;
            self.space.una = self.space.una.min(ack);
        }
        if self.is_told(segment, ack) {
            self.note_reply(at, segment);
            self.note_receiver(at, segment, identified);
            self.note_told(at);
            self.counts.options_cut += u64::from(segment.options_cut);
            self.show_ack(ack);
        } else {
            self.on_news(at, segment, ack, identified, is_below_window);
        }
    }

    /// Processes an acknowledgement that may say something new. It is no part of `on_ack`, which needs
    /// few registers without it.
    #[inline(never)]
    fn on_news(
        &mut self,
        at: At,
        segment: &Segment,
        ack: u64,
        identified: &Identified,
        is_below_window: bool,
    ) {
        let may_deliver = ack > self.space.una || !segment.sack.as_slice().is_empty();
        let mut pause = None;
        if may_deliver {
            pause = self.pause_until_ack(at);
        }
        if let Some(facts) = &mut pause {
            self.describe_end(facts, at, segment, ack, identified);
        }
        self.note_reply(at, segment);
        self.note_receiver(at, segment, identified);
        let was_closed = self.is_window_closed();
        let window_before = self.window.field;
        if ack > self.space.nxt {
            self.on_unseen(at, ack);
        }
        let una_before = self.space.una;
        let mut delivered = Delivered::default();
        if may_deliver {
            let way_ns = self.trips.measured_receiver_rtt_ns().unwrap_or(0);
            let unanswered_since_ns = at.now.saturating_sub(way_ns / 4 * 3);
            delivered = Delivered::beyond(self.board.highest_sacked(), unanswered_since_ns);
            if ack > self.space.una {
                if let Some(facts) = &mut pause {
                    facts.answer.copy = self.answered_copy(segment);
                }
                self.on_advance(at, segment, ack, &mut delivered, is_below_window);
            }
            self.on_sack(at, segment, ack, &mut delivered);
        }
        self.on_window(at, segment, (ack, una_before), was_closed);
        if delivered.bytes > 0 {
            self.on_delivered(at, &delivered);
            self.acks.last_ns = at.now;
            if was_closed && self.is_window_closed() && delivered.bytes < self.sizes.mss() {
                return; // it only answers a probe
            }
            self.note_late_answer(at);
            self.close_pause_delivered(at, pause, &delivered);
        } else if ack > una_before {
            self.acks.last_ns = at.now; // all of it had been reported before
        } else if self.is_extra_ack(segment, ack, window_before) && !identified.is_copy {
            self.note_after(|after| after.extra_acks += 1);
        } else if !identified.is_copy && self.is_duplicate_ack(segment, ack, window_before) {
            self.counts.duplicate_acks += 1;
            self.acks.last_ns = at.now;
            self.pauses.gap.dirty = true;
            self.pauses.gap.duplicate_acks.push(at.packet.get());
        }
        self.leave_recovery(at);
        self.counts.options_cut += u64::from(segment.options_cut);
        self.show_ack(ack);
    }

    #[inline]
    fn note_reply(&mut self, at: At, segment: &Segment) {
        if let Some(timestamps) = segment.timestamps {
            self.stamps.reply = NonZeroU64::new(at.now).map(|now| (timestamps.value, now));
        }
    }

    fn show_ack(&mut self, ack: u64) {
        let edge = self.window.edge;
        self.show(|| What::Ack {
            ack: ack.saturating_sub(ORIGIN),
            window_edge: edge.saturating_sub(ORIGIN),
        });
    }

    /// Returns whether a segment says of the receiver what the one before said, and is no duplicate: most
    /// segments of the side that sends the data do.
    #[inline]
    fn is_told(&self, segment: &Segment, ack: u64) -> bool {
        ack == self.space.una
            && self.window.field == Some(segment.window)
            && self.window.scale.is_some()
            && self.window.edge == self.edge_most()
            && !self.is_window_closed()
            && !self.pauses.after_open
            && (segment.sequence_length() > 0 || self.space.una >= self.space.nxt)
            && segment.sack.as_slice().is_empty()
    }

    /// Notes the window of such a segment.
    #[inline]
    fn note_told(&mut self, at: At) {
        self.note_room();
        self.rounds.note_window(self.window.edge - self.space.una);
        let way_ns = self.trips.sender_rtt_ns().unwrap_or(0);
        self.sender_view
            .push(at.now, (self.space.una, self.window.edge), way_ns);
        let repairing = self.repairs.recovery_point.is_some() || self.repairs.loss_point.is_some();
        if repairing || self.loss_stats.has_episode() {
            self.leave_recovery(at);
        }
    }

    /// Notes what the acknowledgement that ends a pause tells.
    #[cold]
    fn describe_end(
        &mut self,
        facts: &mut Facts,
        at: At,
        segment: &Segment,
        ack: u64,
        identified: &Identified,
    ) {
        facts.answer.has_data = segment.payload_bytes > 0;
        facts.answer.reported_twice = self.reports_repair(segment, ack);
        facts.answer.sent = identified.sent;
        let stamp = segment.timestamps.zip(self.stamps.reply);
        facts.answer.apart = stamp.map(|(stamp, (value, since_ns))| {
            let apart_ms = at.now.saturating_sub(since_ns.get()) / NS_PER_MS;
            (
                stamp.value.wrapping_sub(value),
                apart_ms.try_into().unwrap_or(0),
            )
        });
    }

    /// Processes an acknowledgement of more than before.
    fn on_advance(
        &mut self,
        at: At,
        segment: &Segment,
        ack: u64,
        delivered: &mut Delivered,
        is_below_window: bool,
    ) {
        let una_before = self.space.una;
        self.check_eifel(segment);
        self.board.ack(ack, delivered);
        self.space.una = ack;
        let value = segment.timestamps.map(|stamp| stamp.value);
        let is_of_new_tick = value != self.acks.by.value;
        self.acks.by = AckedBy {
            value,
            is_of_new_tick,
            is_below_window,
        };
        if let Some(clocked) = &mut self.trips.clocked {
            clocked.acknowledged(at.now, ack.saturating_sub(ORIGIN));
        }
        if self.space.una >= self.space.nxt {
            self.space.probe_from = None;
            self.acks.settled_ns = at.now;
        }
        self.data.unanswered_segments = 0;
        // What was under way when the capture began is no hole of the capture.
        let early_bytes = self.space.early_end.map_or(0, |end| {
            end.get().min(self.space.una).saturating_sub(una_before)
        });
        delivered.holes = delivered.holes.saturating_sub(early_bytes);
        self.counts.unseen_bytes += delivered.holes;
    }

    /// Returns whether an acknowledgement is a duplicate (RFC 5681, section 2): data is
    /// outstanding, and the segment brings neither data nor another window. The answer to a
    /// probe of a closed window is none, because no data that was sent into an open window is
    /// outstanding.
    fn is_duplicate_ack(&self, segment: &Segment, ack: u64, window_before: Option<u16>) -> bool {
        ack == self.space.una
            && segment.sequence_length() == 0
            && self.space.una < self.space.sent_end()
            && (window_before == Some(segment.window) || !segment.sack.as_slice().is_empty())
    }

    /// Returns whether an acknowledgement tells nothing new and nothing is under way: it answers a
    /// copy of what had arrived.
    fn is_extra_ack(&self, segment: &Segment, ack: u64, window_before: Option<u16>) -> bool {
        let is_same = window_before == Some(segment.window);
        let is_bare = || segment.sequence_length() == 0 && ack == self.space.una;
        self.pauses.after_open && self.space.una >= self.space.nxt && is_bare() && is_same
    }

    /// Returns whether an acknowledgement is of data that cannot have been sent, as far as the
    /// capture shows: it lies beyond the window. A second one that goes on from there tells that
    /// the capture lacks much.
    fn is_unheard_of(&mut self, ack: u64) -> bool {
        let is_far = ack > self.space.nxt + BEYOND_BYTES && ack > self.edge_most() + BEYOND_BYTES;
        if !is_far || !self.data.is_any || !self.acks.is_any {
            return false;
        }
        let before = std::mem::replace(&mut self.acks.unheard_of, NonZeroU64::new(ack));
        before.is_none_or(|before| !(before.get()..=before.get() + BEYOND_BYTES).contains(&ack))
    }

    /// Returns whether the first SACK block reports a duplicate of the first byte under way, of
    /// something that was repaired in this pause.
    fn reports_repair(&mut self, segment: &Segment, ack: u64) -> bool {
        let blocks = segment.sack.as_slice();
        let Some(&(low, high)) = blocks.first() else {
            return false;
        };
        let range = [low, high].map(|wire| self.space.sequence.offset(wire, ack));
        self.pauses.gap.retransmitted.count() > 0
            && range[0] <= self.space.una
            && range[1] > self.space.una
            && self.is_duplicate_report(blocks, range.into(), ack)
            && !self.is_of_a_copy(range.into())
    }

    fn note_receiver(&mut self, at: At, segment: &Segment, identified: &Identified) {
        self.counts.acks += 1;
        self.counts.pure_acks += u64::from(segment.sequence_length() == 0);
        self.counts.ecn_echoes += self.echoes.of(segment.flags);
        self.pauses.gap.from_receiver += 1;
        let way_ns = |flow: &Self| flow.trips.receiver_rtt_ns().unwrap_or(0);
        let since_ns = self.pauses.gap.last_acked_ns;
        if self.pauses.gap.acked_answer.is_none()
            && self.pauses.gap.retransmitted_acked.count() > 0
            && at.now.saturating_sub(since_ns) >= way_ns(self) / 4 * 3
        {
            self.pauses.gap.acked_answer = Some(at);
        }
        if std::mem::take(&mut self.pauses.gap.is_probe_pending) {
            let asked_ns = self.pauses.gap.last_window_probe_ns;
            let answer_ns = way_ns(self).saturating_mul(3) / 2 + PROBE_ANSWER_NS;
            self.pauses.gap.probes_unanswered +=
                u32::from(at.now.saturating_sub(asked_ns) > answer_ns);
        }
        if segment.payload_bytes > 0 && !identified.is_sign_of_life {
            if self.peer.data_ns() <= self.data.last_ns() {
                self.stamps.request = segment.timestamps.map(|stamp| stamp.value);
                self.stamps.asked_ns = at.now;
            }
            self.pauses.gap.dirty = true;
            self.pauses.gap.receiver_data.push(at.packet.get());
            self.note_request(at, segment.payload_bytes, identified.is_repeat);
            if self.pauses.after_open {
                self.note_after(|after| after.peer_spoke |= after.next_data_ns.is_none());
            }
        }
    }

    /// Adds a hole for data that was acknowledged and never captured: the capture dropped it.
    fn on_unseen(&mut self, at: At, ack: u64) {
        if self.data.is_any {
            self.board
                .push(self.space.nxt, ack, at.now, at.packet.get(), 0);
        }
        self.space.nxt = ack;
    }

    /// Counts answers that come later than any receiver holds an acknowledgement back (RFC 1122,
    /// 4.2.3.2), and without a repair.
    fn note_late_answer(&mut self, at: At) {
        let waited_ns = at.now.saturating_sub(self.data.last_ns());
        // Answers of data may all be late ones.
        let way_ns = self.trips.handshake_receiver_ns.unwrap_or(0);
        let is_late = waited_ns > HELD_BACK_MOST_NS + way_ns.saturating_mul(2);
        self.counts.late_answers +=
            u64::from(is_late && self.pauses.gap.retransmitted.count() == 0);
    }

    fn on_delivered(&mut self, at: At, delivered: &Delivered) {
        self.tick_rounds(at);
        self.acks.delivered += delivered.bytes;
        self.rounds.note_delivered(at, delivered.bytes);
        if delivered.overtaken > 0 {
            self.loss_stats.overtaken(at, delivered.overtaken);
        }
        self.loss_stats.needless += delivered.needless;
        self.sizes.delivered_max = self
            .sizes
            .delivered_max
            .max(delivered.largest.min(self.sizes.mss()));
        if let Some(sent_ns) = delivered.sent_once_ns {
            self.acks.newest_delivered_ns = self.acks.newest_delivered_ns.max(sent_ns);
            self.sample_round_trip(at.now.saturating_sub(sent_ns), delivered.bytes);
        }
        if self.pauses.after_open {
            self.note_after(|after| {
                after.acked = true;
                if at.now <= after.soon_until_ns {
                    after.soon_bytes += delivered.bytes;
                }
            });
        }
    }

    /// Adds a sample of the round trip, which the receiver may have made longer by waiting.
    fn sample_round_trip(&mut self, ns: u64, delivered_bytes: u64) {
        self.trips.receiver_side.sample(ns);
        // Two full segments make a receiver answer at once (RFC 1122, 4.2.3.2). With no more
        // outstanding the receiver may have waited for its timer. Where that happens in every
        // round trip, the smoothed round trip would consist of the very waits that are to be
        // found. So a sample that is longer than the least by just such a timer does not count
        // for the path.
        let under_way = delivered_bytes + self.space.nxt.saturating_sub(self.space.una);
        let held_ns = ns.saturating_sub(self.trips.receiver_rtt_ns().unwrap_or(ns));
        if under_way > 2 * self.sizes.mss() || !is_delayed_ack(held_ns) {
            self.trips.receiver_way.sample(ns);
        }
        self.renew_threshold();
    }

    fn leave_recovery(&mut self, at: At) {
        let una = self.space.una;
        self.repairs.loss_point = self.repairs.loss_point.filter(|point| una < point.get());
        self.repairs.recovery_point = self
            .repairs
            .recovery_point
            .filter(|point| una < point.get());
        let repairing = self.repairs.recovery_point.is_some() || self.repairs.loss_point.is_some();
        if self.loss_stats.is_repaired(una, repairing) {
            self.loss_stats.episode_ends(at);
        }
    }

    fn on_sack(&mut self, at: At, segment: &Segment, ack: u64, delivered: &mut Delivered) {
        let blocks = segment.sack.as_slice();
        if blocks.is_empty() {
            return;
        }
        self.counts.sack_seen = true;
        let offset = |flow: &mut Self, wire| flow.space.sequence.offset(wire, ack);
        let mut first = None;
        for (index, &(low, high)) in blocks.iter().enumerate() {
            let (start, end) = (offset(self, low), offset(self, high));
            if start >= end || end - start > FAR {
                continue;
            }
            let duplicate = index == 0 && self.is_duplicate_report(blocks, (start, end), ack);
            if duplicate {
                self.on_duplicate_report(start, end);
            } else if end > self.space.una && end <= self.space.nxt + FAR {
                first.get_or_insert((start, end));
                self.on_block(at, start, end, delivered);
            }
            self.show(|| What::Sack {
                start: start.saturating_sub(ORIGIN),
                end: end.saturating_sub(ORIGIN),
                duplicate,
            });
        }
    }

    fn on_block(&mut self, at: At, start: u64, end: u64, delivered: &mut Delivered) {
        if end > self.space.nxt {
            self.on_unseen(at, end);
        }
        let highest = self.board.highest_sacked();
        let highest = highest.map_or(self.space.una, |end| end.max(self.space.una));
        let before = delivered.bytes;
        if !self.board.sack(start, end, delivered) {
            self.counts.reports_beyond += 1;
        }
        if delivered.bytes > before && start > highest {
            let (near, far) = (&self.trips.receiver_side, &self.trips.sender_side);
            // Near the receiver only the half between capture and sender has a queue in it.
            // Elsewhere that half contains the sender's own waiting and does not count.
            let far_counts = u64::from(near.min_ns.saturating_mul(4) < far.min_ns);
            let now_ns = near.last_ns + far.last_ns * far_counts;
            let least_ns = near.min_ns + far.min_ns * far_counts;
            self.loss_stats.hole(
                at,
                start - highest,
                self.acks.delivered + before,
                (now_ns, least_ns),
                self.space.nxt,
            );
        }
    }

    /// Returns whether the first block reports a duplicate (RFC 2883, section 4): it lies below
    /// the acknowledgement, or within the second block.
    fn is_duplicate_report(
        &mut self,
        blocks: &[(u32, u32)],
        (start, end): (u64, u64),
        ack: u64,
    ) -> bool {
        if end <= ack {
            return true;
        }
        blocks.get(1).is_some_and(|&(low, high)| {
            let low = self.space.sequence.offset(low, ack);
            let high = self.space.sequence.offset(high, ack);
            low < high && low <= start && end <= high
        })
    }

    /// Returns whether a report may be of the second copy of one packet: that was captured, and the
    /// receiver reports such copies.
    fn is_of_a_copy(&self, (start, end): (u64, u64)) -> bool {
        let is_it = |recent: &&Recent| (start..end).contains(&recent.start);
        let recent = self.repairs.recent.iter().rev().find(is_it);
        self.loss_stats.duplicated > 0 && recent.is_some_and(|recent| recent.is_copied)
    }

    fn on_duplicate_report(&mut self, start: u64, end: u64) {
        if self.is_of_a_copy((start, end)) {
            self.loss_stats.duplicated += 1;
            return;
        }
        let about = |recent: &&mut Recent| {
            // Of a repeat that joins two segments only the second may have arrived.
            !recent.spurious && (start..end).contains(&recent.start)
        };
        // The report answers the latest retransmission of these bytes.
        let Some(recent) = self.repairs.recent.iter_mut().rev().find(about) else {
            self.loss_stats.duplicated += 1;
            return;
        };
        recent.spurious = true;
        let recent = *recent;
        self.note_spurious(recent);
    }

    fn note_spurious(&mut self, recent: Recent) {
        let (at_ns, overtaken) = (recent.at_ns, u32::from(recent.was_passed));
        self.repairs.counts.spurious += recent.segments;
        if recent.was_passed {
            self.loss_stats.spurious_fast += recent.segments;
        }
        if self
            .pauses
            .last_progress
            .is_some_and(|progress| at_ns > progress.now)
        {
            self.pauses.gap.spurious += 1;
            self.pauses.gap.overtaken += overtaken;
        } else if let Some(stall) = self
            .pauses
            .closed
            .last_mut()
            .filter(|stall| at_ns >= stall.start_ns)
        {
            stall.after.spurious += 1;
            stall.after.overtaken += overtaken;
        }
    }

    /// Finds a spurious retransmission (RFC 3522): an acknowledgement of retransmitted data
    /// that echoes an earlier timestamp answers the original transmission.
    fn check_eifel(&mut self, segment: &Segment) {
        let echo = segment.timestamps.and_then(|timestamps| timestamps.echo);
        let (Some(echo), Some(head)) = (echo, self.board.head()) else {
            return;
        };
        let older = |stamp: NonZeroU32| (echo.wrapping_sub(stamp.get()) as i32) < 0;
        // Where only one of two copies was captured, the acknowledgement may answer either.
        if head.copies != 2 || head.kind.is_none() || !head.timestamp.is_some_and(older) {
            return;
        }
        let start = head.start;
        let seen_twice =
            |recent: &&mut Recent| !recent.spurious && recent.start <= start && start < recent.end;
        if let Some(recent) = self.repairs.recent.iter_mut().rev().find(seen_twice) {
            recent.spurious = true;
            let recent = *recent;
            self.note_spurious(recent);
        }
    }

    /// Returns which copy of the first outstanding segment the acknowledgement answers.
    fn answered_copy(&self, segment: &Segment) -> Answered {
        let echo = segment.timestamps.and_then(|timestamps| timestamps.echo);
        let (Some(echo), Some(head)) = (echo, self.board.head()) else {
            return Answered::Unknown;
        };
        let Some(stamp) = head.timestamp.filter(|_| head.copies >= 2) else {
            return Answered::Unknown;
        };
        match echo.wrapping_sub(stamp.get()) as i32 {
            ..0 => Answered::Older,
            _ if head.has_new_timestamp => Answered::Last,
            _ => Answered::Unknown,
        }
    }

    fn close_pause_delivered(
        &mut self,
        at: At,
        mut pause: Option<Box<Facts>>,
        delivered: &Delivered,
    ) {
        if let Some(facts) = &mut pause {
            facts.answer.delivered_bytes = delivered.bytes;
            facts.answer.hole_bytes = delivered.holes;
            facts.answer.largest_bytes = delivered.largest;
        }
        self.close_pause(at, pause, Closed::Delivery);
    }
}
