// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lengths that IEEE 802.3 fixes, and those of the headers above it.
//!
//! A frame's length includes its header and not its FCS, as in Linux. Its wire length is the
//! time that it takes on the line, in byte times.

/// Length of destination, source and EtherType.
pub const HEADER_BYTES: u32 = 14;

/// Length of the frame check sequence.
pub const FCS_BYTES: u32 = 4;

/// Length of preamble and start frame delimiter.
pub const PREAMBLE_BYTES: u32 = 8;

/// Shortest silence between two frames.
pub const INTER_FRAME_GAP_BYTES: u32 = 12;

/// Bytes that a frame takes on the wire beyond its own length.
pub const WIRE_OVERHEAD_BYTES: u32 = FCS_BYTES + PREAMBLE_BYTES + INTER_FRAME_GAP_BYTES;

/// Length of the shortest frame, without FCS. The MAC pads shorter ones.
pub const FRAME_MIN_BYTES: u32 = 60;

/// Length of an IPv4 header without options.
pub const IPV4_HEADER_BYTES: u32 = 20;

/// Length of a UDP header.
pub const UDP_HEADER_BYTES: u32 = 8;

/// Length of a TCP header without options.
pub const TCP_HEADER_BYTES: u32 = 20;

/// Returns the wire length of a frame: with padding, FCS, preamble and gap.
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
