// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is kept of a time without progress until the whole capture is known:
//! enough for every rule, in constant memory.

use units::time::NS_PER_MS;

use crate::history::RetransmissionKind;

/// A sender that waits for an acknowledgement goes on within this.
pub(crate) const LET_GO_NS: u64 = 2 * NS_PER_MS;
/// No stack in use has a longer timeout before it has measured a round trip.
const LONGEST_FIRST_TIMER_NS: u64 = 3000 * NS_PER_MS;

/// Packet numbers that show something: the first ones and the last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packets {
    first: [u64; Self::KEPT],
    last: u64,
    count: u64,
}

impl Packets {
    const KEPT: usize = 3;

    pub(crate) fn push(&mut self, packet: u64) {
        if let Some(place) = self.first.get_mut(self.count as usize) {
            *place = packet;
        }
        self.last = packet;
        self.count += 1;
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let kept = self.first.iter().take(self.count as usize).copied();
        kept.chain((self.count > self.first.len() as u64).then_some(self.last))
    }
}

/// The state of what a timeout, or a probe, retransmitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retransmitted {
    pub(crate) at_ns: u64,
    pub(crate) bytes: u64,
    /// How often it had been captured before; 0: never.
    pub(crate) copies_before: u8,
    /// When it was captured last before.
    pub(crate) last_ns: u64,
    /// What its last retransmission was for, if it had one.
    pub(crate) kind_before: Option<RetransmissionKind>,
    /// Bytes reported as arrived, above it.
    pub(crate) sacked_above: u64,
    /// Bytes sent above it.
    pub(crate) sent_above: u64,
    /// Something sent after its last copy had been reported as arrived.
    pub(crate) was_knowable: bool,
}

/// What happens in a pause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gap {
    pub(crate) dirty: bool,
    pub(crate) retransmitted: Packets,
    pub(crate) timeouts: u64,
    pub(crate) probes: u64,
    pub(crate) fast: u64,
    pub(crate) retransmitted_bytes_max: u64,
    /// Different segments among what was retransmitted.
    pub(crate) retransmitted_high: u64,
    pub(crate) retransmitted_segments: u64,
    pub(crate) first_timeout: Option<Retransmitted>,
    pub(crate) first_probe: Option<Retransmitted>,
    pub(crate) last_resent_ns: u64,
    /// Retransmitted although the capture had its acknowledgement.
    pub(crate) retransmitted_acked: Packets,
    pub(crate) first_acked_ns: Option<u64>,
    pub(crate) new_segments: u64,
    /// Data that left a hole below it.
    pub(crate) holes: u64,
    pub(crate) duplicate_acks: Packets,
    pub(crate) closed_window: Packets,
    /// The least that the window's field said, since what the pause began with.
    pub(crate) window_least: Option<u16>,
    /// The least room in the window for new data. `None`: no window was seen.
    pub(crate) room_least_bytes: Option<u64>,
    /// When the window's edge moved on last, by which packet.
    pub(crate) update: Option<(u64, u64)>,
    pub(crate) closed_ns: u64,
    pub(crate) opened: Option<(u64, u64)>,
    /// Probes of a closed window, or of one that the sender does not know to be open.
    pub(crate) window_probes: Packets,
    pub(crate) last_window_probe_ns: u64,
    pub(crate) receiver_data: Packets,
    pub(crate) spurious: u64,
    /// Copies of the first unacknowledged segment, and how many of them came at least
    /// half as long again after the one before as that after its own.
    pub(crate) head_copies: u64,
    pub(crate) backoffs: u64,
    pub(crate) head_interval_ns: u64,
}

/// How a pause ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// New data was sent.
    NewData,
    /// Something was delivered.
    Delivery,
    /// The connection was reset.
    Reset,
    /// The capture ended.
    Capture,
}

/// What came after a pause, for about a round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct After {
    pub(crate) until_ns: u64,
    /// New segments before anything was acknowledged.
    pub(crate) new_segments: u64,
    /// New segments so soon that no answer can have let them go ...
    pub(crate) prompt_segments: u64,
    /// ... which is until then.
    pub(crate) prompt_until_ns: u64,
    /// When the first of them came, if the pause did not end with it.
    pub(crate) next_data_ns: Option<u64>,
    /// Bytes of new data, and of those so soon.
    pub(crate) burst_bytes: u64,
    pub(crate) prompt_bytes: u64,
    pub(crate) acked: bool,
    /// Delivered so soon that nothing sent after the pause can have done it ...
    pub(crate) soon_bytes: u64,
    /// ... which is until then.
    pub(crate) soon_until_ns: u64,
    pub(crate) retransmissions: u64,
    pub(crate) holes: u64,
    /// What the pause had retransmitted turned out to have arrived before.
    pub(crate) spurious: u64,
}

/// Which copy of a segment its acknowledgement answers, by the timestamp that it echoes
/// (RFC 3522).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answered {
    /// The timestamps do not tell.
    #[default]
    Unknown,
    /// One before the last copy.
    Older,
    /// The last copy: the copies before it had not arrived.
    Last,
}

/// A pause, with the state it began and ended in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) packet_before: u64,
    pub(crate) packet_after: u64,
    pub(crate) closed: Closed,
    /// No silence by its length, only an answer that came late.
    pub(crate) is_only_late: bool,
    /// Segments of the receiver in it.
    pub(crate) from_receiver: u64,
    pub(crate) gap: Gap,
    pub(crate) after: After,
    /// Nothing but the end of the stream is not acknowledged.
    pub(crate) is_only_fin: bool,
    /// What ended it carries data of the receiver.
    pub(crate) ended_by_peer_data: bool,
    pub(crate) answered: Answered,
    /// When the other side sent data last, and in which packet; 0: never.
    pub(crate) peer_data: (u64, u64),
    /// When all data of the other side had been acknowledged last.
    pub(crate) peer_settled_ns: u64,
    /// Bytes of new data from the pause before to this one.
    pub(crate) burst_before_bytes: u64,
    /// The data that ended it reaches exactly to the window's edge.
    pub(crate) fills_window: bool,
    /// Sent and not acknowledged at the end, before what ended it.
    pub(crate) outstanding_bytes: u64,
    pub(crate) sacked_bytes: u64,
    pub(crate) window_bytes: Option<u64>,
    /// The most that the window's field has said.
    pub(crate) window_field_max: u16,
    /// The largest window so far.
    pub(crate) window_max_bytes: u64,
    /// Whole round trip, if known.
    pub(crate) rtt_ns: Option<u64>,
    pub(crate) rtt_min_ns: u64,
    pub(crate) rto_ns: u64,
    /// Capture to receiver and back, least.
    pub(crate) receiver_rtt_ns: u64,
    /// Capture to sender and back, least.
    pub(crate) sender_rtt_ns: u64,
    pub(crate) mss_bytes: u64,
    pub(crate) last_data_ns: u64,
    pub(crate) last_data_bytes: u64,
    /// Segments since the last acknowledgement that moved.
    pub(crate) unanswered_segments: u64,
    pub(crate) delivered_by_close: u64,
    pub(crate) holes_by_close: u64,
    /// The largest payload that was delivered so far.
    pub(crate) delivered_max_bytes: u64,
    /// Ticks of the sender's own clock from the last data before the pause to the
    /// data that ended it.
    pub(crate) ticks_apart: Option<u32>,
    /// Before it, in bytes per second; 0: not known.
    pub(crate) rate_before: u64,
}

impl Facts {
    pub(crate) fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// The other side sent data in it, or with what it began with.
    pub(crate) fn peer_spoke(&self) -> bool {
        self.peer_data.0 >= self.start_ns
    }

    /// New data came after the end when an acknowledgement that ended it can have let it
    /// go: neither before that can have reached the sender nor later than at once.
    pub(crate) fn goes_on_at_once(&self) -> bool {
        let way_ns = self.sender_rtt_ns;
        let allowed_ns = way_ns / 4 * 3..=way_ns + (way_ns / 4).max(LET_GO_NS);
        let next_ns = self.after.next_data_ns;
        next_ns.is_some_and(|next_ns| allowed_ns.contains(&next_ns.saturating_sub(self.end_ns)))
    }

    /// Longer than any timer leaves data unacknowledged without sending it again.
    pub(crate) fn outlasts_timers(&self) -> bool {
        let waited_ns = self.end_ns.saturating_sub(self.last_data_ns);
        waited_ns > self.rto_ns.saturating_mul(4).max(LONGEST_FIRST_TIMER_NS)
    }
}
