// SPDX-License-Identifier: MIT OR Apache-2.0
//! The facts about a pause that are kept until the whole capture is known: enough for every
//! rule, in constant memory.

use std::num::NonZeroU64;

use units::time::NS_PER_MS;

use super::at::At;
use super::packed::{Span, fields, variants};
use super::round_trip::KnownTrips;
use super::state::acks::{AckedBy, Answer};
use super::state::data::{DataBefore, NextData};
use super::state::peer::Peer;
use super::state::window::WindowBefore;
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
    /// How often the segment had been captured before.
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
    /// Segments that the receiver sent.
    pub(crate) from_receiver: u64,
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
    /// When the first and the last of them came.
    pub(crate) first_acked_ns: u64,
    pub(crate) last_acked_ns: u64,
    /// What the sender's echoes tell of the acknowledgements that it repeated in spite of.
    pub(crate) known: Known,
    /// Bytes that the sender did not know to be acknowledged, most.
    pub(crate) unknown_acked_bytes: u64,
    /// What the receiver said after the last of them could have reached it.
    pub(crate) acked_answer: Option<At>,
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
    pub(crate) update: Option<At>,
    /// When the window closed last; 0, when the capture begins, before.
    pub(crate) closed_ns: u64,
    pub(crate) opened: Option<At>,
    /// Probes of a closed window, or of one that the sender does not know to be open.
    pub(crate) window_probes: Packets,
    /// When the last of them was sent; 0, when the capture begins, before.
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

/// What the sender knew of acknowledgements when it repeated what they acknowledge, by the
/// timestamps that it echoes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    /// The timestamp that the first such repeat echoes.
    echo: Option<u32>,
    /// The timestamp of the acknowledgement that it did not know, perhaps.
    acked: Option<u32>,
    /// The first timestamp of the receiver after that, and when it was captured.
    reply: Option<(u32, NonZeroU64)>,
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
            self.reply = self.reply.or(NonZeroU64::new(now).map(|now| (value, now)));
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
                self.never = now.saturating_sub(at_ns.get()) <= in_time_ns;
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
    pub(crate) next_data_ns: Option<NonZeroU64>,
    /// Ticks of the sender's clock from the last data before the pause to that.
    pub(crate) next_ticks: Option<u32>,
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
    /// Whether the hole that ended the pause was filled.
    pub(crate) is_hole_filled: bool,
    /// Retransmissions of the pause that turned out to be of data that had arrived before.
    pub(crate) spurious: u64,
    /// Of these, the ones whose originals were overtaken.
    pub(crate) overtaken: u32,
}

/// What was under way at the end of a pause, before what ended it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnderWay {
    pub(crate) bytes: u64,
    /// Packets, of whatever size.
    pub(crate) packets: u32,
    pub(crate) sacked_bytes: u64,
    /// Whether only the FIN is not acknowledged.
    pub(crate) is_only_fin: bool,
    /// Whether a repair on acknowledgements was not over.
    pub(crate) is_recovering: bool,
    /// Largest payload that was delivered so far.
    pub(crate) delivered_max_bytes: u64,
}

/// A pause, with the states in which it began and ended. Each group is in the file that fills it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) packet_before: u64,
    pub(crate) packet_after: u64,
    pub(crate) closed: Closed,
    /// Whether the sender itself reset the connection.
    pub(crate) is_own_reset: bool,
    /// Whether it was too short for a silence, and is kept only because an answer came late.
    pub(crate) is_only_late: bool,
    /// The shortest pause that counts.
    pub(crate) threshold_ns: u64,
    /// Rate before the pause, in bytes per second, if it is known.
    pub(crate) rate_before: Option<NonZeroU64>,
    pub(crate) gap: Gap,
    pub(crate) after: After,
    pub(crate) under_way: UnderWay,
    pub(crate) data: DataBefore,
    pub(crate) trips: KnownTrips,
    pub(crate) window: WindowBefore,
    pub(crate) peer: Peer,
    pub(crate) answer: Answer,
    pub(crate) next: NextData,
}

impl Facts {
    pub(crate) fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// Returns whether the other side sent data in the pause, or with the segment that began
    /// it.
    pub(crate) fn peer_spoke(&self) -> bool {
        self.peer.data_ns() >= self.start_ns
    }

    /// Returns whether the other side sent data behind this side's last, which waits for an answer.
    pub(crate) fn is_asked(&self) -> bool {
        self.peer_spoke() && self.peer.data_ns() > self.data.last_ns
    }

    /// Returns whether new data followed as if the acknowledgement that ended the pause had let
    /// it go: not before that can have reached the sender, and at once then.
    pub(crate) fn goes_on_at_once(&self) -> bool {
        let way_ns = self.trips.sender_rtt_ns;
        let allowed_ns = way_ns / 4 * 3..=way_ns + (way_ns / 4).max(LET_GO_NS);
        let next_ns = self.after.next_data_ns;
        next_ns.is_some_and(|ns| allowed_ns.contains(&ns.get().saturating_sub(self.end_ns)))
    }

    /// Returns whether the pause was longer than any timer leaves data unacknowledged without
    /// retransmitting it.
    pub(crate) fn outlasts_timers(&self) -> bool {
        // What was under way when the pause began waited for all of it.
        let since_ns = match self.gap.new_segments {
            0 => self.data.last_ns,
            _ => self.start_ns,
        };
        let waited_ns = self.end_ns.saturating_sub(since_ns);
        waited_ns > self.longest_timer_ns()
    }

    /// Returns the longest time after which any sender repeats for the first time.
    pub(crate) fn longest_timer_ns(&self) -> u64 {
        self.trips
            .rto_ns
            .saturating_mul(4)
            .max(LONGEST_FIRST_TIMER_NS)
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
    from_receiver,
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
    is_hole_filled,
    spurious,
    overtaken,
});
fields!(UnderWay {
    bytes,
    packets,
    sacked_bytes,
    is_only_fin,
    is_recovering,
    delivered_max_bytes,
});
fields!(Facts {
    start_ns,
    end_ns,
    packet_before,
    packet_after,
    closed,
    is_own_reset,
    is_only_late,
    threshold_ns,
    rate_before,
    gap,
    after,
    under_way,
    data,
    trips,
    window,
    peer,
    answer,
    next,
});
variants!(Closed {
    NewData,
    Delivery,
    Reset,
    Capture,
});
variants!(RetransmissionKind {
    Fast,
    Timeout,
    AfterTimeout,
    Probe,
    Unclear,
});
