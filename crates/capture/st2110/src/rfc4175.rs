// SPDX-License-Identifier: MIT OR Apache-2.0
//! The payload header of uncompressed video (RFC 4175, 4.3; SMPTE ST 2110-20, 6.1): the upper half
//! of the sequence number, then a header for each piece of a line.

/// Bytes of the extended sequence number.
pub const EXTENDED_BYTES: usize = 2;
/// Bytes of the header of a piece of a line.
pub const LINE_BYTES: usize = 6;
/// Most pieces of lines in a packet (SMPTE ST 2110-20, 6.2.1).
const MOST_LINES: usize = 3;

/// The header of a piece of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Bytes of samples.
    pub length: u16,
    /// Whether the line belongs to the second field.
    pub second_field: bool,
    /// Number of the line within its frame or field, from 0.
    pub row: u16,
    /// First pixel of the piece.
    pub offset: u16,
}

impl Line {
    /// Returns the six bytes; `more`: another piece's header follows.
    pub fn to_bytes(self, more: bool) -> [u8; LINE_BYTES] {
        let [a, b] = self.length.to_be_bytes();
        let [c, d] = ((u16::from(self.second_field) << 15) | self.row & 0x7fff).to_be_bytes();
        let [e, f] = ((u16::from(more) << 15) | self.offset & 0x7fff).to_be_bytes();
        [a, b, c, d, e, f]
    }
}

/// What the headers of a packet say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// Upper 16 bits of the sequence number.
    pub extended: u16,
    /// The first piece.
    pub first: Line,
    /// The last piece whose header was captured.
    pub last: Line,
}

/// Reads the headers of a payload of `payload_bytes`, of which `payload` was captured. `None`: they
/// are cut before the first piece's header ends, or contradict the length of the payload.
pub fn read(payload: &[u8], payload_bytes: u32) -> Option<Lines> {
    let mut rest = payload.get(EXTENDED_BYTES..)?;
    let extended = u16::from_be_bytes([payload[0], payload[1]]);
    let mut used = EXTENDED_BYTES as u64;
    let mut found: Option<Lines> = None;
    for _ in 0..MOST_LINES {
        let Some((h, after)) = rest.split_first_chunk::<LINE_BYTES>() else {
            // What was captured does not contradict it.
            return found.filter(|_| used <= u64::from(payload_bytes));
        };
        let word = |i: usize| u16::from_be_bytes([h[i], h[i + 1]]);
        let line = Line {
            length: word(0),
            second_field: word(2) & 0x8000 != 0,
            row: word(2) & 0x7fff,
            offset: word(4) & 0x7fff,
        };
        used += LINE_BYTES as u64 + u64::from(line.length);
        let first = found.map_or(line, |lines| lines.first);
        found = Some(Lines {
            extended,
            first,
            last: line,
        });
        if word(4) & 0x8000 == 0 {
            return found.filter(|_| used == u64::from(payload_bytes));
        }
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Line = Line {
        length: 1200,
        second_field: true,
        row: 539,
        offset: 480,
    };

    #[test]
    fn every_byte_of_the_headers() {
        assert_eq!(LINE.to_bytes(false), [0x04, 0xb0, 0x82, 0x1b, 0x01, 0xe0]);
        assert_eq!(LINE.to_bytes(true), [0x04, 0xb0, 0x82, 0x1b, 0x81, 0xe0]);
    }

    #[test]
    fn a_payload_of_two_lines() {
        let second = Line {
            row: 540,
            offset: 0,
            length: 100,
            ..LINE
        };
        let mut payload = vec![0x00, 0x07];
        payload.extend(LINE.to_bytes(true));
        payload.extend(second.to_bytes(false));
        let length = 14 + 1300;
        let lines = read(&payload, length).unwrap();
        assert_eq!(
            lines,
            Lines {
                extended: 7,
                first: LINE,
                last: second
            }
        );
        // Cut after the first header: what is known of it.
        let cut = read(&payload[..9], length).unwrap();
        assert_eq!((cut.first, cut.last), (LINE, LINE));
        assert_eq!(read(&payload[..7], length), None);
        assert_eq!(read(&payload, length + 1), None);
        assert_eq!(read(&payload, 100), None);
        // A fourth piece is too many.
        let many = [&[0, 0][..], &LINE.to_bytes(true).repeat(4)].concat();
        assert_eq!(read(&many, 60_000), None);
    }
}
