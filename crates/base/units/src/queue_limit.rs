// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a transmit queue must be so that the wire never runs dry (docs/use/real-nics.md).

/// Time that interrupts may be held off where the driver does not say.
pub const HELD_OFF_US: u64 = 60;

/// Returns the bytes that the wire sends while interrupts are held off: so many must be in the
/// driver, because it asks for more only once an interrupt has said that they have left.
pub fn needed_bytes(line_bps: u64, held_off_us: u64) -> u64 {
    // bit/s times µs are 8 million times as many bytes.
    let bytes = u128::from(line_bps) * u128::from(held_off_us) / 8_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_line() {
        assert_eq!(needed_bytes(1_000_000_000, HELD_OFF_US), 7_500);
        assert_eq!(needed_bytes(10_000_000_000, HELD_OFF_US), 75_000);
        assert_eq!(needed_bytes(u64::MAX, u64::MAX), u64::MAX);
    }
}
