// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates in Mbit/s, and which of two a device sends.

use host_config::limits::{LINE_BPS_MAX, RATE_BPS_MIN};

/// What the device sends: it has classes for one of both directions.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Direction {
    /// To circuits
    Download,
    /// From circuits
    Upload,
}

impl Direction {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Upload => "upload",
        }
    }
}

/// Returns a rate that can be paced in bit/s, to the next whole number.
pub fn bps(mbps: f64) -> Option<u64> {
    let bps = (mbps * 1e6).round();
    // Within the range a cast to a whole number is exact.
    let range = RATE_BPS_MIN as f64..=LINE_BPS_MAX as f64;
    range.contains(&bps).then_some(bps as u64)
}

/// Returns a rate as the host's file has it.
pub fn text(bps: u64) -> String {
    let units = [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1000, "kbit")];
    let unit = units.iter().find(|(unit, _)| bps % unit == 0);
    unit.map_or_else(
        || format!("{bps}bit"),
        |(unit, word)| format!("{}{word}", bps / unit),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_exact() {
        for (mbps, expected) in [
            (0.1, Some("100kbit")),
            (2.5, Some("2500kbit")),
            (155.0, Some("155mbit")),
            (1000.0, Some("1gbit")),
            (0.002_5, Some("2500bit")),
            (0.002_499, None),
            (1_000_000.0, Some("1000gbit")),
            (1_000_001.0, None),
            (0.0, None),
            (-1.0, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ] {
            assert_eq!(bps(mbps).map(text).as_deref(), expected, "{mbps}");
        }
    }
}
