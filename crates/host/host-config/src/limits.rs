// SPDX-License-Identifier: MIT OR Apache-2.0
//! Least and largest values that can be paced, for all that reads some: the core's, in
//! `core/include/pace/pace.h`. What depends on line and frames, `backend::check` asks the core.

use std::ops::RangeInclusive;

/// Slowest line, and least total of a dynamic class or ceil of a group.
pub const LINE_BPS_MIN: u64 = 8_000;
/// Fastest line. No class is faster.
pub const LINE_BPS_MAX: u64 = 1_000_000_000_000;
/// The line of a device whose speed nobody knows: no class is faster.
pub const LINE_UNKNOWN_BPS: u64 = 100_000_000_000;
/// Length of a period.
pub const PERIODS_NS: RangeInclusive<u64> = 125_000..=1_000_000_000;
/// What is expected of [`PERIODS_NS`].
pub const PERIOD_EXPECTED: &str = "a time from \"125us\" to \"1s\"";
/// A rate that every backend takes on any line, however its bytes are counted: the longest burst,
/// 73,728 bytes and 24 for each of 49 frames, takes less than 240 s.
pub const RATE_BPS_MIN: u64 = 2_500;
/// Rates that every backend takes on a device whose speed nobody knows.
pub const RATES_BPS: RangeInclusive<u64> = RATE_BPS_MIN..=LINE_UNKNOWN_BPS;
/// The lowest rate of departure times: their clock holds a burst of 256 KiB at it.
pub const EDT_RATE_BPS_MIN: u64 = 1000;
/// The longest wait for a departure time: fq drops packets of 10 s and more.
pub const EDT_WAIT_NS_MAX: u64 = 9_000_000_000;
/// Most bytes of a period: one second of the fastest line.
pub const PERIOD_BYTES_MAX: u64 = LINE_BPS_MAX / 8;

/// Says what was expected of a rate; `None`: it is within the range. All that reads rates says it
/// with these words.
pub fn rate_expected(rate_bps: u64, range: &RangeInclusive<u64>) -> Option<String> {
    let (least_bps, most_bps) = (range.start(), range.end());
    if rate_bps < *least_bps {
        let why = "the rate is so low that one frame would take 240 s";
        return Some(format!("at least {least_bps} bit/s: {why}"));
    }
    (rate_bps > *most_bps).then(|| format!("at most {most_bps} bit/s"))
}

/// Says what was expected of a line; `None`: it can be paced.
pub fn line_expected(line_bps: u64) -> Option<&'static str> {
    match line_bps {
        ..LINE_BPS_MIN => Some("at least 8kbit, the slowest line"),
        LINE_BPS_MIN..=LINE_BPS_MAX => None,
        _ => Some("at most 1tbit, the fastest line"),
    }
}
