// SPDX-License-Identifier: MIT OR Apache-2.0
//! AES3 as SMPTE ST 2110-31 carries it (AM824): a word of 32 bits for each subframe, two bits of which are
//! reserved, one that begins a block, one that begins a frame, then parity, channel status, user data, validity,
//! and a sample of 24 bits.

pub const WORD_BYTES: u32 = 4;
const RESERVED: u8 = 0xc0;
const FRAME_BEGINS: u8 = 0x10;
/// Words that are looked at.
const MOST_WORDS: usize = 16;

/// Returns whether the captured words of a payload are subframes: reserved bits are 0, each second word begins
/// a frame, and the parity is even.
pub fn is_am824(payload: &[u8], payload_bytes: u32) -> bool {
    let words = || payload.chunks_exact(WORD_BYTES as usize).take(MOST_WORDS);
    let is_subframe = |(i, word): (usize, &[u8])| {
        let begins = word[0] & FRAME_BEGINS != 0;
        let bits: u32 = word.iter().map(|byte| byte.count_ones()).sum();
        let without_preamble = bits - (word[0] & 0xf0).count_ones();
        word[0] & RESERVED == 0 && begins == (i % 2 == 0) && without_preamble % 2 == 0
    };
    payload_bytes % (2 * WORD_BYTES) == 0
        && words().len() >= 2
        && words().enumerate().all(is_subframe)
}

/// Returns the word of a sample of 24 bits.
pub fn word(is_first: bool, sample: u32) -> [u8; WORD_BYTES as usize] {
    let parity = (sample & 0x00ff_ffff).count_ones() % 2;
    let head = if is_first { u32::from(FRAME_BEGINS) } else { 0 };
    (((head | (parity << 3)) << 24) | (sample & 0x00ff_ffff)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_refuses() {
        let payload: Vec<u8> = (0..8u32)
            .flat_map(|i| word(i % 2 == 0, 0x0012_3456 + i))
            .collect();
        let is = |payload: &[u8]| is_am824(payload, payload.len() as u32);
        assert!(is(&payload));
        let with = |at: usize, bits: u8| {
            let mut other = payload.clone();
            other[at] ^= bits;
            is(&other)
        };
        assert!(!with(0, 0x80), "reserved bits");
        assert!(!with(4, 0x10), "a frame begins where it does not");
        assert!(!with(3, 1), "parity");
        assert!(with(0, 0x20), "a block may begin anywhere");
        assert!(!is(&payload[..4]) && !is(&[0; 64]), "one word; zeros");
        assert!(!is_am824(&payload, 36), "no whole frames");
    }
}
