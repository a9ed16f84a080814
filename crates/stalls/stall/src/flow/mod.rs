// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rebuilds the sender's state of one direction's data from the captured segments.

mod ack;
mod again;
pub(crate) mod at;
mod clocked;
mod data;
pub(crate) mod echoes;
pub(crate) mod facts;
pub(crate) mod ip_ids;
pub(crate) mod loss_stats;
mod packed;
mod pauses;
mod queue;
mod ranges;
mod round_state;
pub(crate) mod round_trip;
pub(crate) mod rounds;
mod scoreboard;
pub(crate) mod sender_clock;
mod sender_view;
mod sent;
mod sequence;
mod window;

use std::collections::VecDeque;
use std::sync::Arc;

use at::At;
use clocked::Clocked;
use echoes::{Echoes, Stamps};
use facts::{AckedBy, Facts, Gap};
use ip_ids::IpIds;
use loss_stats::LossStats;
use packed::Kept;
use round_trip::{EchoTimer, Smoothed};
use rounds::Rounds;
use scoreboard::Scoreboard;
use sender_clock::SenderClock;
use sender_view::SenderView;
use sequence::{ORIGIN, Sequence};
use units::time::NS_PER_MS;

use crate::analysis::{Flow as Summary, Retransmissions};
use crate::history::{RetransmissionKind, What};
use crate::options::Options;

/// Retransmissions that are remembered because a late report can still be about them.
const RECENT_RETRANSMISSIONS: usize = 64;
/// Payload of a full segment, in bytes, while nothing is known of it.
const MSS_GUESS: u64 = 1448;
/// Bytes that the timestamps option takes of each segment.
const TIMESTAMPS_BYTES: u64 = 12;

/// A handshake that shows the sender so far away is held against when data comes.
const CLOCKED_NS: u64 = 100 * NS_PER_MS;

/// Hardly a flow has more bytes under way, and two connections by chance are seldom as near.
const USUAL_FLIGHT: u64 = 1 << 24;

/// A retransmission that may still turn out to have been spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recent {
    start: u64,
    end: u64,
    segments: u64,
    kind: RetransmissionKind,
    at_ns: u64,
    /// Whether it was missing while data above it was reported: if it turns out to be needless,
    /// the original was overtaken.
    was_passed: bool,
    spurious: bool,
    /// Whether a second copy of the packet was captured.
    is_copied: bool,
}

/// The first data of a flow, and what the other side had sent before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstData {
    pub(crate) at: At,
    /// Time and packet of the other side's last data; 0: none.
    pub(crate) asked: (u64, u64),
    /// The time by which this data, or an earlier packet, had acknowledged all of that; a time before `asked`: nothing had.
    pub(crate) settled_ns: u64,
}

/// The events that a flow adds to the history.
pub(crate) type Shown = Vec<What>;

/// The state of one direction's data.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    options: Arc<Options>,
    pub(super) sequence: Sequence,
    /// Whether the SYN was captured before anything else.
    pub(super) has_begin: bool,
    /// First byte that is not acknowledged.
    pub(super) una: u64,
    /// Byte after the highest one seen.
    pub(super) nxt: u64,
    /// First byte that was captured, if bytes were under way below it by then.
    pub(super) early_end: u64,
    /// From this byte on, data was sent only as probes of a closed window; `u64::MAX`: there is
    /// none.
    pub(super) probe_from: u64,
    pub(super) board: Scoreboard,
    /// End of the stream, the FIN included.
    pub(super) fin: Option<u64>,
    pub(super) has_data: bool,

    /// The receiver's window scale; `None`: not both SYNs were captured with all their options.
    pub(super) scale: Option<u8>,
    pub(super) window_field: Option<u16>,
    pub(super) window_field_max: u16,
    pub(super) edge: u64,
    /// The window's edge before the update that last told of room.
    pub(super) edge_untold: u64,
    /// The largest scale that fits what the windows say.
    pub(super) scale_most: Option<u8>,
    pub(super) sender_view: SenderView,
    pub(super) mss_option: Option<u16>,
    /// Whether both SYNs permit SACK.
    pub(super) is_sack_permitted: bool,
    pub(super) mss_seen: u64,
    pub(super) payload_max: u64,
    pub(super) delivered_max: u64,
    pub(super) has_ack: bool,
    pub(super) scale_least: u8,
    pub(super) has_timestamps: bool,

    /// Round trips from the capture to the receiver and back.
    pub(super) receiver_side: Smoothed,
    /// The same round trips, without those that a receiver's timer made longer.
    pub(super) receiver_way: Smoothed,
    /// Round trips from the capture to the sender and back.
    pub(crate) sender_side: EchoTimer,
    /// Round trips of the handshake, capture to sender and back, and capture to receiver and
    /// back.
    pub(crate) handshake_sender_ns: Option<u64>,
    pub(super) handshake_receiver_ns: Option<u64>,

    pub(super) delivered: u64,
    pub(super) last_progress: Option<At>,
    pub(super) threshold_ns: u64,
    /// An answer to the last data that comes later than this is a pause as well.
    pub(super) late_answer_ns: u64,
    pub(super) last_ack_ns: u64,
    pub(super) last_data_ns: u64,
    pub(super) last_data_bytes: u64,
    pub(super) unanswered_segments: u64,
    /// Timestamp of the last new data, and the ticks between it and the new data before.
    pub(super) last_timestamp: Option<u32>,
    pub(super) ticks_apart: Option<u32>,
    /// Packets of the sender that the capture lacks just before its last one.
    pub(super) missed: Option<u16>,
    pub(crate) sender_clock: SenderClock,
    /// Time of the latest original transmission that was delivered.
    pub(super) newest_delivered_ns: u64,
    pub(super) recovery_point: Option<u64>,
    pub(super) loss_point: Option<u64>,
    pub(super) backoff: u32,
    pub(super) recent: VecDeque<Recent>,

    /// The segment captured last: start, end and IP identification.
    pub(super) last_sent: (u64, u64, u16),
    /// Whether a small segment was sent while another small one was under way.
    pub(super) sends_small_ones: bool,
    pub(super) last_sent_ns: u64,
    pub(super) acked_by: AckedBy,
    /// An acknowledgement of far more than the capture shows, not believed yet; 0: none.
    pub(super) unheard_of: u64,
    /// What the receiver's flags say of congestion.
    pub(crate) echoes: Echoes,
    /// The IP identifications of the sender's packets.
    pub(crate) ip_ids: IpIds,
    /// A bound of the sender's round trip, where the handshake alone gives a long one.
    pub(super) clocked: Option<Box<Clocked>>,
    /// When the other side sent data last, and in which packet; 0: never.
    pub(super) peer_data: (u64, u64),
    /// Its bytes, and the milliseconds by which they came behind this side's last data.
    pub(super) peer_message: (u32, u32),
    pub(super) stamps: Stamps,
    /// When everything that was sent had last been acknowledged; and the same of the other
    /// direction, as of this direction's last segment.
    pub(crate) settled_ns: u64,
    pub(super) peer_settled_ns: u64,
    /// Whether the other side has ended its stream.
    pub(super) has_peer_ended: bool,
    /// Shortest time in which the sender acknowledged data of the other direction.
    pub(super) peer_rtt_ns: Option<u64>,
    pub(super) first_data: Option<FirstData>,
    /// Bytes of new data since the last pause.
    pub(super) burst_bytes: u64,
    pub(super) gap: Gap,
    pub(super) from_receiver: u64,
    pub(super) stalls: Kept<Facts>,
    pub(super) after_open: bool,
    pub(super) stalls_dropped: u64,
    pub(super) rounds: Rounds,
    pub(super) loss_stats: LossStats,

    // Numbers of the summary.
    pub(super) first_data_ns: Option<u64>,
    pub(super) counts: Counts,
    pub(super) retransmissions: Retransmissions,
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
            sequence: Sequence::default(),
            has_begin: false,
            una: ORIGIN,
            nxt: ORIGIN,
            early_end: 0,
            probe_from: u64::MAX,
            board: Scoreboard::new(&options),
            fin: None,
            has_data: false,
            scale: None,
            window_field: None,
            window_field_max: 0,
            edge: ORIGIN,
            edge_untold: 0,
            scale_most: None,
            sender_view: SenderView::default(),
            mss_option: None,
            is_sack_permitted: false,
            mss_seen: 0,
            payload_max: 0,
            delivered_max: 0,
            has_ack: false,
            scale_least: 0,
            has_timestamps: false,
            receiver_side: Smoothed::default(),
            receiver_way: Smoothed::default(),
            sender_side: EchoTimer::default(),
            handshake_sender_ns: None,
            handshake_receiver_ns: None,
            delivered: 0,
            last_progress: None,
            threshold_ns: options.min_stall_blind_ns,
            late_answer_ns: options.min_stall_blind_ns,
            last_ack_ns: 0,
            last_data_ns: 0,
            last_data_bytes: 0,
            unanswered_segments: 0,
            last_timestamp: None,
            ticks_apart: None,
            missed: None,
            sender_clock: SenderClock::default(),
            newest_delivered_ns: 0,
            recovery_point: None,
            loss_point: None,
            backoff: 0,
            recent: VecDeque::new(),
            last_sent: (0, 0, 0),
            sends_small_ones: false,
            last_sent_ns: 0,
            acked_by: AckedBy::default(),
            unheard_of: 0,
            echoes: Echoes::default(),
            ip_ids: IpIds::default(),
            clocked: None,
            peer_data: (0, 0),
            peer_message: (0, u32::MAX),
            stamps: Stamps::default(),
            settled_ns: 0,
            peer_settled_ns: 0,
            has_peer_ended: false,
            peer_rtt_ns: None,
            first_data: None,
            burst_bytes: 0,
            gap: Gap::default(),
            from_receiver: 0,
            stalls: Kept::default(),
            after_open: false,
            stalls_dropped: 0,
            rounds: Rounds::default(),
            loss_stats: LossStats::default(),
            first_data_ns: None,
            counts: Counts::default(),
            retransmissions: Retransmissions::default(),
            shown: shown.then(Vec::new),
            options,
        }
    }

    /// Returns the byte after the last one that was sent into an open window.
    pub(super) fn sent_end(&self) -> u64 {
        self.nxt.min(self.probe_from).max(self.una)
    }

    /// Sets the sequence number of the first byte of data.
    pub(crate) fn begin_at(&mut self, wire: u32) {
        self.has_begin |= !self.sequence.is_known();
        self.sequence.begin_at(wire);
    }

    /// Sets the receiver's window scale, at most 14 (RFC 7323, 2.3).
    pub(crate) fn set_scale(&mut self, scale: u8) {
        self.scale = Some(scale.min(14));
    }

    /// Notes that both ends permit SACK (RFC 2018).
    pub(crate) fn permit_sack(&mut self) {
        self.is_sack_permitted = true;
    }

    /// Returns whether the receiver reports with SACK what it has.
    pub(crate) fn uses_sack(&self) -> bool {
        self.is_sack_permitted || self.counts.sack_seen
    }

    pub(crate) fn set_mss(&mut self, mss: u16) {
        let known = self.mss_option.unwrap_or(u16::MAX);
        self.mss_option = Some(known.min(mss));
    }

    /// Sets the round trips of the handshake: capture to sender, and capture to receiver.
    pub(crate) fn set_handshake(&mut self, sender_ns: Option<u64>, receiver_ns: Option<u64>) {
        self.handshake_sender_ns = sender_ns.or(self.handshake_sender_ns);
        self.handshake_receiver_ns = receiver_ns.or(self.handshake_receiver_ns);
        if self.handshake_sender_ns.is_some_and(|ns| ns >= CLOCKED_NS) && !self.has_timestamps {
            self.clocked.get_or_insert_default();
        }
        self.renew_threshold();
    }

    /// Returns the payload of a full segment, as well as it is known.
    pub(crate) fn mss(&self) -> u64 {
        let timestamps = if self.has_timestamps {
            TIMESTAMPS_BYTES
        } else {
            0
        };
        match (self.mss_option, self.mss_seen) {
            (Some(option), _) => u64::from(option).saturating_sub(timestamps).max(1),
            (None, 0) => MSS_GUESS,
            (None, seen) => seen,
        }
    }

    /// Returns whether an acknowledgement number fits what was sent. Where the capture began
    /// later than the flow, what it acknowledges may have been sent before.
    pub(crate) fn can_be_acknowledged_by(&mut self, wire: u32) -> bool {
        if !self.sequence.is_known() {
            return false;
        }
        let ack = self.sequence.offset(wire, self.nxt);
        let unseen = if self.has_begin { 0 } else { USUAL_FLIGHT };
        (self.una.saturating_sub(unseen)..=self.nxt).contains(&ack)
    }

    /// Returns whether data with this number may be the next that is captured of the flow. Before
    /// anything is known of it, any may.
    pub(crate) fn may_go_on_with(&mut self, wire: u32) -> bool {
        if !self.sequence.is_known() {
            return true;
        }
        let start = self.sequence.offset(wire, self.nxt);
        self.nxt.abs_diff(start) <= USUAL_FLIGHT
    }

    /// Returns the shortest round trip from the capture to the sender and back.
    pub(crate) fn sender_rtt_ns(&self) -> Option<u64> {
        // This is asked for each segment: an iterator over the four takes ten times as long.
        let clocked_ns = self.clocked.as_ref().and_then(|clocked| clocked.min());
        let some = |ns: Option<u64>| ns.unwrap_or(u64::MAX);
        let measured_ns = some(self.sender_side.min()).min(some(self.peer_rtt_ns));
        let others_ns = some(self.handshake_sender_ns).min(some(clocked_ns));
        let least_ns = measured_ns.min(others_ns);
        (least_ns != u64::MAX).then_some(least_ns)
    }

    /// Notes what is known of the other direction when a segment of this one is captured.
    pub(crate) fn note_peer(&mut self, settled_ns: u64, rtt_ns: Option<u64>, has_ended: bool) {
        (self.peer_settled_ns, self.has_peer_ended) = (settled_ns, has_ended);
        if rtt_ns != self.peer_rtt_ns {
            self.peer_rtt_ns = rtt_ns;
            self.renew_threshold();
        }
    }

    /// Returns the shortest time from the capture of data to the capture of its
    /// acknowledgement.
    pub(crate) fn measured_receiver_rtt_ns(&self) -> Option<u64> {
        (self.receiver_side.samples > 0).then_some(self.receiver_side.min_ns)
    }

    /// Returns the shortest round trip from the capture to the receiver and back.
    pub(crate) fn receiver_rtt_ns(&self) -> Option<u64> {
        match (self.measured_receiver_rtt_ns(), self.handshake_receiver_ns) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Returns the whole round trip, smoothed; `None` if a half of it is not known.
    pub(crate) fn rtt_ns(&self) -> Option<u64> {
        let receiver = self
            .receiver_side
            .srtt_ns()
            .or(self.handshake_receiver_ns)?;
        Some(receiver + self.sender_rtt_ns()?)
    }

    /// Returns the shortest whole round trip, or the half of it that is known.
    pub(crate) fn rtt_min_ns(&self) -> u64 {
        self.receiver_rtt_ns().unwrap_or(0) + self.sender_rtt_ns().unwrap_or(0)
    }

    /// Returns the timeout that Linux would have now, doublings not included.
    pub(crate) fn rto_ns(&self) -> u64 {
        self.receiver_side
            .rto_ns(self.sender_rtt_ns().unwrap_or_default())
    }

    /// Returns the shortest stall that is in the results, if one was chosen.
    pub(crate) fn least_ns(&self) -> Option<u64> {
        self.options.least_ns
    }

    /// Sets the lengths from which a pause is a stall: they follow from the round trip
    /// (`docs/use/stalls.md`).
    pub(super) fn renew_threshold(&mut self) {
        let receiver_ns = self.receiver_way.srtt_ns().or(self.handshake_receiver_ns);
        (self.threshold_ns, self.late_answer_ns) = match (receiver_ns, self.sender_rtt_ns()) {
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

    pub(crate) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.una >= fin)
    }

    pub(crate) fn steps(&self) -> u64 {
        self.board.steps()
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) fn has_data(&self) -> bool {
        self.has_data
    }

    pub(crate) fn scale_known(&self) -> bool {
        self.scale.is_some()
    }

    pub(crate) fn first_data(&self) -> Option<FirstData> {
        self.first_data
    }

    pub(crate) fn stalls(&self) -> Vec<Facts> {
        self.stalls.all()
    }

    /// Returns whether there is a pause of which nothing more can be learnt at this time.
    pub(crate) fn has_settled(&self, now_ns: u64) -> bool {
        let first = self.stalls.first();
        first.is_some_and(|stall| stall.after.until_ns < now_ns)
    }

    /// Removes the pauses of which nothing more can be learnt at this time.
    pub(crate) fn take_settled(&mut self, now_ns: u64) -> Vec<Facts> {
        self.stalls
            .take_while(|stall| stall.after.until_ns < now_ns)
    }

    pub(crate) fn phases(&self) -> &[rounds::Phase] {
        self.rounds.phases()
    }

    pub(crate) fn loss_stats(&self) -> &LossStats {
        &self.loss_stats
    }

    pub(crate) fn retransmissions(&self) -> &Retransmissions {
        &self.retransmissions
    }

    /// Returns the number of stalls that were not kept.
    pub(crate) fn dropped(&self) -> u64 {
        self.stalls_dropped + self.rounds.dropped()
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
        self.recent.shrink_to_fit();
        self.stalls.shrink_to_fit();
    }

    /// Frees the buffers when nothing more is expected. The results stay.
    pub(crate) fn release(&mut self) {
        self.board.release();
        self.recent = VecDeque::new();
        self.sender_view = SenderView::default();
    }

    /// Returns the mean number of full segments for each acknowledgement, rounded up.
    pub(crate) fn segments_per_ack(&self) -> u64 {
        let segments = self.counts.bytes.div_ceil(self.mss());
        let acks = self.counts.acks.saturating_sub(self.counts.duplicate_acks);
        segments.div_ceil(acks.max(1))
    }

    /// Returns the summary of this direction for the connection's results.
    pub(crate) fn summary(&self) -> Summary {
        let sender = self.sender_rtt_ns();
        let whole = |ns: u64| sender.map(|sender| sender + ns);
        let rtt = &self.receiver_side;
        let some = |ns: u64| (rtt.samples > 0).then_some(ns);
        Summary {
            data_packets: self.counts.data_packets,
            bytes: self.counts.bytes,
            unseen_bytes: self.counts.unseen_bytes,
            active_ns: self.first_data_ns.map_or(0, |first| {
                let last = self.last_progress.map_or(first, |at| at.now);
                last.saturating_sub(first)
            }),
            mss_bytes: self.mss() as u32,
            retransmissions: self.retransmissions,
            rtt: crate::analysis::Rtt {
                samples: rtt.samples,
                min_ns: some(rtt.min_ns).and_then(whole),
                smoothed_ns: self.rtt_ns().filter(|_| rtt.samples > 0),
                max_ns: some(rtt.max_ns).and_then(whole),
                rto_ns: some(self.rto_ns()),
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
