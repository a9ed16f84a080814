// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses quantities as tc(8) does: in upper or lower case, and without a unit.

use crate::parse;

/// Parses a rate in bit/s; a bare number is in bits, `bps` is bytes per second.
pub fn rate_bps(word: &str) -> Option<u64> {
    let lower = word.to_ascii_lowercase();
    let bytes = |unit: &str, factor: u64| {
        let number: u64 = lower.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(8 * factor)
    };
    let bare = || lower.parse().ok();
    parse::rate_bps(&lower)
        .or_else(bare)
        .or_else(|| bytes("kbps", 1_000))
        .or_else(|| bytes("mbps", 1_000_000))
        .or_else(|| bytes("gbps", 1_000_000_000))
        .or_else(|| bytes("bps", 1))
}

/// Parses a size in bytes; a bare number is in bytes.
pub fn size_bytes(word: &str) -> Option<u64> {
    let lower = word.to_ascii_lowercase();
    let short = |unit: &str, factor: u64| {
        let number: u64 = lower.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(factor)
    };
    parse::size_bytes(&lower)
        .or_else(|| lower.parse().ok())
        .or_else(|| short("k", 1 << 10))
        .or_else(|| short("m", 1 << 20))
        .or_else(|| short("g", 1 << 30))
}

/// Parses a time in nanoseconds; a bare number is in microseconds.
pub fn time_ns(word: &str) -> Option<u64> {
    let bare = word.parse().ok().and_then(|us: u64| us.checked_mul(1000));
    bare.or_else(|| parse::time_ns(word))
}

/// Parses `MAJOR:` or `MAJOR:MINOR`, both hexadecimal.
pub fn class_id(word: &str) -> Option<(u32, u32)> {
    let (major, minor) = word.split_once(':')?;
    let part = |text: &str| match text {
        "" => Some(0),
        text => u16::from_str_radix(text, 16).ok().map(u32::from),
    };
    Some((part(major)?, part(minor)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_as_tc_has_them() {
        for (text, bps) in [
            ("500mbit", Some(500_000_000)),
            ("56800000", Some(56_800_000)),
            ("1Gbit", Some(1_000_000_000)),
            ("125mbps", Some(1_000_000_000)),
            ("10bps", Some(80)),
            ("fast", None),
            ("-1", None),
        ] {
            assert_eq!(rate_bps(text), bps, "{text}");
        }
        assert_eq!(size_bytes("1600b"), Some(1600));
        assert_eq!(size_bytes("1600"), Some(1600));
        assert_eq!(size_bytes("15mb"), Some(15 << 20));
        assert_eq!(size_bytes("64k"), Some(65_536));
        assert_eq!(size_bytes("1mbit"), None);
        assert_eq!(time_ns("3"), Some(3_000));
        assert_eq!(time_ns("3ms"), Some(3_000_000));
        assert_eq!(class_id("1:"), Some((1, 0)));
        assert_eq!(class_id("a:fffe"), Some((10, 65_534)));
        assert_eq!(class_id("1"), None);
        assert_eq!(class_id("1:10000"), None);
    }
}
