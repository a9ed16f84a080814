// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts TCP's sequence numbers, which wrap, to offsets, which do not.

/// Offsets in a stream, counted from the first sequence number that was seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sequence {
    /// A sequence number and its offset.
    known: Option<(u32, u64)>,
}

impl Sequence {
    /// Makes `number` the reference: later numbers must be near it.
    pub(crate) fn advance(&mut self, number: u32) {
        self.known = Some((number, self.offset(number)));
    }

    /// Returns the offset of a number that is less than 2 GiB away from the reference. Numbers
    /// before the first have offset 0.
    pub(crate) fn offset(&self, number: u32) -> u64 {
        let Some((known, offset)) = self.known else {
            return 0;
        };
        let apart = number.wrapping_sub(known) as i32;
        offset.saturating_add_signed(i64::from(apart))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_and_offsets_go_on() {
        let mut sequence = Sequence::default();
        sequence.advance(u32::MAX - 9);
        assert_eq!(sequence.offset(u32::MAX - 9), 0);
        assert_eq!(sequence.offset(20), 30);
        sequence.advance(20);
        assert_eq!(sequence.offset(u32::MAX), 9);
        assert_eq!(sequence.offset(0), 10);
        assert_eq!(sequence.offset(u32::MAX - 100), 0);
    }
}
