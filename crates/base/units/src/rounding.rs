// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rounds exact fractions to the numbers of a result.

/// Returns `num / den`, rounded to a thousandth (half up). `den` must not be 0 and must be
/// below 2^115, so that the remainder times 1000 fits.
pub fn thousandths(num: u128, den: u128) -> f64 {
    debug_assert!(den != 0);
    let whole = num / den;
    let rest = num % den;
    let milli = (rest * 1000 + den / 2) / den;
    // The sum keeps 53 bits: more than a thousandth of any figure below 2^43.
    (whole as f64 * 1000.0 + milli as f64) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::thousandths;

    #[test]
    fn halves_round_up() {
        assert_eq!(thousandths(1, 2000), 0.001);
        assert_eq!(thousandths(1, 2001), 0.0);
        assert_eq!(thousandths(7, 2), 3.5);
    }
}
