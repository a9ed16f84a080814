// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a burst of GSO means where nothing cuts it.

use units::display;

/// A burst of GSO, as long as the kernel makes it unless a device says otherwise.
const BURST_BYTES: u64 = 65_536;
/// A burst that lasts longer at a class's rate is worth a note.
const NOTED_NS: u64 = 1_000_000;

/// Returns how long a burst lasts at a rate.
fn burst_ns(rate_bps: u64) -> u64 {
    BURST_BYTES
        .saturating_mul(8_000_000_000)
        .checked_div(rate_bps)
        .unwrap_or(u64::MAX)
}

/// Returns a note about the class of a device, by name and rate, whose bursts last longest, if
/// they last long. O(classes).
pub(crate) fn burst_note<'a>(
    device: &str,
    classes: impl IntoIterator<Item = (&'a str, u64)>,
) -> Option<String> {
    let (name, rate_bps) = classes.into_iter().min_by_key(|(_, rate_bps)| *rate_bps)?;
    let lasts_ns = burst_ns(rate_bps);
    (lasts_ns > NOTED_NS).then(|| {
        format!(
            "a burst of GSO of up to 64 KB leaves at once: at {} of class {name} that is {}; \
             a smaller gso_max_size (`ip link set {device} gso_max_size 8000`) makes bursts \
             smaller, and `sysctl net.ipv4.tcp_tso_rtt_log=0` those of paced TCP over round trips \
             below half a millisecond",
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
        let note = burst_note("eth0", [("fast", 900_000_000), ("slow", 9_000_000)]).unwrap();
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
    fn short_bursts_need_no_note() {
        assert_eq!(burst_note("eth0", [("fast", 525_000_000)]), None);
        assert!(burst_note("eth0", [("fast", 524_000_000)]).is_some());
        assert_eq!(burst_note("eth0", []), None);
    }
}
