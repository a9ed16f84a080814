// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantities are exact, or refused.

use node::quantity::whole;
use proptest::prelude::*;

#[test]
fn quantities_of_kubernetes() {
    for (text, expected) in [
        ("0", Some(0)),
        ("+7", Some(7)),
        ("1G", Some(1_000_000_000)),
        ("500M", Some(500_000_000)),
        ("1Gi", Some(1 << 30)),
        ("1.5Ki", Some(1536)),
        ("0.5Ki", Some(512)),
        (".5k", Some(500)),
        ("5.", Some(5)),
        ("1.50", None),
        ("1.500k", Some(1500)),
        ("100m", None),
        ("3000m", Some(3)),
        ("0m", Some(0)),
        ("5000000000n", Some(5)),
        ("1n", None),
        ("2e3", Some(2000)),
        ("2E3", Some(2000)),
        ("1E", Some(1_000_000_000_000_000_000)),
        ("12e-1", None),
        ("120e-1", Some(12)),
        ("16Ei", None),
        ("15Ei", Some(15 << 60)),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", None),
        (
            "000000000000000000000000000000000000000000000000000000000001",
            Some(1),
        ),
        ("1e31", None),
        ("0e99", None),
        ("-1", None),
        ("", None),
        (".", None),
        ("k", None),
        ("1 k", None),
        ("1kb", None),
        ("1K", None),
        ("1.2.3", None),
        ("1e", None),
        ("1e+3", Some(1000)),
        ("0x10", None),
        ("1\u{0663}", None),
    ] {
        assert_eq!(whole(text), expected, "{text}");
    }
    assert_eq!(whole(&"9".repeat(65)), None);
}

proptest! {
    #![proptest_config(testkit::properties())]

    /// However a whole number is written, it is read.
    #[test]
    fn whole_numbers(value in 0u64..1_000_000_000_000, power in 0usize..5) {
        let suffix = ["", "k", "M", "G", "T"][power];
        let scale = 10u128.pow(3 * u32::try_from(power).unwrap());
        let (before, after) = (u128::from(value) / scale, u128::from(value) % scale);
        let width = 3 * power;
        let text = if power == 0 { before.to_string() } else { format!("{before}.{after:0width$}{suffix}") };
        prop_assert_eq!(whole(&text), Some(value), "{}", text);
        prop_assert_eq!(whole(&format!("{value}000m")), Some(value));
    }

    /// What comes is read or refused.
    #[test]
    fn anything(text in "[-+.0-9eEkKMGTPinum]{0,70}") {
        let _ = whole(&text);
    }
}
