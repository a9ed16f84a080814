// SPDX-License-Identifier: MIT OR Apache-2.0
//! The payload header of JPEG XS (RFC 9134, 4.3; SMPTE ST 2110-22). Any four bytes can be one, so it is believed
//! where its counters go on from packet to packet.

pub const HEADER_BYTES: usize = 4;
/// Values that both counters of packets have.
const COUNTER: u16 = 1 << 11;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JpegXs {
    /// Whether a packetization unit is a slice (K = 1), and not a codestream.
    pub is_slice: bool,
    /// Whether a packetization unit ends here (L).
    pub is_last: bool,
    /// Whether the frame has fields (I).
    pub is_interlaced: bool,
    /// Whether this is the second field.
    pub second_field: bool,
    /// Number of the frame, modulo 32 (F).
    pub frame: u8,
    /// Number of the slice, or of overruns of the packets' number (SEP).
    pub unit: u16,
    /// Number of the packet within the unit (P).
    pub packet: u16,
}

impl JpegXs {
    /// Returns the four bytes; packets are sent in sequence (T = 1).
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let flag = |is_set: bool, bit: u32| u32::from(is_set) << bit;
        let word = (1 << 31)
            | flag(self.is_slice, 30)
            | flag(self.is_last, 29)
            | flag(self.is_interlaced, 28)
            | flag(self.second_field, 27)
            | (u32::from(self.frame & 31) << 22)
            | (u32::from(self.unit % COUNTER) << 11)
            | u32::from(self.packet % COUNTER);
        word.to_be_bytes()
    }

    /// Returns whether `next` follows within the same picture.
    pub(crate) fn goes_on(self, next: Self) -> bool {
        let is_same = self.frame == next.frame
            && self.second_field == next.second_field
            && self.is_slice == next.is_slice
            && self.is_interlaced == next.is_interlaced;
        let counted = if self.is_slice && self.is_last {
            (next.unit, next.packet) == ((self.unit + 1) % COUNTER, 0)
        } else {
            let packet = (self.packet + 1) % COUNTER;
            let wraps = u16::from(!self.is_slice && packet == 0);
            (next.unit, next.packet) == ((self.unit + wraps) % COUNTER, packet)
        };
        is_same && counted
    }

    /// Returns whether the picture of `next` follows that of `self`, which ends.
    pub(crate) fn is_followed_by(self, next: Self) -> bool {
        let frame = if next.second_field {
            self.frame
        } else {
            (self.frame + 1) % 32
        };
        self.is_last && (next.frame, next.unit, next.packet) == (frame, 0, 0)
    }
}

/// Reads the header; `None`: less was captured, or its interlace bits mean nothing.
pub fn read(payload: &[u8]) -> Option<JpegXs> {
    let word = u32::from_be_bytes(*payload.first_chunk::<HEADER_BYTES>()?);
    let bit = |bit: u32| (word >> bit) & 1 == 1;
    let is_interlaced = bit(28);
    let second_field = bit(27);
    (is_interlaced || !second_field).then_some(JpegXs {
        is_slice: bit(30),
        is_last: bit(29),
        is_interlaced,
        second_field,
        frame: ((word >> 22) & 31) as u8,
        unit: (word >> 11) as u16 % COUNTER,
        packet: word as u16 % COUNTER,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_header() {
        let header = JpegXs {
            is_slice: false,
            is_last: true,
            is_interlaced: true,
            second_field: true,
            frame: 0b10101,
            unit: 0b100_0000_0001,
            packet: 0b110_0000_0011,
        };
        let bytes = header.to_bytes();
        assert_eq!(bytes, [0b1011_1101, 0b0110_0000, 0b0000_1110, 0b0000_0011]);
        assert_eq!(read(&bytes), Some(header));
        assert_eq!(read(&bytes[..3]), None);
        assert_eq!(read(&[0b0000_1000, 0, 0, 0]), None, "a field of no frame");
    }

    #[test]
    fn counters_go_on() {
        let first = read(&[0x80, 0, 0, 0]).unwrap();
        let second = JpegXs { packet: 1, ..first };
        assert!(first.goes_on(second));
        assert!(!first.goes_on(first) && !second.goes_on(first));
        let last = JpegXs {
            packet: COUNTER - 1,
            ..first
        };
        assert!(last.goes_on(JpegXs { unit: 1, ..first }));
        let end = JpegXs {
            is_last: true,
            is_slice: true,
            packet: 9,
            ..first
        };
        assert!(end.goes_on(JpegXs {
            unit: 1,
            is_slice: true,
            ..first
        }));
        assert!(end.is_followed_by(JpegXs { frame: 1, ..first }));
        assert!(
            !second.is_followed_by(JpegXs { frame: 1, ..first }),
            "it does not end"
        );
        assert!(!end.is_followed_by(first), "the same frame");
    }
}
