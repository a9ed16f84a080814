// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts sequence numbers of 32 bits to offsets that do not wrap.

/// Offset of the first byte that was captured. It is above 0 so that retransmissions of earlier
/// data have offsets as well.
pub(crate) const ORIGIN: u64 = 1 << 40;

/// Distance beyond which a byte cannot belong to the same connection at one time: RFC 7323
/// allows no window above 1 GiB.
pub(crate) const FAR: u64 = 1 << 30;

/// The sequence number of [`ORIGIN`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sequence {
    base: Option<u32>,
}

impl Sequence {
    /// Returns whether the first sequence number is known.
    pub(crate) fn is_known(self) -> bool {
        self.base.is_some()
    }

    /// Sets the sequence number of [`ORIGIN`], unless one is known.
    pub(crate) fn begin_at(&mut self, wire: u32) {
        self.base.get_or_insert(wire);
    }

    /// Returns the offset of `wire` that is nearest to `near`. If no number is known yet,
    /// `wire` becomes the number of [`ORIGIN`]. The result is at least `ORIGIN - 2^31` for a
    /// `near` above that.
    pub(crate) fn offset(&mut self, wire: u32, near: u64) -> u64 {
        let base = *self.base.get_or_insert(wire);
        let near_wire = base.wrapping_add(near.wrapping_sub(ORIGIN) as u32);
        let delta = wire.wrapping_sub(near_wire) as i32;
        near.saturating_add_signed(i64::from(delta))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_where_the_wire_wraps() {
        let mut sequence = Sequence::default();
        assert_eq!(sequence.offset(u32::MAX - 9, ORIGIN), ORIGIN);
        assert_eq!(sequence.offset(10, ORIGIN), ORIGIN + 20);
        assert_eq!(sequence.offset(u32::MAX - 19, ORIGIN), ORIGIN - 10);
        let far = ORIGIN + (1 << 33);
        assert_eq!(sequence.offset(u32::MAX - 8, far), far + 1);
    }
}
