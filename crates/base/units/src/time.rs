// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units of time, and how long bytes take on a line.

/// Picoseconds in a nanosecond.
pub const PS_PER_NS: u64 = 1_000;

/// Picoseconds in a second.
pub const PS_PER_S: u64 = 1_000_000_000_000;

/// Nanoseconds in a millisecond.
pub const NS_PER_MS: u64 = 1_000_000;

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;

/// Returns the time that `bytes` take at `rate_bps`, in ps, rounded down; `None` at rate 0 or
/// beyond 213 days.
pub fn duration_ps(bytes: u32, rate_bps: u64) -> Option<u64> {
    let ps = (u128::from(bytes) * 8 * u128::from(PS_PER_S)).checked_div(rate_bps.into())?;
    u64::try_from(ps).ok()
}

#[cfg(test)]
mod tests {
    use super::duration_ps;

    #[test]
    fn durations() {
        assert_eq!(duration_ps(1538, 1_000_000_000), Some(12_304_000));
        assert_eq!(duration_ps(1, 3), Some(2_666_666_666_666));
        assert_eq!(duration_ps(1, 0), None);
    }
}
