// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds pauses: times without progress, from new data sent, or data delivered, to the next.

use units::time::NS_PER_MS;

use super::Flow;
use super::at::At;
use super::facts::{After, Answered, Closed, Facts, Gap};

/// After so many round trips the timer of every stack follows them (RFC 6298, section 2).
const MEASURED_SAMPLES: u64 = 3;

impl Flow {
    /// Returns the state of a pause, if there was no progress for long. The state is the
    /// present one, before the segment that may end the pause is processed.
    pub(super) fn pause_facts(&self, at: At) -> Option<Box<Facts>> {
        let before = self.last_progress?;
        let duration = at.now.saturating_sub(before.now);
        if duration < self.threshold_ns || self.is_finished() {
            return None;
        }
        Some(self.facts(at, before))
    }

    /// As `pause_facts`, for a pause that an acknowledgement ends: it is also a pause if the
    /// acknowledgement is late as an answer.
    pub(super) fn pause_until_ack(&self, at: At) -> Option<Box<Facts>> {
        let before = self.last_progress?;
        let waited = at
            .now
            .saturating_sub(before.now.max(self.loss_stats.last_data_ns));
        if waited < self.late_answer_ns || self.una >= self.sent_end() || self.is_finished() {
            return self.pause_facts(at);
        }
        Some(self.facts(at, before))
    }

    #[cold]
    fn facts(&self, at: At, before: At) -> Box<Facts> {
        Box::new(Facts {
            start_ns: before.now,
            end_ns: at.now,
            packet_before: before.packet,
            packet_after: at.packet,
            closed: Closed::Capture,
            is_only_late: at.now.saturating_sub(before.now) < self.threshold_ns,
            from_receiver: self.from_receiver,
            gap: self.gap,
            after: After::default(),
            is_only_fin: self.fin == Some(self.nxt) && self.nxt - self.una == 1,
            ended_by_fin: false,
            ended_by_peer_data: false,
            answered: Answered::Unknown,
            peer_data: self.peer_data,
            peer_message: self.peer_message,
            peer_settled_ns: self.peer_settled_ns,
            has_peer_ended: self.has_peer_ended,
            burst_before_bytes: self.burst_bytes,
            fills_window: false,
            fills_untold: false,
            sender_rtt_ns: self.sender_rtt_ns().unwrap_or(0),
            outstanding_bytes: self.sent_end() - self.una,
            sacked_bytes: self.board.sacked_bytes(),
            window_bytes: self
                .window_field
                .zip(self.scale)
                .map(|(field, scale)| u64::from(field) << scale),
            is_room_known: self.scale.or(self.scale_most).is_some(),
            edge_before: self.edge_most(),
            has_grown: false,
            is_whole: false,
            window_field_max: self.window_field_max,
            window_max_bytes: self.counts.window.map_or(0, |(_, most)| most),
            rtt_ns: self.rtt_ns(),
            rtt_min_ns: self.rtt_min_ns(),
            rto_ns: self.rto_ns(),
            is_timer_measured: self.receiver_side.samples >= MEASURED_SAMPLES,
            receiver_rtt_ns: self.receiver_rtt_ns().unwrap_or(0),
            mss_bytes: self.mss(),
            last_data_ns: self.last_data_ns,
            last_data_bytes: self.last_data_bytes,
            unanswered_segments: self.unanswered_segments,
            delivered_by_close: 0,
            holes_by_close: 0,
            largest_by_close: 0,
            reported_twice: false,
            answers_sent: None,
            outstanding_packets: self.board.len() as u64,
            sends_small_ones: self.sends_small_ones,
            is_recovering: self.recovery_point.is_some() && self.board.sacked_bytes() == 0,
            is_hole_filled: false,
            delivered_max_bytes: self.delivered_max,
            ticks_apart: None,
            missed: None,
            knows_ack: None,
            knows_request: None,
            answer_apart: None,
            threshold_ns: self.threshold_ns,
            is_own_reset: false,
            rate_before: self.rounds.rate(),
        })
    }

    /// Notes that progress was made. If that ended a pause, its facts are kept.
    pub(super) fn close_pause(&mut self, at: At, pause: Option<Box<Facts>>, closed: Closed) {
        if let Some(facts) = pause {
            self.keep_closed(at, *facts, closed);
        }
        self.last_progress = Some(at);
        self.from_receiver = 0;
        if self.gap.dirty {
            self.gap = Gap::default();
        }
        self.gap.window_least = self.window_field;
        (self.gap.room_least_bytes, self.gap.update) = (None, None);
        self.note_room();
        if self.is_window_closed() {
            self.gap.dirty = true;
            self.gap.closed_ns = at.now;
            self.gap.closed_window.push(at.packet);
        }
    }

    /// Keeps the facts of a pause that ended now.
    #[cold]
    fn keep_closed(&mut self, at: At, mut facts: Facts, closed: Closed) {
        (facts.gap.holes, facts.gap.hole) = (self.gap.holes, self.gap.hole);
        facts.gap.known = self.gap.known;
        facts.gap.spurious = self.gap.spurious;
        facts.gap.overtaken = self.gap.overtaken;
        // A FIN alone is no sign that there was more to send.
        let only_fin = self.fin == Some(self.nxt) && closed == Closed::NewData;
        let had_data = self.last_data_bytes > 0;
        if !(only_fin && !had_data && facts.outstanding_bytes == 0) {
            facts.closed = closed;
            facts.has_grown = self.edge_most() > facts.edge_before;
            facts.is_whole = self.window_most() >= facts.window_max_bytes;
            facts.ended_by_fin = only_fin && !had_data;
            let rtt_ns = facts.rtt_ns.unwrap_or(10 * NS_PER_MS);
            facts.after.until_ns = at.now + 2 * rtt_ns + NS_PER_MS;
            facts.after.soon_until_ns = at.now + facts.receiver_rtt_ns / 4 * 3;
            if closed == Closed::NewData {
                facts.fills_window = self.nxt == self.edge;
                facts.fills_untold = self.nxt == self.edge_untold;
                facts.after.burst_bytes = self.last_data_bytes;
                facts.after.has_ended = self.fin == Some(self.nxt);
                facts.after.prompt_bytes = self.last_data_bytes;
                self.burst_bytes = self.last_data_bytes;
                (facts.ticks_apart, facts.missed) = (self.ticks_apart, self.missed);
                // What is not acknowledged yet holds the echo back (RFC 7323, 4.3).
                let is_settled = self.peer_settled_ns >= self.peer_data.0;
                facts.knows_ack = self.knows(self.acked_by.value).filter(|_| is_settled);
                facts.knows_request = self.knows(self.stamps.request);
                facts.after.new_segments = self.last_data_bytes.div_ceil(self.mss());
                facts.after.prompt_segments = facts.after.new_segments;
                facts.after.prompt_until_ns = at.now + facts.rtt_min_ns / 2;
            }
            self.keep(facts);
            self.after_open = true;
        }
    }

    /// Returns whether the sender's last segment echoes this timestamp, or a later one, if it is
    /// known to echo what it gets.
    fn knows(&self, value: Option<u32>) -> Option<bool> {
        self.sender_side.min()?;
        let ahead = self.stamps.echo?.wrapping_sub(value?) as i32;
        Some(ahead >= 0)
    }

    /// Keeps a pause. Of too many pauses, the longest stay.
    fn keep(&mut self, facts: Facts) {
        let most = self.options.stalls_most.max(1);
        if self.stalls.len() >= most + (most / 4).max(1) {
            self.keep_longest(most);
        }
        self.stalls.push(facts);
    }

    /// Calls `note` with the record of what follows the last pause, while that time lasts.
    pub(super) fn note_after(&mut self, note: impl FnOnce(&mut After)) {
        let now = self.loss_stats.last_data_ns.max(self.last_ack_ns);
        match self.stalls.last_mut() {
            Some(stall) if now <= stall.after.until_ns => note(&mut stall.after),
            _ => self.after_open = false,
        }
    }

    /// Ends the flow, with the connection or the capture. A pause that nothing closed is kept
    /// if something was sent again in it, or was still unanswered: a closed window or a window probe.
    pub(crate) fn end(&mut self, at: At, closed: Closed, is_own: bool) {
        self.tick_rounds(at);
        let waits = self.gap.retransmitted.count() + self.gap.retransmitted_acked.count() > 0
            || self.is_window_closed()
            || self.gap.window_probes.count() > 0;
        let pause = self.pause_facts(at).filter(|_| waits);
        if let Some(mut facts) = pause {
            (facts.closed, facts.is_own_reset) = (closed, is_own);
            self.keep(*facts);
        }
        self.rounds.end(self.round_state());
        let most = self.options.stalls_most.max(1);
        self.keep_longest(most);
    }

    fn keep_longest(&mut self, most: usize) {
        let before = self.stalls.len();
        self.stalls.keep_longest(most);
        self.stalls_dropped += (before - self.stalls.len()) as u64;
    }
}
