// SPDX-License-Identifier: MIT OR Apache-2.0
//! The facts about a pause that are kept until the whole capture is known: enough for every
//! rule, in constant memory.

use units::time::NS_PER_MS;

use super::packed::{Span, fields, variants};
use crate::history::RetransmissionKind;

/// A sender that waited for an acknowledgement goes on within this time.
pub(crate) const LET_GO_NS: u64 = 2 * NS_PER_MS;
/// A host may take so much longer than the way for its answer.
const LATE_NS: u64 = 20 * NS_PER_MS;
/// Longest timeout of any stack in use before it has measured a round trip.
const LONGEST_FIRST_TIMER_NS: u64 = 3000 * NS_PER_MS;

/// Numbers of the packets that show something: the first ones and the last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packets {
    first: u64,
    /// The others, counted from the first.
    next: [u32; Self::KEPT - 1],
    last: u32,
    count: u32,
}

impl Packets {
    const KEPT: usize = 3;

    pub(crate) fn push(&mut self, packet: u64) {
        if self.count == 0 {
            self.first = packet;
        }
        let behind = u32::try_from(packet.saturating_sub(self.first)).unwrap_or(u32::MAX);
        if let Some(place) = (self.count as usize).checked_sub(1) {
            if let Some(next) = self.next.get_mut(place) {
                *next = behind;
            }
        }
        self.last = behind;
        self.count = self.count.saturating_add(1);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.into()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let kept = [0].into_iter().chain(self.next);
        let last = (self.count as usize > Self::KEPT).then_some(self.last);
        let behind = kept.take(self.count as usize).chain(last);
        behind.map(|behind| self.first + u64::from(behind))
    }
}

/// State of a segment when a timeout or a probe retransmitted it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retransmitted {
    pub(crate) at_ns: u64,
    pub(crate) bytes: u64,
    /// How often the segment had been captured before; 0: never.
    pub(crate) copies_before: u8,
    /// When the segment had last been captured before.
    pub(crate) last_ns: u64,
    /// What made the sender retransmit it the time before, if there was one.
    pub(crate) kind_before: Option<RetransmissionKind>,
    /// Bytes above the segment that were reported as arrived.
    pub(crate) sacked_above: u64,
    /// Bytes that were sent above the segment.
    pub(crate) sent_above: u64,
    /// Whether something sent after the segment's last copy had been reported as arrived.
    pub(crate) was_knowable: bool,
    /// Packets of the sender that the capture lacks just before, if its IP identifications count
    /// them.
    pub(crate) missed: Option<u16>,
    /// Whether nothing below the segment was outstanding.
    pub(crate) is_head: bool,
}

/// What happens in a pause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gap {
    pub(crate) dirty: bool,
    pub(crate) retransmitted: Packets,
    pub(crate) timeouts: u32,
    pub(crate) probes: u32,
    pub(crate) fast: u32,
    pub(crate) retransmitted_bytes_max: u64,
    /// The least of them.
    pub(crate) retransmitted_bytes_min: u64,
    /// Byte after the highest one that was retransmitted; below, the number of different
    /// segments among the retransmissions.
    pub(crate) retransmitted_high: u64,
    pub(crate) retransmitted_segments: u64,
    pub(crate) first_timeout: Option<Retransmitted>,
    pub(crate) first_probe: Option<Retransmitted>,
    pub(crate) last_resent_ns: u64,
    /// Retransmissions of data whose acknowledgement had been captured.
    pub(crate) retransmitted_acked: Packets,
    /// When the first and the last of them came; 0: none did.
    pub(crate) first_acked_ns: u64,
    pub(crate) last_acked_ns: u64,
    /// What the sender's echoes tell of the acknowledgements that it repeated in spite of.
    pub(crate) known: Known,
    /// Bytes that the sender did not know to be acknowledged, most.
    pub(crate) unknown_acked_bytes: u64,
    /// What the receiver said after the last of them could have reached it: time and packet.
    /// Without a packet: the time of the last of them.
    pub(crate) acked_answer: (u64, u64),
    pub(crate) new_segments: u64,
    /// Number of new segments that left a hole below them.
    pub(crate) holes: u64,
    /// The last of these holes: its first byte, and the byte behind it.
    pub(crate) hole: (u64, u64),
    pub(crate) duplicate_acks: Packets,
    pub(crate) closed_window: Packets,
    /// Smallest value of the window field, from the packet on with which the pause began.
    pub(crate) window_least: Option<u16>,
    /// Least room in the window for new data. `None`: no window was captured.
    pub(crate) room_least_bytes: Option<u64>,
    /// When the window's edge last advanced, and by which packet.
    pub(crate) update: Option<(u64, u64)>,
    pub(crate) closed_ns: u64,
    pub(crate) opened: Option<(u64, u64)>,
    /// Probes of a closed window, or of one that the sender does not know to be open.
    pub(crate) window_probes: Packets,
    pub(crate) last_window_probe_ns: u64,
    /// Whether nothing has answered the last probe yet; and the probes that were not answered in
    /// time.
    pub(crate) is_probe_pending: bool,
    pub(crate) probes_unanswered: u32,
    pub(crate) receiver_data: Packets,
    pub(crate) spurious: u64,
    /// Of these, the ones whose originals were overtaken.
    pub(crate) overtaken: u32,
    /// Copies of the first unacknowledged segment; below, those that came at least 1.5 times as
    /// long after the copy before as that copy after its own predecessor.
    pub(crate) head_copies: u32,
    pub(crate) backoffs: u32,
    pub(crate) head_interval_ns: u64,
}

/// The segment that acknowledged most so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckedBy {
    pub(crate) value: Option<u32>,
    /// Whether the acknowledgement before it had another timestamp.
    pub(crate) is_of_new_tick: bool,
    /// Whether it lay below the sender's window.
    pub(crate) is_below_window: bool,
}

/// What the sender knew of acknowledgements when it repeated what they acknowledge, by the
/// timestamps that it echoes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    /// The timestamp that the first such repeat echoes.
    echo: Option<u32>,
    /// The timestamp of the acknowledgement that it did not know, perhaps.
    acked: Option<u32>,
    /// The first timestamp of the receiver after that, and when it was captured.
    reply: Option<(u32, u64)>,
    /// The repeat echoes the acknowledgement, or a later segment: the sender had it.
    pub(crate) at_repeat: bool,
    /// The acknowledgements reached the sender after it had repeated: they were late.
    pub(crate) late: bool,
    /// The sender went on with what answered the repeat: the ones before did not reach it.
    pub(crate) never: bool,
    /// The acknowledgement had a number below the sender's window, which drops it (RFC 9293,
    /// 3.10.7.4).
    pub(crate) below_window: bool,
    /// Packets of the sender that the capture lacks before the first repeat, as its IP
    /// identifications count them.
    pub(crate) missed: u64,
    /// The repeat came sooner after the acknowledgement than that can have reached the sender: it
    /// was on its way already.
    pub(crate) crossed: bool,
}

impl Known {
    /// Notes a repeat of data that the receiver had acknowledged with timestamp `acked`.
    pub(super) fn repeated(&mut self, echo: Option<u32>, acked: AckedBy, sent: Option<u16>) {
        self.missed = self.missed.max(sent.map_or(0, |sent| u64::from(sent) - 1));
        if self.echo.is_some() {
            return;
        }
        self.echo = echo;
        self.acked = acked.value;
        let ahead = echo.zip(acked.value).map(|(e, a)| e.wrapping_sub(a) as i32);
        // On a clock with long ticks the acknowledgement before has the same timestamp.
        self.at_repeat = ahead.is_some_and(|ahead| ahead > 0 || ahead == 0 && acked.is_of_new_tick);
    }

    /// Returns whether the repeat shows that its sender did not have the acknowledgement.
    pub(crate) fn is_lacking(&self) -> bool {
        self.echo.is_some() && !self.at_repeat
    }

    /// Returns whether an echo of the sender may tell more.
    pub(super) fn is_asked(&self) -> bool {
        self.echo.is_some() && !self.late && !self.never
    }

    /// Notes the timestamp of a segment of the receiver.
    pub(super) fn replied(&mut self, value: u32, now: u64) {
        if self.echo.is_some() && self.acked != Some(value) {
            self.reply.get_or_insert((value, now));
        }
    }

    /// Notes the timestamp that a segment of the sender echoes. An answer to the repeat that comes
    /// back in time, `way_ns`, was the first that came. Later, it may have come in a heap behind
    /// others, and tells nothing.
    pub(super) fn echoed(&mut self, echo: u32, now: u64, way_ns: u64) {
        let Some(first) = self.echo else { return };
        if echo.wrapping_sub(first) as i32 <= 0 {
            return;
        }
        let in_time_ns = way_ns.saturating_mul(3) / 2 + LATE_NS;
        match self.reply {
            Some((reply, at_ns)) if echo.wrapping_sub(reply) as i32 >= 0 => {
                self.never = now.saturating_sub(at_ns) <= in_time_ns;
            }
            _ => self.late = true,
        }
    }
}

/// How a pause ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// New data was sent.
    NewData,
    Delivery,
    /// The connection was reset.
    Reset,
    /// The capture ended.
    Capture,
}

/// What followed a pause, for about a round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct After {
    pub(crate) until_ns: u64,
    /// New segments that were sent before anything was acknowledged.
    pub(crate) new_segments: u64,
    /// New segments that were sent before any answer can have let them go: until
    /// `prompt_until_ns`.
    pub(crate) prompt_segments: u64,
    /// End of the time for `prompt_segments`.
    pub(crate) prompt_until_ns: u64,
    /// When the first of the new segments came, if the pause did not end with it.
    pub(crate) next_data_ns: Option<u64>,
    /// Ticks of the sender's clock from the last data before the pause to that; the most: not known.
    pub(crate) next_ticks: u32,
    /// Whether the sender ended its stream.
    pub(crate) has_ended: bool,
    /// Acknowledgements of the receiver for which nothing was under way: each answers a copy.
    pub(crate) extra_acks: u32,
    /// Whether the other side sent data before that.
    pub(crate) peer_spoke: bool,
    /// Bytes of new data, and of those sent until `prompt_until_ns`.
    pub(crate) burst_bytes: u64,
    pub(crate) prompt_bytes: u64,
    pub(crate) acked: bool,
    /// Bytes delivered before anything sent after the pause can have been answered: until
    /// `soon_until_ns`.
    pub(crate) soon_bytes: u64,
    /// End of the time for `soon_bytes`.
    pub(crate) soon_until_ns: u64,
    pub(crate) retransmissions: u64,
    pub(crate) holes: u64,
    /// Retransmissions of the pause that turned out to be of data that had arrived before.
    pub(crate) spurious: u64,
    /// Of these, the ones whose originals were overtaken.
    pub(crate) overtaken: u32,
}

/// Which copy of a segment its acknowledgement answers, by the timestamp that it echoes
/// (RFC 3522).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answered {
    /// The timestamps do not tell.
    #[default]
    Unknown,
    /// A copy before the last one.
    Older,
    /// The last copy: the copies before it had not arrived.
    Last,
}

/// A pause, with the states in which it began and ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) packet_before: u64,
    pub(crate) packet_after: u64,
    pub(crate) closed: Closed,
    /// Whether it was too short for a silence, and is kept only because an answer came late.
    pub(crate) is_only_late: bool,
    /// Segments that the receiver sent in the pause.
    pub(crate) from_receiver: u64,
    pub(crate) gap: Gap,
    pub(crate) after: After,
    /// Whether only the FIN is not acknowledged.
    pub(crate) is_only_fin: bool,
    /// Whether new data that ended the pause is the end of the stream alone.
    pub(crate) ended_by_fin: bool,
    /// Whether the segment that ended the pause carries data of the receiver.
    pub(crate) ended_by_peer_data: bool,
    pub(crate) answered: Answered,
    /// When the other side sent data last, and in which packet; 0: never.
    pub(crate) peer_data: (u64, u64),
    /// The bytes of its last message, and the milliseconds, begun, by which that first came behind
    /// this side's last data; the most: there was none.
    pub(crate) peer_message: (u32, u32),
    /// When all data of the other side had last been acknowledged.
    pub(crate) peer_settled_ns: u64,
    /// Whether the other side had ended its stream.
    pub(crate) has_peer_ended: bool,
    /// Bytes of new data from the pause before to this one.
    pub(crate) burst_before_bytes: u64,
    /// Whether the data that ended the pause reaches exactly to the window's edge.
    pub(crate) fills_window: bool,
    /// The same of the edge before the last update of the window.
    pub(crate) fills_untold: bool,
    /// Bytes outstanding at the end, before what ended the pause.
    pub(crate) outstanding_bytes: u64,
    pub(crate) sacked_bytes: u64,
    pub(crate) window_bytes: Option<u64>,
    /// Whether it is known how much room the window has at most.
    pub(crate) is_room_known: bool,
    /// The window's edge at most, before what ended the pause; whether that advanced it, and
    /// made the window as large as it ever was.
    pub(crate) edge_before: u64,
    pub(crate) has_grown: bool,
    pub(crate) is_whole: bool,
    /// Largest value of the window field so far.
    pub(crate) window_field_max: u16,
    /// Largest window so far, in bytes.
    pub(crate) window_max_bytes: u64,
    /// Whole round trip, if it is known.
    pub(crate) rtt_ns: Option<u64>,
    pub(crate) rtt_min_ns: u64,
    pub(crate) rto_ns: u64,
    /// Whether several segments of data were answered before: the sender's timer follows the
    /// round trip then, and no longer begins with a guess.
    pub(crate) is_timer_measured: bool,
    /// Shortest round trip from the capture to the receiver and back.
    pub(crate) receiver_rtt_ns: u64,
    /// Shortest round trip from the capture to the sender and back.
    pub(crate) sender_rtt_ns: u64,
    pub(crate) mss_bytes: u64,
    pub(crate) last_data_ns: u64,
    pub(crate) last_data_bytes: u64,
    /// Segments sent since the last acknowledgement that advanced.
    pub(crate) unanswered_segments: u64,
    pub(crate) delivered_by_close: u64,
    pub(crate) holes_by_close: u64,
    /// The largest captured segment that the end delivered.
    pub(crate) largest_by_close: u64,
    /// Whether the segment that ended the pause reports a repair as received twice (RFC 2883).
    pub(crate) reported_twice: bool,
    /// Packets that the receiver sent since the one captured before the end, by its IP
    /// identification, where that counts the packets of this connection.
    pub(crate) answers_sent: Option<u16>,
    /// Packets under way, of whatever size; below, whether the hole that ended the pause was
    /// filled later.
    pub(crate) outstanding_packets: u64,
    /// Whether the sender had sent a small segment while another small one was under way: it did
    /// not follow Nagle's rule then (RFC 9293, 3.7.4). SSH turns it off when a session begins.
    pub(crate) sends_small_ones: bool,
    /// Whether a repair on acknowledgements was not over.
    pub(crate) is_recovering: bool,
    pub(crate) is_hole_filled: bool,
    /// Largest payload that was delivered so far.
    pub(crate) delivered_max_bytes: u64,
    /// Ticks of the sender's own clock from the last data before the pause to the data that
    /// ended it.
    pub(crate) ticks_apart: Option<u32>,
    /// Packets of the sender that the capture lacks before the data that ended the pause, if its IP
    /// identifications count them.
    pub(crate) missed: Option<u16>,
    /// Whether the data that ended the pause echoes the last acknowledgement, or later; below,
    /// the beginning of what the other side had asked. `None`: no timestamps.
    pub(crate) knows_ack: Option<bool>,
    pub(crate) knows_request: Option<bool>,
    /// Ticks of the receiver's clock between the acknowledgement that ended the pause and its
    /// segment before, and the milliseconds between the two.
    pub(crate) answer_apart: Option<(u32, u32)>,
    /// The shortest pause that counts; below, whether the sender itself reset the connection.
    pub(crate) threshold_ns: u64,
    pub(crate) is_own_reset: bool,
    /// Rate before the pause, in bytes per second; 0: not known.
    pub(crate) rate_before: u64,
}

impl Facts {
    pub(crate) fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// Returns whether the other side sent data in the pause, or with the segment that began
    /// it.
    pub(crate) fn peer_spoke(&self) -> bool {
        self.peer_data.0 >= self.start_ns
    }

    /// Returns whether the other side sent data behind this side's last, which waits for an answer.
    pub(crate) fn is_asked(&self) -> bool {
        self.peer_spoke() && self.peer_data.0 > self.last_data_ns
    }

    /// Returns whether new data followed as if the acknowledgement that ended the pause had let
    /// it go: not before that can have reached the sender, and at once then.
    pub(crate) fn goes_on_at_once(&self) -> bool {
        let way_ns = self.sender_rtt_ns;
        let allowed_ns = way_ns / 4 * 3..=way_ns + (way_ns / 4).max(LET_GO_NS);
        let next_ns = self.after.next_data_ns;
        next_ns.is_some_and(|next_ns| allowed_ns.contains(&next_ns.saturating_sub(self.end_ns)))
    }

    /// Returns whether the pause was longer than any timer leaves data unacknowledged without
    /// retransmitting it.
    pub(crate) fn outlasts_timers(&self) -> bool {
        // What was under way when the pause began waited for all of it.
        let since_ns = match self.gap.new_segments {
            0 => self.last_data_ns,
            _ => self.start_ns,
        };
        let waited_ns = self.end_ns.saturating_sub(since_ns);
        waited_ns > self.longest_timer_ns()
    }

    /// Returns the longest time after which any sender repeats for the first time.
    pub(crate) fn longest_timer_ns(&self) -> u64 {
        self.rto_ns.saturating_mul(4).max(LONGEST_FIRST_TIMER_NS)
    }
}

impl Span for Facts {
    fn start_ns(&self) -> u64 {
        self.start_ns
    }

    fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

fields!(Packets {
    first,
    next,
    last,
    count,
});
fields!(Retransmitted {
    at_ns,
    bytes,
    copies_before,
    last_ns,
    kind_before,
    sacked_above,
    sent_above,
    was_knowable,
    missed,
    is_head,
});
fields!(Gap {
    dirty,
    retransmitted,
    timeouts,
    probes,
    fast,
    retransmitted_bytes_max,
    retransmitted_bytes_min,
    retransmitted_high,
    retransmitted_segments,
    first_timeout,
    first_probe,
    last_resent_ns,
    retransmitted_acked,
    first_acked_ns,
    last_acked_ns,
    known,
    unknown_acked_bytes,
    acked_answer,
    new_segments,
    holes,
    hole,
    duplicate_acks,
    closed_window,
    window_least,
    room_least_bytes,
    update,
    closed_ns,
    opened,
    window_probes,
    last_window_probe_ns,
    is_probe_pending,
    probes_unanswered,
    receiver_data,
    spurious,
    overtaken,
    head_copies,
    backoffs,
    head_interval_ns,
});
fields!(Known {
    echo,
    acked,
    reply,
    at_repeat,
    late,
    never,
    below_window,
    missed,
    crossed,
});
fields!(After {
    until_ns,
    new_segments,
    prompt_segments,
    prompt_until_ns,
    next_data_ns,
    next_ticks,
    has_ended,
    extra_acks,
    peer_spoke,
    burst_bytes,
    prompt_bytes,
    acked,
    soon_bytes,
    soon_until_ns,
    retransmissions,
    holes,
    spurious,
    overtaken,
});
fields!(Facts {
    start_ns,
    end_ns,
    packet_before,
    packet_after,
    closed,
    is_only_late,
    from_receiver,
    gap,
    after,
    is_only_fin,
    ended_by_fin,
    ended_by_peer_data,
    answered,
    peer_data,
    peer_message,
    peer_settled_ns,
    has_peer_ended,
    burst_before_bytes,
    fills_window,
    fills_untold,
    outstanding_bytes,
    sacked_bytes,
    window_bytes,
    is_room_known,
    edge_before,
    has_grown,
    is_whole,
    window_field_max,
    window_max_bytes,
    rtt_ns,
    rtt_min_ns,
    rto_ns,
    is_timer_measured,
    receiver_rtt_ns,
    sender_rtt_ns,
    mss_bytes,
    last_data_ns,
    last_data_bytes,
    unanswered_segments,
    delivered_by_close,
    holes_by_close,
    largest_by_close,
    reported_twice,
    answers_sent,
    outstanding_packets,
    sends_small_ones,
    is_recovering,
    is_hole_filled,
    delivered_max_bytes,
    ticks_apart,
    missed,
    knows_ack,
    knows_request,
    answer_apart,
    threshold_ns,
    is_own_reset,
    rate_before,
});
variants!(Closed {
    NewData,
    Delivery,
    Reset,
    Capture,
});
variants!(Answered {
    Unknown,
    Older,
    Last,
});
variants!(RetransmissionKind {
    Fast,
    Timeout,
    AfterTimeout,
    Probe,
    Unclear,
});
