// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lengths that IEEE 802.3 fixes, and those of the headers above it.
//!
//! A frame's length counts its header and not its FCS, as Linux counts it. Its
//! wire length is the time it takes on the line, in byte times.

/// Destination, source and EtherType.
pub const HEADER_BYTES: u32 = 14;

/// The frame check sequence.
pub const FCS_BYTES: u32 = 4;

/// Preamble and start frame delimiter.
pub const PREAMBLE_BYTES: u32 = 8;

/// The smallest silence between two frames.
pub const INTER_FRAME_GAP_BYTES: u32 = 12;

/// What a frame takes on the wire beyond its own length.
pub const WIRE_OVERHEAD_BYTES: u32 = FCS_BYTES + PREAMBLE_BYTES + INTER_FRAME_GAP_BYTES;

/// The shortest frame without FCS. The MAC pads shorter ones.
pub const FRAME_MIN_BYTES: u32 = 60;

/// An IPv4 header without options.
pub const IPV4_HEADER_BYTES: u32 = 20;

/// A UDP header.
pub const UDP_HEADER_BYTES: u32 = 8;

/// A TCP header without options.
pub const TCP_HEADER_BYTES: u32 = 20;

/// The wire length of a frame: padded, with FCS, preamble and gap.
#[must_use]
pub fn wire_bytes(frame_bytes: u32) -> u32 {
    frame_bytes
        .max(FRAME_MIN_BYTES)
        .saturating_add(WIRE_OVERHEAD_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_length_pads_small_frames() {
        assert_eq!(wire_bytes(1514), 1538);
        assert_eq!(wire_bytes(60), 84);
        assert_eq!(wire_bytes(42), 84);
        assert_eq!(wire_bytes(u32::MAX), u32::MAX);
    }
}
