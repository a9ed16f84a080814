// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rebuilds the sender's state of one direction's data from the captured segments.

mod ack;
pub(crate) mod at;
mod clocked;
mod data;
pub(crate) mod echoes;
pub(crate) mod facts;
pub(crate) mod ip_ids;
pub(crate) mod loss_stats;
mod packed;
mod pauses;
mod peer;
mod queue;
mod ranges;
mod retransmitted;
mod round_state;
pub(crate) mod round_trip;
pub(crate) mod rounds;
mod scoreboard;
mod segment_sizes;
pub(crate) mod sender_clock;
mod sender_view;
mod sent;
mod sequence;
pub(crate) mod state;
mod window;

use std::collections::VecDeque;
use std::sync::Arc;

use echoes::{Echoes, Stamps};
use facts::Facts;
use ip_ids::IpIds;
use loss_stats::LossStats;
use round_trip::RoundTrips;
use rounds::Rounds;
use scoreboard::Scoreboard;
use segment_sizes::SegmentSizes;
use sender_clock::SenderClock;
use sender_view::SenderView;
use sequence::SequenceSpace;
use state::acks::Acks;
use state::data::{Data, FirstData};
use state::pauses::Pauses;
use state::peer::Peer;
use state::repairs::Repairs;
use state::window::Window;
use units::time::NS_PER_MS;

use crate::analysis::{Flow as Summary, Retransmissions};
use crate::history::What;
use crate::options::Options;

/// A handshake that shows the sender so far away is held against when data comes.
const CLOCKED_NS: u64 = 100 * NS_PER_MS;

/// Hardly a flow has more bytes under way, and two connections by chance are seldom as near.
const USUAL_FLIGHT: u64 = 1 << 24;

/// The events that a flow adds to the history.
pub(crate) type Shown = Vec<What>;

/// The state of one direction's data.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    options: Arc<Options>,
    pub(super) space: SequenceSpace,
    pub(super) board: Scoreboard,
    pub(super) window: Window,
    pub(super) sender_view: SenderView,
    pub(crate) sizes: SegmentSizes,
    pub(crate) trips: RoundTrips,
    pub(crate) acks: Acks,
    pub(super) data: Data,
    pub(super) repairs: Repairs,
    pub(super) peer: Peer,
    pub(super) stamps: Stamps,
    /// What the receiver's flags say of congestion.
    pub(crate) echoes: Echoes,
    /// The IP identifications of the sender's packets.
    pub(crate) ip_ids: IpIds,
    pub(crate) sender_clock: SenderClock,
    pub(super) pauses: Pauses,
    pub(super) rounds: Rounds,
    pub(super) loss_stats: LossStats,
    pub(super) counts: Counts,
    /// Events for the history; `None`: no history was asked for.
    pub(super) shown: Option<Shown>,
}

/// Plain counters of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) data_packets: u64,
    pub(crate) bytes: u64,
    pub(crate) unseen_bytes: u64,
    pub(crate) forgotten: u64,
    /// SACK blocks, and retransmissions, that covered more than is remembered.
    pub(crate) reports_beyond: u64,
    pub(crate) repeats_beyond: u64,
    pub(crate) jumps: u64,
    pub(crate) copies: u64,
    pub(crate) ce_marked: u64,
    /// Acknowledgements that echo a congestion mark (RFC 3168, 6.1.3).
    pub(crate) ecn_echoes: u64,
    pub(crate) acks: u64,
    pub(crate) duplicate_acks: u64,
    /// Acknowledgements without data; and answers that came later than any receiver holds one
    /// back, without a repair.
    pub(crate) pure_acks: u64,
    pub(crate) late_answers: u64,
    pub(crate) zero_windows: u64,
    pub(crate) options_cut: u64,
    pub(crate) window: Option<(u64, u64)>,
    pub(crate) out_of_order: u64,
    /// Holes filled by retransmissions: the original must have been lost before the capture.
    pub(crate) lost_before: u64,
    /// Retransmitted although the original had been captured.
    pub(crate) lost_after: u64,
    pub(crate) retransmitted_acked: u64,
    /// Sent again although SACK had reported them: the sender goes back and sends everything.
    pub(crate) resent_reported: u64,
    pub(crate) keepalives: u64,
    pub(crate) sack_seen: bool,
}

impl Flow {
    pub(crate) fn new(options: Arc<Options>, shown: bool) -> Self {
        Self {
            space: SequenceSpace::default(),
            board: Scoreboard::new(&options),
            window: Window::default(),
            sender_view: SenderView::default(),
            sizes: SegmentSizes::default(),
            trips: RoundTrips::default(),
            acks: Acks::default(),
            data: Data::default(),
            repairs: Repairs::default(),
            peer: Peer::default(),
            stamps: Stamps::default(),
            echoes: Echoes::default(),
            ip_ids: IpIds::default(),
            sender_clock: SenderClock::default(),
            pauses: Pauses::new(&options),
            rounds: Rounds::default(),
            loss_stats: LossStats::default(),
            counts: Counts::default(),
            shown: shown.then(Vec::new),
            options,
        }
    }

    /// Sets the sequence number of the first byte of data.
    pub(crate) fn begin_at(&mut self, wire: u32) {
        self.space.has_begin |= !self.space.sequence.is_known();
        self.space.sequence.begin_at(wire);
    }

    /// Sets the receiver's window scale, at most 14 (RFC 7323, 2.3).
    pub(crate) fn set_scale(&mut self, scale: u8) {
        self.window.scale = Some(scale.min(14));
    }

    /// Notes that both ends permit SACK (RFC 2018).
    pub(crate) fn permit_sack(&mut self) {
        self.acks.is_sack_permitted = true;
    }

    /// Returns whether the receiver reports with SACK what it has.
    pub(crate) fn uses_sack(&self) -> bool {
        self.acks.is_sack_permitted || self.counts.sack_seen
    }

    /// Sets the round trips of the handshake: capture to sender, and capture to receiver.
    pub(crate) fn set_handshake(&mut self, sender_ns: Option<u64>, receiver_ns: Option<u64>) {
        self.trips.handshake_sender_ns = sender_ns.or(self.trips.handshake_sender_ns);
        self.trips.handshake_receiver_ns = receiver_ns.or(self.trips.handshake_receiver_ns);
        if self
            .trips
            .handshake_sender_ns
            .is_some_and(|ns| ns >= CLOCKED_NS)
            && !self.sizes.has_timestamps
        {
            self.trips.clocked.get_or_insert_default();
        }
        self.renew_threshold();
    }

    /// Returns whether an acknowledgement number fits what was sent. Where the capture began
    /// later than the flow, what it acknowledges may have been sent before.
    pub(crate) fn can_be_acknowledged_by(&mut self, wire: u32) -> bool {
        if !self.space.sequence.is_known() {
            return false;
        }
        let ack = self.space.sequence.offset(wire, self.space.nxt);
        let unseen = if self.space.has_begin {
            0
        } else {
            USUAL_FLIGHT
        };
        (self.space.una.saturating_sub(unseen)..=self.space.nxt).contains(&ack)
    }

    /// Returns whether data with this number may be the next that is captured of the flow. Before
    /// anything is known of it, any may.
    pub(crate) fn may_go_on_with(&mut self, wire: u32) -> bool {
        if !self.space.sequence.is_known() {
            return true;
        }
        let start = self.space.sequence.offset(wire, self.space.nxt);
        self.space.nxt.abs_diff(start) <= USUAL_FLIGHT
    }

    /// Returns the shortest stall that is in the results, if one was chosen.
    pub(crate) fn least_ns(&self) -> Option<u64> {
        self.options.least_ns
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.space
            .fin
            .is_some_and(|fin| self.space.una >= fin.get())
    }

    pub(crate) fn steps(&self) -> u64 {
        self.board.steps()
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) fn has_data(&self) -> bool {
        self.data.is_any
    }

    pub(crate) fn scale_known(&self) -> bool {
        self.window.scale.is_some()
    }

    pub(crate) fn first_data(&self) -> Option<FirstData> {
        self.data.first
    }

    pub(crate) fn stalls(&self) -> Vec<Facts> {
        self.pauses.closed.all()
    }

    /// Returns whether there is a pause of which nothing more can be learnt at this time.
    pub(crate) fn has_settled(&self, now_ns: u64) -> bool {
        let first = self.pauses.closed.first();
        first.is_some_and(|stall| stall.after.until_ns < now_ns)
    }

    /// Removes the pauses of which nothing more can be learnt at this time.
    pub(crate) fn take_settled(&mut self, now_ns: u64) -> Vec<Facts> {
        self.pauses
            .closed
            .take_while(|stall| stall.after.until_ns < now_ns)
    }

    pub(crate) fn phases(&self) -> &[rounds::Phase] {
        self.rounds.phases()
    }

    pub(crate) fn loss_stats(&self) -> &LossStats {
        &self.loss_stats
    }

    pub(crate) fn retransmissions(&self) -> &Retransmissions {
        &self.repairs.counts
    }

    /// Returns the number of stalls that were not kept.
    pub(crate) fn dropped(&self) -> u64 {
        self.pauses.dropped + self.rounds.dropped()
    }

    pub(crate) fn take_shown(&mut self) -> Option<(Shown, u64)> {
        let flight = self.board.flight_bytes();
        let shown = self.shown.as_mut().filter(|shown| !shown.is_empty())?;
        Some((std::mem::take(shown), flight))
    }

    pub(super) fn show(&mut self, what: impl FnOnce() -> What) {
        if let Some(shown) = &mut self.shown {
            shown.push(what());
        }
    }

    /// Shrinks the buffers when everything that was sent has been acknowledged. It does not
    /// drop what reports of spurious retransmissions may still need.
    pub(crate) fn settle(&mut self) {
        if self.board.is_empty() {
            self.board.release();
        }
        self.sender_view.shrink_to_fit();
        self.repairs.recent.shrink_to_fit();
        self.pauses.closed.shrink_to_fit();
    }

    /// Frees the buffers when nothing more is expected. The results stay.
    pub(crate) fn release(&mut self) {
        self.board.release();
        self.repairs.recent = VecDeque::new();
        self.sender_view = SenderView::default();
    }

    /// Returns the mean number of full segments for each acknowledgement, rounded up.
    pub(crate) fn segments_per_ack(&self) -> u64 {
        let segments = self.counts.bytes.div_ceil(self.sizes.mss());
        let acks = self.counts.acks.saturating_sub(self.counts.duplicate_acks);
        segments.div_ceil(acks.max(1))
    }

    /// Returns the summary of this direction for the connection's results.
    pub(crate) fn summary(&self) -> Summary {
        let sender = self.trips.sender_rtt_ns();
        let whole = |ns: u64| sender.map(|sender| sender + ns);
        let rtt = &self.trips.receiver_side;
        let some = |ns: u64| (rtt.samples > 0).then_some(ns);
        Summary {
            data_packets: self.counts.data_packets,
            bytes: self.counts.bytes,
            unseen_bytes: self.counts.unseen_bytes,
            active_ns: self.data.first_ns.map_or(0, |first| {
                let last = self.pauses.last_progress.map_or(first, |at| at.now);
                last.saturating_sub(first)
            }),
            mss_bytes: self.sizes.mss() as u32,
            retransmissions: self.repairs.counts,
            rtt: crate::analysis::Rtt {
                samples: rtt.samples,
                min_ns: some(rtt.min_ns).and_then(whole),
                smoothed_ns: self.trips.rtt_ns().filter(|_| rtt.samples > 0),
                max_ns: some(rtt.max_ns).and_then(whole),
                rto_ns: some(self.trips.rto_ns()),
            },
            cwnd: self.rounds.cwnd(),
            idle: crate::analysis::Idle::default(),
            ce_marked: self.counts.ce_marked,
            acks: self.counts.acks,
            duplicate_acks: self.counts.duplicate_acks,
            zero_windows: self.counts.zero_windows,
            window_bytes: self.counts.window.filter(|_| self.scale_known()),
        }
    }
}
