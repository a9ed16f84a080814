// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses quantities with a unit, as `tc` writes them: rates are decimal bits per second,
//! sizes are in units of 1024, times go down to the nanosecond.

const RATES: &[(&str, u64)] = &[
    ("tbit", 1_000_000_000_000),
    ("gbit", 1_000_000_000),
    ("mbit", 1_000_000),
    ("kbit", 1_000),
    ("bit", 1),
];
const TIMES: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];
const SIZES: &[(&str, u64)] = &[("gb", 1 << 30), ("mb", 1 << 20), ("kb", 1 << 10), ("b", 1)];

/// What [`rate_bps`] accepts, for error messages.
pub const RATE: &str = "a rate such as \"500mbit\" (bit, kbit, mbit, gbit, tbit)";
/// What [`time_ns`] accepts, for error messages.
pub const TIME: &str = "a time such as \"10ms\" (ns, us, ms, s)";
/// What [`size_bytes`] accepts, for error messages.
pub const SIZE: &str = "a size such as \"64kb\" (b, kb, mb, gb; 1 kb is 1024 bytes)";

/// Parses a rate in bit/s; `None` unless it is a rate and a whole number of bit/s.
pub fn rate_bps(text: &str) -> Option<u64> {
    quantity(text, RATES)
}

/// Parses a time in nanoseconds; `None` unless it is a time and a whole number of nanoseconds.
pub fn time_ns(text: &str) -> Option<u64> {
    quantity(text, TIMES)
}

/// Parses a size in bytes; `None` unless it is a size and a whole number of bytes.
pub fn size_bytes(text: &str) -> Option<u64> {
    quantity(text, SIZES)
}

/// Parses `DIGITS[.DIGITS]UNIT` exactly. A value that is not a whole number of the smallest
/// unit, or does not fit, is no quantity. In a table no unit is an ending of a later one, so
/// the first match is the longest.
fn quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |s: &str| !s.is_empty() && s.len() <= 20 && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let scale = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let fraction: u128 = if fraction.is_empty() {
        0
    } else {
        fraction.parse().ok()?
    };
    let part = fraction * u128::from(factor);
    if part % scale != 0 {
        return None;
    }
    let whole = whole.parse::<u128>().ok()?.checked_mul(factor.into())?;
    u64::try_from(whole.checked_add(part / scale)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        assert_eq!(rate_bps("500mbit"), Some(500_000_000));
        assert_eq!(rate_bps("8kbit"), Some(8_000));
        assert_eq!(rate_bps("2.5gbit"), Some(2_500_000_000));
        assert_eq!(rate_bps("10bit"), Some(10));
        assert_eq!(rate_bps("0.5bit"), None);
        assert_eq!(time_ns("60us"), Some(60_000));
        assert_eq!(time_ns("2s"), Some(2_000_000_000));
        assert_eq!(time_ns("0s"), Some(0));
        assert_eq!(time_ns("1.5ns"), None);
        assert_eq!(size_bytes("64kb"), Some(65_536));
        assert_eq!(size_bytes("1500b"), Some(1500));
        assert_eq!(size_bytes("0.5kb"), Some(512));
    }

    #[test]
    fn other_texts_are_not_quantities() {
        for text in [
            "", "s", "1", "-1s", "+1s", "1 s", " 1s", "1e3s", ".5s", "1.s", "1..2s", "1S", "1ss",
        ] {
            assert_eq!(time_ns(text), None, "{text:?}");
        }
        assert_eq!(time_ns("18446744073s"), Some(18_446_744_073_000_000_000));
        assert_eq!(time_ns("18446744074s"), None);
        assert_eq!(time_ns("99999999999999999999s"), None);
        assert_eq!(rate_bps("1.00000000000000000000000000000001gbit"), None);
        assert_eq!(rate_bps("1mb"), None);
        assert_eq!(size_bytes("1mbit"), None);
    }
}
