// SPDX-License-Identifier: MIT OR Apache-2.0
//! What travels between two TCPs.

/// Bytes `start..end` of the stream that arrived out of order (RFC 2018).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First byte.
    pub start: u64,
    /// The byte after the last one.
    pub end: u64,
}

/// One segment of one direction. Sequence numbers are offsets into the
/// stream, of 64 bits: nothing of what is modelled depends on their wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Offset of the first byte of payload.
    pub seq: u64,
    /// Bytes of payload; none in a pure acknowledgement.
    pub len_bytes: u32,
    /// The next byte expected from the other side.
    pub ack: u64,
    /// Receive window after scaling.
    pub window_bytes: u64,
    /// The first `sack_count` are valid, newest first; three is what fits
    /// beside time stamps (RFC 7323), four without.
    pub sack: [SackBlock; 4],
    /// How many of `sack` are valid.
    pub sack_count: u8,
    /// Time stamp value and echo, in the sender's ticks.
    pub stamps: Option<(u32, u32)>,
    /// The last of the stream.
    pub fin: bool,
}
