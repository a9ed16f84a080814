// SPDX-License-Identifier: MIT OR Apache-2.0
//! What bytes take on the line, and clocks as a queue orders them.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;

use super::{BYTE_PS, Reference, UNIT_PS, ratio};

impl Reference {
    /// How long the line takes for so many bytes, exactly.
    pub(super) fn takes(&self, bytes: u64) -> BigRational {
        ratio(bytes, 1) * ratio(BYTE_PS, self.cfg.line_rate_bps)
    }

    /// The same, rounded up.
    pub(super) fn takes_ps(&self, bytes: u64) -> BigInt {
        self.takes(bytes).ceil().to_integer()
    }

    /// The same for bytes that leave: the part of a picosecond is carried on.
    pub(super) fn charge_line(&mut self, bytes: u64) -> BigInt {
        let exact = self.takes(bytes) + &self.carried;
        self.carried = exact.fract();
        exact.floor().to_integer()
    }

    /// What both clocks, rounded, may be farther apart than they are.
    pub(super) fn rounding_ps(&self) -> u64 {
        if BYTE_PS % self.cfg.line_rate_bps == 0 {
            0
        } else {
            2
        }
    }

    /// How early a frame may leave because no gap is shorter.
    pub(super) fn half_gap_ps(&self) -> BigInt {
        let half = self.wire(self.cfg.min_frame_bytes).max(1) / 2;
        self.takes(half).floor().to_integer() + self.rounding_ps()
    }

    /// The earliest clock that is one to a queue with this.
    pub(super) fn ordered(&self, clock: &BigInt) -> BigInt {
        self.key(clock, 0).0 * UNIT_PS + &self.shifted
    }

    /// Clocks that are one to a queue are reached together.
    pub(super) fn is_reached(&self, clock: &BigInt) -> bool {
        self.ordered(clock) <= self.global
    }

    /// What a queue orders by: the unit of a clock, and then the id.
    pub(super) fn key(&self, clock: &BigInt, id: u32) -> (BigInt, u32) {
        (
            (clock - &self.shifted).div_floor(&BigInt::from(UNIT_PS)),
            id,
        )
    }
}
