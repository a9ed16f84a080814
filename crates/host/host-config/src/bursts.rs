// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a burst of GSO means where nothing cuts it.

use units::{display, terse};

/// What `gso_max_size` is named as a shorter one.
const SHORTER_BYTES: u64 = 8000;
/// A burst that lasts longer at a class's rate is worth a note.
const NOTED_NS: u64 = 1_000_000;

/// Returns how long a burst lasts at a rate.
fn burst_ns(burst_bytes: u64, rate_bps: u64) -> u64 {
    burst_bytes
        .saturating_mul(8_000_000_000)
        .checked_div(rate_bps)
        .unwrap_or(u64::MAX)
}

/// Returns a note about the class of a device, by name and rate, whose bursts last longest, if
/// they last long. `burst_bytes` is the longest that the device takes. O(classes).
pub(crate) fn burst_note<'a>(
    device: &str,
    burst_bytes: u64,
    classes: impl IntoIterator<Item = (&'a str, u64)>,
) -> Option<String> {
    let (name, rate_bps) = classes.into_iter().min_by_key(|(_, rate_bps)| *rate_bps)?;
    let lasts_ns = burst_ns(burst_bytes, rate_bps);
    let shorter = if burst_bytes > SHORTER_BYTES {
        format!(
            "a smaller gso_max_size (`ip link set {device} gso_max_size {SHORTER_BYTES}`) makes \
             bursts smaller, and "
        )
    } else {
        String::new()
    };
    (lasts_ns > NOTED_NS).then(|| {
        format!(
            "a burst of GSO of up to {} leaves at once: at {} of class {name} that is {}; {shorter}\
             `sysctl net.ipv4.tcp_tso_rtt_log=0` makes those of paced TCP smaller over round trips \
             below half a millisecond",
            terse::size(burst_bytes),
            display::rate(rate_bps as f64),
            display::time(lasts_ns as f64 / 1e9),
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;

    #[test]
    fn the_slowest_class_is_named() {
        let classes = [("fast", 900_000_000), ("slow", 9_000_000)];
        let note = burst_note("eth0", 65_536, classes).unwrap();
        assert!(
            note.contains("at 9 Mbit/s of class slow that is 58.254 ms;"),
            "{note}"
        );
        assert!(note.contains("net.ipv4.tcp_tso_rtt_log=0"), "{note}");
        assert!(
            note.contains("`ip link set eth0 gso_max_size 8000`"),
            "{note}"
        );
    }

    #[test]
    fn a_burst_is_as_long_as_the_device_takes_it() {
        let of = |burst_bytes| burst_note("eth0", burst_bytes, [("slow", 9_000_000)]).unwrap();
        let long = of(524_280);
        assert!(long.contains("that is 466.027 ms;"), "{long}");
        let short = of(8000);
        assert!(short.contains("that is 7.111 ms;"), "{short}");
        assert!(!short.contains("gso_max_size"), "{short}");
        assert_eq!(burst_note("eth0", 1000, [("slow", 9_000_000)]), None);
    }

    #[test]
    fn short_bursts_need_no_note() {
        let of = |rate_bps| burst_note("eth0", 65_536, [("fast", rate_bps)]);
        assert_eq!(of(525_000_000), None);
        assert!(of(524_000_000).is_some());
        assert_eq!(burst_note("eth0", 65_536, []), None);
    }
}
