// SPDX-License-Identifier: MIT OR Apache-2.0
//! The payload header of ancillary data (RFC 8331, 2.1; SMPTE ST 2110-40). Its length stands where RFC 4175
//! has that of a line, so what tells them apart is all the rest: reserved bits, field bits, the number of
//! ancillary packets, and the lengths and parity bits of each of them as far as they were captured.

pub const HEADER_BYTES: usize = 8;
/// Bytes of an ancillary packet without user data: 72 bits, in words of 32 bits.
const LEAST_BYTES: u32 = 12;
/// Bits of an ancillary packet before its first word of user data, and bits of a word.
const HEAD_BITS: usize = 62;
const WORD_BITS: usize = 10;

/// To which field the data belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// To none: the video is progressive, or the data name no field.
    None,
    First,
    Second,
}

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ancillary {
    /// Ancillary packets in this RTP packet; 0 keeps the stream alive.
    pub count: u8,
    /// To which field they belong.
    pub field: Field,
}

/// Returns the eight bytes of a header of `length` bytes of ancillary packets.
pub fn header(extended: u16, length: u16, of: Ancillary) -> [u8; HEADER_BYTES] {
    let [a, b] = extended.to_be_bytes();
    let [c, d] = length.to_be_bytes();
    let field = match of.field {
        Field::None => 0,
        Field::First => 0x80,
        Field::Second => 0xc0,
    };
    [a, b, c, d, of.count, field, 0, 0]
}

/// Reads a payload of `payload_bytes`, of which `payload` was captured. `None`: it is no ancillary data, or
/// less than the header was captured.
pub fn read(payload: &[u8], payload_bytes: u32) -> Option<Ancillary> {
    let (h, data) = payload.split_first_chunk::<HEADER_BYTES>()?;
    let length = u32::from(u16::from_be_bytes([h[2], h[3]]));
    let count = h[4];
    let field = match (h[5], h[6], h[7]) {
        (0, 0, 0) => Field::None,
        (0x80, 0, 0) => Field::First,
        (0xc0, 0, 0) => Field::Second,
        _ => return None,
    };
    let fits = payload_bytes == length + HEADER_BYTES as u32
        && length % 4 == 0
        && length >= u32::from(count) * LEAST_BYTES
        && (count > 0 || length == 0);
    (fits && packets_agree(data, length as usize, count)).then_some(Ancillary { count, field })
}

/// Returns whether the captured ancillary packets are of the lengths and the parity that they state.
fn packets_agree(data: &[u8], length: usize, count: u8) -> bool {
    let mut at = 0;
    for _ in 0..count {
        let Some(rest) = data.get(at..).filter(|rest| rest.len() * 8 >= HEAD_BITS) else {
            // The others were cut off.
            return data.len() < length && at + LEAST_BYTES as usize <= length;
        };
        // DID, SDID or block number, and the number of words of user data.
        let words = [32, 42, 52].map(|bit| word(rest, bit));
        if !words.iter().all(|word| has_parity(*word)) {
            return false;
        }
        let bits = HEAD_BITS + (usize::from(words[2] & 0xff) + 1) * WORD_BITS;
        at += bits.div_ceil(8).next_multiple_of(4);
    }
    at == length
}

/// Returns the word of ten bits at a bit; bits that are not there are 0.
fn word(bytes: &[u8], bit: usize) -> u16 {
    let byte = |i: usize| u32::from(bytes.get(bit / 8 + i).copied().unwrap_or(0));
    let three = (byte(0) << 16) | (byte(1) << 8) | byte(2);
    (three >> (24 - WORD_BITS - bit % 8)) as u16 & 0x3ff
}

/// Bit 8 makes the lower bits' sum even, bit 9 is its opposite (SMPTE ST 291-1).
fn has_parity(word: u16) -> bool {
    let odd = (word & 0xff).count_ones() % 2 == 1;
    (word & 0x100 != 0) == odd && (word & 0x200 != 0) != odd
}

/// Returns an ancillary packet of a line: its words have their parity and checksum.
pub fn packet(line: u16, did: u8, sdid: u8, data: &[u8]) -> Vec<u8> {
    let with_parity = |byte: u8| {
        let odd = u16::from(byte.count_ones() % 2 == 1);
        u16::from(byte) | (odd << 8) | ((1 - odd) << 9)
    };
    let head = [did, sdid, data.len() as u8];
    let mut words: Vec<u16> = head.iter().chain(data).map(|b| with_parity(*b)).collect();
    let sum = words
        .iter()
        .fold(0u16, |sum, word| (sum + (word & 0x1ff)) & 0x1ff);
    words.push(sum | ((!sum & 0x100) << 1));
    let mut out = vec![0; 4 + (words.len() * WORD_BITS).div_ceil(8)];
    out[..4].copy_from_slice(&(u32::from(line & 0x7ff) << 20).to_be_bytes());
    for (i, word) in words.iter().enumerate() {
        for bit in (0..WORD_BITS).filter(|bit| (word >> (WORD_BITS - 1 - bit)) & 1 == 1) {
            let at = 32 + i * WORD_BITS + bit;
            out[at / 8] |= 0x80 >> (at % 8);
        }
    }
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload() -> Vec<u8> {
        let data = [
            packet(9, 0x61, 2, &[1, 2, 3]),
            packet(10, 0x41, 5, &[7; 11]),
        ]
        .concat();
        let of = Ancillary {
            count: 2,
            field: Field::Second,
        };
        [&header(0, data.len() as u16, of)[..], &data].concat()
    }

    #[test]
    fn a_payload_whole_and_cut() {
        let whole = payload();
        let bytes = whole.len() as u32;
        for kept in HEADER_BYTES..=whole.len() {
            let found = read(&whole[..kept], bytes).unwrap();
            assert_eq!((found.count, found.field), (2, Field::Second), "{kept}");
        }
        assert_eq!(read(&whole[..7], bytes), None);
        // Nothing but a header keeps a stream alive.
        let alive = header(
            0,
            0,
            Ancillary {
                count: 0,
                field: Field::None,
            },
        );
        assert!(read(&alive, 8).is_some());
    }

    /// Each counter-check alone refuses.
    #[test]
    fn each_check_refuses() {
        let whole = payload();
        let bytes = whole.len() as u32;
        let with = |at: usize, value: u8| {
            let mut other = whole.clone();
            other[at] = value;
            read(&other, bytes)
        };
        assert!(with(9, whole[9]).is_some());
        assert_eq!(with(5, 0x40), None, "field bits that mean nothing");
        assert_eq!(with(5, 0xc1), None, "reserved bits");
        assert_eq!(with(7, 1), None, "reserved bits");
        assert_eq!(with(3, whole[3] + 4), None, "another length");
        assert_eq!(with(4, 1), None, "fewer packets than there are bytes");
        assert_eq!(with(4, 3), None, "more packets than there are bytes");
        assert_eq!(with(4, 0), None, "none, and bytes");
        assert_eq!(with(12, whole[12] ^ 0x40), None, "parity of DID");
        assert_eq!(
            with(15, whole[15] ^ 4),
            None,
            "parity of the count of words"
        );
        assert_eq!(read(&whole, bytes + 4), None, "bytes behind");
    }
}
