// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts sequence numbers of 32 bits to offsets that do not wrap.

use std::num::NonZeroU64;

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

/// The bytes of a flow, by their offsets: which of them were sent, and which acknowledged (RFC 9293,
/// 3.4). Offsets are above 0: an `Option` of one takes no more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SequenceSpace {
    pub(super) sequence: Sequence,
    /// Whether the SYN was captured before anything else.
    pub(super) has_begin: bool,
    /// First byte that is not acknowledged.
    pub(super) una: u64,
    /// Byte after the highest one seen.
    pub(super) nxt: u64,
    /// First byte that was captured, if bytes were under way below it by then.
    pub(super) early_end: Option<NonZeroU64>,
    /// From this byte on, data was sent only as probes of a closed window.
    pub(super) probe_from: Option<NonZeroU64>,
    /// End of the stream, the FIN included.
    pub(super) fin: Option<NonZeroU64>,
}

impl Default for SequenceSpace {
    fn default() -> Self {
        Self {
            sequence: Sequence::default(),
            has_begin: false,
            una: ORIGIN,
            nxt: ORIGIN,
            early_end: None,
            probe_from: None,
            fin: None,
        }
    }
}

impl SequenceSpace {
    /// Returns the byte after the last one that was sent into an open window.
    pub(super) fn sent_end(&self) -> u64 {
        let probe_from = self.probe_from.map_or(u64::MAX, NonZeroU64::get);
        self.nxt.min(probe_from).max(self.una)
    }

    /// Returns whether the FIN is the last byte seen.
    pub(super) fn ends_here(&self) -> bool {
        self.fin.is_some_and(|fin| fin.get() == self.nxt)
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
