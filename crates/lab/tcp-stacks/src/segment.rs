// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scripted sender has under way.

use crate::ground_truth::Why;

/// A range to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// First byte.
    pub begin: u64,
    /// Bytes of payload.
    pub bytes: u64,
    /// Whether the FIN follows.
    pub fin: bool,
    /// Why it is sent.
    pub why: Why,
}

/// A range under way.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// First byte.
    pub begin: u64,
    /// Byte after the payload.
    pub end: u64,
    /// Whether the FIN follows.
    pub fin: bool,
    /// When its last copy left.
    pub sent_ns: u64,
    /// How often it was sent.
    pub copies: u32,
    /// Whether the receiver reported it.
    pub sacked: bool,
    /// Whether it is taken for lost, and not retransmitted since.
    pub lost: bool,
}

impl Segment {
    /// Returns the number after its last one.
    pub fn last(&self) -> u64 {
        self.end + u64::from(self.fin)
    }
}

/// Where a sender stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is known to be lost.
    Open,
    /// Repair by what the receiver reported, up to this byte.
    Fast(u64),
    /// Repair after a timeout, up to this byte.
    Timeout(u64),
}
