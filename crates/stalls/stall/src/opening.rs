// SPDX-License-Identifier: MIT OR Apache-2.0
//! A connection of which next to nothing was captured yet: its few segments, as they are. Most
//! connections of a flood or of a scan stay so, and take a twentieth of one that has data.

use std::sync::Arc;

use capture::segment::{
    EncapsulationId, Endpoint, Flags, HostDirection, SackBlocks, Segment, Timestamps,
};

use crate::connection::Connection;
use crate::flow::at::At;
use crate::options::Options;

/// Segments that are kept as they are; with more, the connection is opened.
const KEPT_MOST: usize = 4;

/// A segment without data, at an internal time, without what all of a connection have.
#[derive(Clone, Copy, Debug)]
struct Brief {
    now: u64,
    number: u64,
    seq: u32,
    ack: u32,
    timestamps: Option<Timestamps>,
    flags: Flags,
    window: u16,
    mss: Option<u16>,
    ip_id: u16,
    window_scale: Option<u8>,
    sack_permitted: bool,
    options_cut: bool,
    ecn: u8,
    hop_limit: u8,
    host_direction: HostDirection,
    /// The end that sent it: 0 or 1.
    from: u8,
}

/// The beginning of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    ends: [Endpoint; 2],
    pub(crate) encapsulation: EncapsulationId,
    first: At,
    segments: Vec<Brief>,
}

impl Opening {
    /// Begins with no segment; the first one comes at `first`.
    pub(crate) fn new(ends: [Endpoint; 2], encapsulation: EncapsulationId, first: At) -> Self {
        Self {
            ends,
            encapsulation,
            first,
            segments: Vec::with_capacity(1),
        }
    }

    /// Keeps a segment of end `from`. Returns `false` if it is one that opens the connection.
    pub(crate) fn keep(&mut self, from: usize, segment: &Segment, now: u64) -> bool {
        let has_blocks = !segment.sack.as_slice().is_empty();
        if segment.payload_bytes > 0 || has_blocks || self.segments.len() >= KEPT_MOST {
            return false;
        }
        self.segments.reserve_exact(1);
        self.segments.push(Brief {
            now,
            number: segment.number,
            seq: segment.seq,
            ack: segment.ack,
            timestamps: segment.timestamps,
            flags: segment.flags,
            window: segment.window,
            mss: segment.mss,
            ip_id: segment.ip_id,
            window_scale: segment.window_scale,
            sack_permitted: segment.sack_permitted,
            options_cut: segment.options_cut,
            ecn: segment.ecn,
            hop_limit: segment.hop_limit,
            host_direction: segment.host_direction,
            from: u8::from(from == 1),
        });
        true
    }

    /// Returns the connection as it is after these segments.
    pub(crate) fn open(&self, options: &Arc<Options>) -> Connection {
        let mut connection =
            Connection::new(options, self.ends, self.encapsulation, self.first, None);
        for brief in &self.segments {
            connection.segment(brief.from.into(), &self.whole(brief), brief.now);
        }
        connection
    }

    /// Returns whether a SYN begins another connection of the same ports.
    pub(crate) fn is_replaced_by(&self, from: usize, segment: &Segment) -> bool {
        let mut client = None;
        for brief in &self.segments {
            let end = usize::from(brief.from);
            let asked = match (brief.flags.any(Flags::SYN), brief.flags.any(Flags::ACK)) {
                (true, false) => (end, brief.seq),
                (true, true) => (1 - end, brief.ack.wrapping_sub(1)),
                _ => continue,
            };
            client.get_or_insert(asked);
        }
        let is_syn = segment.flags.any(Flags::SYN) && !segment.flags.any(Flags::ACK);
        let has_ended = self
            .segments
            .iter()
            .any(|brief| brief.flags.any(Flags::FIN));
        is_syn && (client != Some((from, segment.seq)) || has_ended)
    }

    fn whole(&self, brief: &Brief) -> Segment {
        let from = usize::from(brief.from);
        Segment {
            number: brief.number,
            time_ns: 0, // the internal time counts
            from: self.ends[from],
            to: self.ends[1 - from],
            encapsulation: self.encapsulation,
            seq: brief.seq,
            ack: brief.ack,
            flags: brief.flags,
            window: brief.window,
            payload_bytes: 0,
            mss: brief.mss,
            window_scale: brief.window_scale,
            sack_permitted: brief.sack_permitted,
            mptcp: None,
            timestamps: brief.timestamps,
            sack: SackBlocks::default(),
            options_cut: brief.options_cut,
            ecn: brief.ecn,
            ip_id: brief.ip_id,
            hop_limit: brief.hop_limit,
            host_direction: brief.host_direction,
        }
    }
}
