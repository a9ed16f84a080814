// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data that a sender sent.

use std::num::NonZeroU64;

use crate::flow::at::At;
use crate::flow::packed::fields;

/// The data that was captured last, and what the pauses and their rules ask of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Data {
    pub(in crate::flow) is_any: bool,
    /// When the first segment with data or a FIN came.
    pub(in crate::flow) first_ns: Option<u64>,
    pub(in crate::flow) first: Option<FirstData>,
    /// When data was sent last that was no repeat, and its bytes.
    pub(in crate::flow) last_ns: Option<NonZeroU64>,
    pub(in crate::flow) last_bytes: u64,
    /// Segments sent since the last acknowledgement that advanced.
    pub(in crate::flow) unanswered_segments: u64,
    /// Timestamp of the last new data, and the ticks between it and the new data before.
    pub(in crate::flow) last_timestamp: Option<u32>,
    pub(in crate::flow) ticks_apart: Option<u32>,
    /// Packets of the sender that the capture lacks just before its last one.
    pub(in crate::flow) missed: Option<u16>,
    /// The segment captured last, repeats included: start, end and IP identification; and when.
    pub(in crate::flow) last_sent: (u64, u64, u16),
    pub(in crate::flow) last_sent_ns: u64,
    /// Whether a small segment was sent while another small one was under way.
    pub(in crate::flow) sends_small_ones: bool,
}

impl Data {
    /// Returns when data was sent last that was no repeat. It is before every time, if none was.
    pub(in crate::flow) fn last_ns(&self) -> u64 {
        self.last_ns.map_or(0, NonZeroU64::get)
    }
}

/// The first data of a flow, and what the other side had sent before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstData {
    pub(crate) at: At,
    /// The other side's last data.
    pub(crate) asked: Option<At>,
    /// The time by which this data, or an earlier packet, had acknowledged all of that; a time before `asked`: nothing had.
    pub(crate) settled_ns: u64,
}

/// The data before a pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataBefore {
    pub(crate) last_ns: u64,
    pub(crate) last_bytes: u64,
    /// Bytes of new data from the pause before to this one.
    pub(crate) burst_bytes: u64,
    /// Segments sent since the last acknowledgement that advanced.
    pub(crate) unanswered_segments: u64,
    /// Payload of a full segment.
    pub(crate) mss_bytes: u64,
    /// Whether the sender had sent a small segment while another small one was under way: it did
    /// not follow Nagle's rule then (RFC 9293, 3.7.4). SSH turns it off when a session begins.
    pub(crate) sends_small_ones: bool,
}

/// What the new data that ended a pause tells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NextData {
    /// Whether it is the end of the stream alone.
    pub(crate) is_fin: bool,
    /// Whether it reaches exactly to the window's edge.
    pub(crate) fills_window: bool,
    /// The same of the edge before the last update of the window.
    pub(crate) fills_untold: bool,
    /// Ticks of the sender's own clock from the last data before the pause to it.
    pub(crate) ticks_apart: Option<u32>,
    /// Packets of the sender that the capture lacks before it, if its IP identifications count
    /// them.
    pub(crate) missed: Option<u16>,
    /// Whether it echoes the last acknowledgement, or later; below, the beginning of what the
    /// other side had asked. `None`: no timestamps.
    pub(crate) knows_ack: Option<bool>,
    pub(crate) knows_request: Option<bool>,
}

fields!(DataBefore {
    last_ns,
    last_bytes,
    burst_bytes,
    unanswered_segments,
    mss_bytes,
    sends_small_ones,
});
fields!(NextData {
    is_fin,
    fills_window,
    fills_untold,
    ticks_apart,
    missed,
    knows_ack,
    knows_request,
});
