// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header of an RTP packet (RFC 3550, 5.1).

/// Bytes of a header without contributing sources and extension.
pub const HEADER_BYTES: usize = 12;
/// The version in each header.
const VERSION: u8 = 2;
/// Second bytes that RTCP has; RTP that shares its port must not have them (RFC 5761, 4).
const RTCP: std::ops::RangeInclusive<u8> = 192..=223;

/// The fields of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Of video: the last packet of a frame or field.
    pub marker: bool,
    /// What the payload is, 0 to 127; by agreement.
    pub payload_type: u8,
    /// Number of the packet; wraps.
    pub sequence: u16,
    /// Time of the first sample, in ticks of the stream's clock; wraps.
    pub timestamp: u32,
    /// The source within its session.
    pub ssrc: u32,
}

/// A packet's header and where its payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    pub header: Header,
    /// Captured bytes of the payload; fewer than it has if the capture cut them.
    pub payload: &'a [u8],
    /// Length of the payload, without padding as far as that was captured.
    pub payload_bytes: u32,
}

impl Header {
    /// Returns the twelve bytes of the header.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[0] = VERSION << 6;
        out[1] = (u8::from(self.marker) << 7) | self.payload_type & 0x7f;
        out[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        out[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        out[8..12].copy_from_slice(&self.ssrc.to_be_bytes());
        out
    }
}

/// Reads a UDP payload of `bytes_on_wire`, of which `bytes` were captured. `None`: it is no RTP, or
/// was cut within its header.
pub fn read(bytes: &[u8], bytes_on_wire: u32) -> Option<Packet<'_>> {
    let h = bytes.first_chunk::<HEADER_BYTES>()?;
    if h[0] >> 6 != VERSION || RTCP.contains(&h[1]) {
        return None;
    }
    let header = Header {
        marker: h[1] & 0x80 != 0,
        payload_type: h[1] & 0x7f,
        sequence: u16::from_be_bytes([h[2], h[3]]),
        timestamp: u32::from_be_bytes([h[4], h[5], h[6], h[7]]),
        ssrc: u32::from_be_bytes([h[8], h[9], h[10], h[11]]),
    };
    let mut at = HEADER_BYTES + usize::from(h[0] & 0x0f) * 4;
    if h[0] & 0x10 != 0 {
        let extension = bytes.get(at..)?.first_chunk::<4>()?;
        let words = u16::from_be_bytes([extension[2], extension[3]]);
        at += 4 + usize::from(words) * 4;
    }
    let wire_bytes = usize::try_from(bytes_on_wire).ok()?;
    let mut payload_bytes = wire_bytes.checked_sub(at)?;
    let mut payload = bytes.get(at.min(bytes.len())..)?;
    // The last byte of a padded packet counts the padding, itself included.
    if h[0] & 0x20 != 0 && bytes.len() == wire_bytes {
        let padding = usize::from(*payload.last()?);
        payload_bytes = payload_bytes.checked_sub(padding)?;
        payload = &payload[..payload_bytes];
    }
    Some(Packet {
        header,
        payload,
        payload_bytes: u32::try_from(payload_bytes).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: Header = Header {
        marker: true,
        payload_type: 96,
        sequence: 0x1234,
        timestamp: 0x5678_9abc,
        ssrc: 0xdead_beef,
    };

    #[test]
    fn every_byte_of_a_header() {
        let bytes = HEADER.to_bytes();
        let expected = [
            0x80, 0xe0, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xad, 0xbe, 0xef,
        ];
        assert_eq!(bytes, expected);
        let packet = read(&bytes, 12).unwrap();
        assert_eq!((packet.header, packet.payload_bytes), (HEADER, 0));
        for cut in 0..12 {
            assert_eq!(read(&bytes[..cut], 12), None, "{cut}");
        }
    }

    #[test]
    fn sources_extension_and_padding_are_no_payload() {
        let mut bytes = HEADER.to_bytes().to_vec();
        bytes[0] |= 0x32; // padding, extension, two sources
        bytes.extend([0; 8]);
        bytes.extend([0xbe, 0xde, 0, 1, 9, 9, 9, 9]);
        bytes.extend([1, 2, 3]);
        bytes.extend([0, 0, 3]);
        let packet = read(&bytes, 34).unwrap();
        assert_eq!((packet.payload, packet.payload_bytes), (&[1, 2, 3][..], 3));
        // A cut capture does not hold the length of the padding.
        let cut = read(&bytes[..30], 34).unwrap();
        assert_eq!((cut.payload, cut.payload_bytes), (&[1, 2][..], 6));
        // More padding than payload.
        *bytes.last_mut().unwrap() = 7;
        assert_eq!(read(&bytes, 34), None);
    }

    #[test]
    fn others_on_the_port_are_no_rtp() {
        let mut bytes = HEADER.to_bytes();
        bytes[1] = 200; // a sender report
        assert_eq!(read(&bytes, 12), None);
        bytes = HEADER.to_bytes();
        bytes[0] = 0x40;
        assert_eq!(read(&bytes, 12), None);
        assert_eq!(read(&HEADER.to_bytes(), 11), None);
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        #[test]
        fn any_bytes_are_read_without_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
            wire_bytes in 0u32..100,
        ) {
            if let Some(packet) = read(&bytes, wire_bytes) {
                prop_assert!(packet.payload.len() <= bytes.len());
                prop_assert!(packet.payload_bytes <= wire_bytes);
            }
        }
    }
}
