// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats durations, sizes and rates for people, in one way for verdicts, explanations, lists
//! and the live screen.

/// Formats a duration, or a time after the start.
pub fn ms(ns: u64) -> String {
    let us = ns / 1000;
    if us < 10_000 {
        format!("{}.{:03} ms", us / 1000, us % 1000)
    } else if us < 10_000_000 {
        format!("{} ms", us / 1000)
    } else {
        format!("{}.{:03} s", us / 1_000_000, us / 1000 % 1000)
    }
}

/// Formats a size in bytes, with a decimal unit.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    // Rounds to tenths first, so that 999,950 is 1.0 MB and not 1000.0 kB.
    let (mut tenths, mut unit) = (bytes / 100 + u64::from(bytes % 100 >= 50), 0);
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths = tenths / 1000 + u64::from(tenths % 1000 >= 500);
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// Formats a rate in bits per second.
pub fn rate(bps: u64) -> String {
    match bps {
        0..1_000_000 => format!("{} kbit/s", bps / 1000),
        1_000_000..100_000_000 => {
            format!("{}.{} Mbit/s", bps / 1_000_000, bps / 100_000 % 10)
        }
        100_000_000..10_000_000_000 => format!("{} Mbit/s", bps / 1_000_000),
        _ => format!("{} Gbit/s", bps / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        assert_eq!(ms(1_500_000), "1.500 ms");
        assert_eq!(ms(412_340_000), "412 ms");
        assert_eq!(ms(61_234_000_000), "61.234 s");
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (4_000_000, "4.0 MB"),
            (12_345_678, "12.3 MB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(size(bytes), text, "{bytes}");
        }
        assert_eq!(rate(7_890_000), "7.8 Mbit/s");
    }
}
