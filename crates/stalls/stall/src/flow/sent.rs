// SPDX-License-Identifier: MIT OR Apache-2.0
//! A segment that was sent and is not acknowledged yet.

use std::num::NonZeroU32;

use capture::segment::Segment;

use crate::history::RetransmissionKind;

/// An outstanding segment, or a hole: bytes that were skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Time of the first capture; of a hole, when it was found.
    pub(crate) first_ns: u64,
    /// Time of the last capture.
    pub(crate) last_ns: u64,
    /// Number of the packet captured last.
    pub(crate) packet: u64,
    /// Timestamp of the packet captured last, if it has one; its clock passes 0 too seldom to matter.
    pub(crate) timestamp: Option<NonZeroU32>,
    /// IP identification of the packet captured last.
    pub(crate) ip_id: u16,
    /// How often the segment was captured. A hole was not.
    pub(crate) copies: u8,
    pub(crate) sacked: bool,
    /// Whether the copy captured last has another timestamp than the one before.
    pub(crate) has_new_timestamp: bool,
    /// Epoch of the board in which the segment was retransmitted and thought to be in flight.
    pub(super) retrans_epoch: Option<NonZeroU32>,
    /// What made the sender retransmit it last.
    pub(crate) kind: Option<RetransmissionKind>,
}

impl Sent {
    pub(super) fn new(start: u64, end: u64, now: u64, packet: u64, copies: u8) -> Self {
        Self {
            start,
            end,
            first_ns: now,
            last_ns: now,
            packet,
            timestamp: None,
            has_new_timestamp: false,
            ip_id: 0,
            copies,
            sacked: false,
            retrans_epoch: None,
            kind: None,
        }
    }
}

/// Returns a segment's timestamp as `Sent` keeps it.
pub(super) fn timestamp(segment: &Segment) -> Option<NonZeroU32> {
    NonZeroU32::new(segment.timestamps?.value)
}
