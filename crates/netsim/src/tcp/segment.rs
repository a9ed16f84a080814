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
    /// Bytes of payload; none in a pure acknowledgement, nor in a sender's
    /// probe of a closed window.
    pub len_bytes: u32,
    /// The next byte expected from the other side; its end of stream counts
    /// as one.
    pub ack: u64,
    /// Receive window after scaling.
    pub window_bytes: u64,
    /// The first `sack_count` are valid, newest first; three is what fits
    /// beside timestamps (RFC 7323), four without.
    pub sack: [SackBlock; 4],
    /// How many of `sack` are valid.
    pub sack_count: u8,
    /// Timestamp value and echo, in ticks: the value in the clock of who
    /// sends the segment, the echo in that of who gets it.
    pub timestamps: Option<(u32, u32)>,
    /// The stream ends after the payload.
    pub fin: bool,
}

impl Segment {
    /// The valid SACK blocks, newest first.
    #[must_use]
    pub fn sack_blocks(&self) -> &[SackBlock] {
        let count = usize::from(self.sack_count).min(self.sack.len());
        self.sack.get(..count).unwrap_or_default()
    }

    /// The sequence number after it, the end of the stream counting as one.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.seq
            .saturating_add(u64::from(self.len_bytes))
            .saturating_add(u64::from(self.fin))
    }
}
