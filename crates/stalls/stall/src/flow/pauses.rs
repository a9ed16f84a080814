// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds pauses: times without progress, from new data sent, or data delivered, to the next.

use units::time::NS_PER_MS;

use super::Flow;
use super::at::At;
use super::facts::{After, Closed, Facts, Gap, UnderWay};
use super::state::acks::Answer;
use super::state::data::{DataBefore, NextData};
use super::state::window::WindowBefore;

impl Flow {
    /// Sets the lengths from which a pause is a stall: they follow from the round trip
    /// (`docs/use/stalls.md`).
    pub(super) fn renew_threshold(&mut self) {
        let receiver_ns = self
            .trips
            .receiver_way
            .srtt_ns()
            .or(self.trips.handshake_receiver_ns);
        (self.pauses.threshold_ns, self.pauses.late_answer_ns) =
            match (receiver_ns, self.trips.sender_rtt_ns()) {
                (Some(receiver), Some(sender)) => {
                    let whole = receiver.saturating_add(sender);
                    let least = self.options.min_stall_ns;
                    // At the sender the two lengths are the same: a time from data to its answer
                    // there is a whole round trip. Elsewhere an answer that was held back for a
                    // round trip is as late.
                    let late = receiver.saturating_add(whole).max(least);
                    (whole.saturating_mul(2).max(least), late)
                }
                (part, _) => {
                    let part = part.unwrap_or(0);
                    let both = part.saturating_mul(2).max(self.options.min_stall_blind_ns);
                    (both, both)
                }
            };
    }

    /// Returns the state of a pause, if there was no progress for long. The state is the
    /// present one, before the segment that may end the pause is processed.
    pub(super) fn pause_facts(&self, at: At) -> Option<Box<Facts>> {
        let before = self.pauses.last_progress?;
        let duration = at.now.saturating_sub(before.now);
        if duration < self.pauses.threshold_ns || self.is_finished() {
            return None;
        }
        Some(self.facts(at, before))
    }

    /// As `pause_facts`, for a pause that an acknowledgement ends: it is also a pause if the
    /// acknowledgement is late as an answer.
    pub(super) fn pause_until_ack(&self, at: At) -> Option<Box<Facts>> {
        let before = self.pauses.last_progress?;
        let waited = at
            .now
            .saturating_sub(before.now.max(self.loss_stats.last_data_ns));
        if waited < self.pauses.late_answer_ns
            || self.space.una >= self.space.sent_end()
            || self.is_finished()
        {
            return self.pause_facts(at);
        }
        Some(self.facts(at, before))
    }

    #[cold]
    fn facts(&self, at: At, before: At) -> Box<Facts> {
        Box::new(Facts {
            start_ns: before.now,
            end_ns: at.now,
            packet_before: before.packet.get(),
            packet_after: at.packet.get(),
            closed: Closed::Capture,
            is_own_reset: false,
            is_only_late: at.now.saturating_sub(before.now) < self.pauses.threshold_ns,
            threshold_ns: self.pauses.threshold_ns,
            rate_before: self.rounds.rate(),
            gap: self.pauses.gap,
            after: After::default(),
            under_way: UnderWay {
                bytes: self.space.sent_end() - self.space.una,
                packets: self.board.len().try_into().unwrap_or(u32::MAX),
                sacked_bytes: self.board.sacked_bytes(),
                is_only_fin: self.space.ends_here() && self.space.nxt - self.space.una == 1,
                is_recovering: self.repairs.recovery_point.is_some()
                    && self.board.sacked_bytes() == 0,
                delivered_max_bytes: self.sizes.delivered_max,
            },
            data: DataBefore {
                last_ns: self.data.last_ns(),
                last_bytes: self.data.last_bytes,
                burst_bytes: self.pauses.burst_bytes,
                unanswered_segments: self.data.unanswered_segments,
                mss_bytes: self.sizes.mss(),
                sends_small_ones: self.data.sends_small_ones,
            },
            trips: self.trips.known(),
            window: WindowBefore {
                bytes: self.window.bytes(),
                is_room_known: self.window.scale.or(self.window.scale_most).is_some(),
                edge: self.edge_most(),
                has_grown: false,
                is_whole: false,
                field_max: self.window.field_max,
                max_bytes: self.counts.window.map_or(0, |(_, most)| most),
            },
            peer: self.peer,
            answer: Answer::default(),
            next: NextData::default(),
        })
    }

    /// Notes that progress was made. If that ended a pause, its facts are kept.
    pub(super) fn close_pause(&mut self, at: At, pause: Option<Box<Facts>>, closed: Closed) {
        if let Some(facts) = pause {
            self.keep_closed(at, *facts, closed);
        }
        self.pauses.last_progress = Some(at);
        if self.pauses.gap.dirty {
            self.pauses.gap = Gap::default();
        }
        self.pauses.gap.from_receiver = 0;
        self.pauses.gap.window_least = self.window.field;
        (self.pauses.gap.room_least_bytes, self.pauses.gap.update) = (None, None);
        self.note_room();
        if self.is_window_closed() {
            self.pauses.gap.dirty = true;
            self.pauses.gap.closed_ns = at.now;
            self.pauses.gap.closed_window.push(at.packet.get());
        }
    }

    /// Keeps the facts of a pause that ended now.
    #[cold]
    fn keep_closed(&mut self, at: At, mut facts: Facts, closed: Closed) {
        (facts.gap.holes, facts.gap.hole) = (self.pauses.gap.holes, self.pauses.gap.hole);
        facts.gap.known = self.pauses.gap.known;
        facts.gap.spurious = self.pauses.gap.spurious;
        facts.gap.overtaken = self.pauses.gap.overtaken;
        // A FIN alone is no sign that there was more to send.
        let only_fin = self.space.ends_here() && closed == Closed::NewData;
        let had_data = self.data.last_bytes > 0;
        if !(only_fin && !had_data && facts.under_way.bytes == 0) {
            facts.closed = closed;
            facts.window.has_grown = self.edge_most() > facts.window.edge;
            facts.window.is_whole = self.window.most() >= facts.window.max_bytes;
            facts.next.is_fin = only_fin && !had_data;
            let rtt_ns = facts.trips.rtt_ns.unwrap_or(10 * NS_PER_MS);
            facts.after.until_ns = at.now + 2 * rtt_ns + NS_PER_MS;
            facts.after.soon_until_ns = at.now + facts.trips.receiver_rtt_ns / 4 * 3;
            if closed == Closed::NewData {
                facts.next.fills_window = self.space.nxt == self.window.edge;
                facts.next.fills_untold = self
                    .window
                    .edge_untold
                    .is_some_and(|edge| edge.get() == self.space.nxt);
                facts.after.burst_bytes = self.data.last_bytes;
                facts.after.has_ended = self.space.ends_here();
                facts.after.prompt_bytes = self.data.last_bytes;
                self.pauses.burst_bytes = self.data.last_bytes;
                (facts.next.ticks_apart, facts.next.missed) =
                    (self.data.ticks_apart, self.data.missed);
                // What is not acknowledged yet holds the echo back (RFC 7323, 4.3).
                let is_settled = self.peer.settled_ns >= self.peer.data_ns();
                facts.next.knows_ack = self.knows(self.acks.by.value).filter(|_| is_settled);
                facts.next.knows_request = self.knows(self.stamps.request);
                facts.after.new_segments = self.data.last_bytes.div_ceil(self.sizes.mss());
                facts.after.prompt_segments = facts.after.new_segments;
                facts.after.prompt_until_ns = at.now + facts.trips.rtt_min_ns / 2;
            }
            self.keep(facts);
            self.pauses.after_open = true;
        }
    }

    /// Returns whether the sender's last segment echoes this timestamp, or a later one, if it is
    /// known to echo what it gets.
    fn knows(&self, value: Option<u32>) -> Option<bool> {
        self.trips.sender_side.min()?;
        let ahead = self.stamps.echo?.wrapping_sub(value?) as i32;
        Some(ahead >= 0)
    }

    /// Keeps a pause. Of too many pauses, the longest stay.
    fn keep(&mut self, facts: Facts) {
        let most = self.options.stalls_most.max(1);
        if self.pauses.closed.len() >= most + (most / 4).max(1) {
            self.keep_longest(most);
        }
        self.pauses.closed.push(facts);
    }

    /// Calls `note` with the record of what follows the last pause, while that time lasts.
    pub(super) fn note_after(&mut self, note: impl FnOnce(&mut After)) {
        let now = self.loss_stats.last_data_ns.max(self.acks.last_ns);
        match self.pauses.closed.last_mut() {
            Some(stall) if now <= stall.after.until_ns => note(&mut stall.after),
            _ => self.pauses.after_open = false,
        }
    }

    /// Ends the flow, with the connection or the capture. A pause that nothing closed is kept
    /// if something was sent again in it, or was still unanswered: a closed window or a window probe.
    pub(crate) fn end(&mut self, at: At, closed: Closed, is_own: bool) {
        self.tick_rounds(at);
        let waits =
            self.pauses.gap.retransmitted.count() + self.pauses.gap.retransmitted_acked.count() > 0
                || self.is_window_closed()
                || self.pauses.gap.window_probes.count() > 0;
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
        let before = self.pauses.closed.len();
        self.pauses.closed.keep_longest(most);
        self.pauses.dropped += (before - self.pauses.closed.len()) as u64;
    }
}
