// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a frame costs a class of htb in kernels before 3.8: a time from a table of 256 sizes that tc
//! computes, in whole ticks of the packet scheduler's clock. Both conversions cut fractions off, so a class
//! exceeds its rate, most of all a fast one (docs/results/pspacerplus-bandwidth.md).

use units::clock::Span;

/// Sizes in the table.
const SIZES: u32 = 256;
/// tc of those kernels computes a time in whole microseconds first.
const UNIT: Span = Span::from_ns(1000);

/// The table of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateTable {
    /// Length of the longest frame that the table has; a longer one is put together of its entries.
    pub mtu_bytes: u32,
    /// A tick of the packet scheduler's clock: 1,024 ns from Linux 2.6.22 to 2.6.30, then 64 ns.
    pub tick: Span,
}

impl RateTable {
    /// Returns how long a frame takes at a rate; 0 counts as 1 bit/s. O(1).
    pub(super) fn span(&self, bytes: u32, rate_bps: u64) -> Span {
        let mut log = 0;
        while self.mtu_bytes >> log >= SIZES {
            log += 1;
        }
        let entry = |place: u32| {
            let bits = ((u64::from(place) + 1) << log) * 8;
            let units = u128::from(bits) * 1_000_000_000_000 / u128::from(rate_bps.max(1));
            let units = units / u128::from(UNIT.as_ps());
            units * u128::from(UNIT.as_ps()) / u128::from(self.tick.as_ps().max(1))
        };
        let place = bytes.saturating_sub(1) >> log;
        let wholes = u128::from(place / SIZES) * entry(SIZES - 1);
        let ticks = if place < SIZES {
            entry(place)
        } else {
            wholes + entry(place % SIZES)
        };
        let ps = ticks.saturating_mul(self.tick.as_ps().into());
        Span::from_ps(ps.try_into().unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: RateTable = RateTable {
        mtu_bytes: 1600,
        tick: Span::from_ns(1024),
    };

    /// By hand. Cells of 8 bytes: 1,514 is below cell 189, 1,520 bytes. 9,014 is four times the last
    /// cell, 2,048 bytes, and cell 102, 824 bytes.
    #[test]
    fn times_are_whole_ticks_of_whole_microseconds() {
        for (bytes, rate_bps, ticks) in [
            // 12,160 us are 11,875 ticks.
            (1514, 1_000_000, 11_875),
            // 12.16 us: 12 us: 11.7 ticks.
            (1514, 1_000_000_000, 11),
            // 16.384 and 6.592 us: four times 15 ticks, and 5.
            (9014, 1_000_000_000, 65),
            // 4.096 and 1.648 us: four times 3 ticks, and none.
            (9014, 4_000_000_000, 12),
            // 1.6384 us is less than a tick: nothing holds the class back.
            (9014, 10_000_000_000, 0),
            (1, 1_000_000_000, 0),
        ] {
            let expected = Span::from_ns(1024 * ticks);
            assert_eq!(TABLE.span(bytes, rate_bps), expected, "{bytes} {rate_bps}");
        }
    }

    /// With `mtu 9000` a cell has 64 bytes, and a frame is in one.
    #[test]
    fn a_table_for_the_mtu_has_every_frame_in_a_cell() {
        let table = RateTable {
            mtu_bytes: 9000,
            ..TABLE
        };
        // 9,024 bytes are 18.048 us: 18 us: 17.6 ticks.
        assert_eq!(table.span(9014, 4_000_000_000), Span::from_ns(1024 * 17));
    }
}
