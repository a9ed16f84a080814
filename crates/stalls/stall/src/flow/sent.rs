// SPDX-License-Identifier: MIT OR Apache-2.0
//! A segment that was sent and is not acknowledged yet.

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
    /// Timestamp of the packet captured last; 0 if it has none.
    pub(crate) timestamp: u32,
    /// IP identification of the packet captured last.
    pub(crate) ip_id: u16,
    /// How often the segment was captured; 0: it is a hole.
    pub(crate) copies: u8,
    pub(crate) sacked: bool,
    /// Whether the copy captured last has another timestamp than the one before.
    pub(crate) has_new_timestamp: bool,
    /// Epoch of the board, plus 1, in which the segment was retransmitted and thought to be in
    /// flight; 0: never.
    pub(super) retrans_epoch: u32,
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
            timestamp: 0,
            has_new_timestamp: false,
            ip_id: 0,
            copies,
            sacked: false,
            retrans_epoch: 0,
            kind: None,
        }
    }
}
