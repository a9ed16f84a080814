// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments that the two ends of a TCP connection exchange.

/// A SACK block: bytes `start..end` of the stream arrived out of order (RFC 2018).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First byte.
    pub start: u64,
    /// The byte after the last one.
    pub end: u64,
}

/// One segment of one direction. Sequence numbers are 64-bit offsets into the
/// stream: nothing that is modelled depends on their wrap-around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Offset of the first byte of payload.
    pub seq: u64,
    /// Bytes of payload; 0 in a pure acknowledgement and in a sender's probe of a
    /// closed window.
    pub len_bytes: u32,
    /// The next byte expected from the other side; its end of stream counts as one
    /// byte.
    pub ack: u64,
    /// Receive window after scaling, bytes.
    pub window_bytes: u64,
    /// SACK blocks, newest first; the first `sack_count` are valid. Three fit
    /// beside timestamps (RFC 7323), four without.
    pub sack: [SackBlock; 4],
    /// How many of `sack` are valid.
    pub sack_count: u8,
    /// Timestamp value and echo, in ticks. The value is in the clock of the
    /// segment's sender, the echo in the clock of its receiver.
    pub timestamps: Option<(u32, u32)>,
    /// Whether the stream ends after the payload.
    pub fin: bool,
}

impl Segment {
    /// Returns the valid SACK blocks, newest first.
    pub fn sack_blocks(&self) -> &[SackBlock] {
        let count = usize::from(self.sack_count).min(self.sack.len());
        self.sack.get(..count).unwrap_or_default()
    }

    /// Returns the sequence number after the segment; the end of the stream counts
    /// as one.
    pub fn end(&self) -> u64 {
        self.seq
            .saturating_add(u64::from(self.len_bytes))
            .saturating_add(u64::from(self.fin))
    }
}
