// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the receiver's acknowledgements said.

use std::num::NonZeroU64;

use crate::flow::packed::{fields, variants};

/// What the receiver's acknowledgements said.
///
/// Times are 0, when the capture begins, before there is an event: they are only compared, and nothing is earlier.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acks {
    pub(in crate::flow) is_any: bool,
    /// Whether both SYNs permit SACK.
    pub(in crate::flow) is_sack_permitted: bool,
    /// When the last one came that told something new, or was a duplicate.
    pub(in crate::flow) last_ns: u64,
    pub(in crate::flow) by: AckedBy,
    /// Bytes that arrived.
    pub(in crate::flow) delivered: u64,
    /// Time of the latest original transmission that was delivered.
    pub(in crate::flow) newest_delivered_ns: u64,
    /// When everything that was sent had last been acknowledged.
    pub(crate) settled_ns: u64,
    /// An acknowledgement of far more than the capture shows, not believed yet.
    pub(in crate::flow) unheard_of: Option<NonZeroU64>,
}

/// What the acknowledgement that ended a pause tells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answer {
    /// Whether it carries data of the receiver.
    pub(crate) has_data: bool,
    /// The copy of the first segment under way that it answers.
    pub(crate) copy: Answered,
    pub(crate) delivered_bytes: u64,
    /// Bytes of these that were never captured.
    pub(crate) hole_bytes: u64,
    /// The largest captured segment that it delivered.
    pub(crate) largest_bytes: u64,
    /// Whether it reports a repair as received twice (RFC 2883).
    pub(crate) reported_twice: bool,
    /// Packets that the receiver sent since the one captured before, by its IP identification,
    /// where that counts the packets of this connection.
    pub(crate) sent: Option<u16>,
    /// Ticks of the receiver's clock between it and the receiver's segment before, and the
    /// milliseconds between the two.
    pub(crate) apart: Option<(u32, u32)>,
}

fields!(Answer {
    has_data,
    copy,
    delivered_bytes,
    hole_bytes,
    largest_bytes,
    reported_twice,
    sent,
    apart,
});

/// The segment that acknowledged most so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckedBy {
    pub(crate) value: Option<u32>,
    /// Whether the acknowledgement before it had another timestamp.
    pub(crate) is_of_new_tick: bool,
    /// Whether it lay below the sender's window.
    pub(crate) is_below_window: bool,
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

variants!(Answered {
    Unknown,
    Older,
    Last,
});
