// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limits that EBU's LIST judges timestamps and delays by, beside those of ST 2110-21.
//!
//! Of video they are those of its `docs/video_timing_analysis.md` and of its analysis of RTP: the
//! timestamp of a picture after N T, at most as much as TR_OFFSET's default; the first packet after
//! the timestamp, at most 1 ms (JT-NM Tested 2020, 4.4); the ticks from a picture to the next. Of
//! audio they are those of its profile JT-NM Tested 2022: a delay of 0 to 20 packet times, in the
//! mean at most 2.5 ms. LIST also expects a multicast address; that is no question of time.

use std::collections::BTreeMap;

use serde::Serialize;
use units::time::PS_PER_S;

use crate::format::Raster;
use crate::range::{Range, range};
use crate::rate::Rate;

/// Ticks of video's timestamps in a second.
const TICKS_PER_S: i128 = 90_000;
/// Timestamps have so many values.
const WRAP: i128 = 1 << 32;
/// A distance beyond this, of either sign, is that of clocks that have nothing to do with each other.
const MOST_NS: f64 = 1e9;
/// Most time from a timestamp to the first packet.
const MOST_LATENCY_NS: f64 = 1e6;
/// Most mean delay of audio, and most packet times of any packet's.
const MOST_MEAN_DELAY_NS: f64 = 2.5e6;
const MOST_DELAY_PACKET_TIMES: f64 = 20.0;

/// What is compared with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Timestamp of a picture after N T, ticks of 90 kHz.
    RtpOffsetTicks,
    /// First packet of a picture after its timestamp, ns.
    RtpLatencyNs,
    /// From the timestamp of a picture to that of the next, ticks.
    RtpStepTicks,
    /// Packet of audio after its timestamp, ns.
    DelayNs,
    MeanDelayNs,
}

impl Quantity {
    /// Returns it in words, and its unit.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::RtpOffsetTicks => ("timestamp after N × T", "ticks"),
            Self::RtpLatencyNs => ("first packet after its timestamp", "µs"),
            Self::RtpStepTicks => ("from a timestamp to the next", "ticks"),
            Self::DelayNs => ("packet after its timestamp", "µs"),
            Self::MeanDelayNs => ("the mean of that", "µs"),
        }
    }
}

/// A range of values, and between what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What is compared.
    pub quantity: Quantity,
    #[serde(flatten)]
    pub range: Range<f64>,
    /// None should be less.
    pub least: f64,
    /// None should be more.
    pub most: f64,
    /// Whether all are in between.
    pub is_met: bool,
}

fn check(quantity: Quantity, range: Range<f64>, least: f64, most: f64) -> Check {
    Check {
        quantity,
        range,
        least,
        most,
        is_met: range.min >= least && range.max <= most,
    }
}

/// Timestamp and arrival of a picture.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    /// Its timestamp, ticks; 32 bits of it are sent.
    pub timestamp: i64,
    /// Its number N since the epoch.
    pub number: i128,
    /// When its first packet came.
    pub first_ps: Option<i128>,
}

/// Returns `value`, known modulo `wrap`, as the one nearest to 0.
fn nearest(value: i128, wrap: i128) -> i128 {
    let value = value.rem_euclid(wrap);
    if value * 2 >= wrap {
        value - wrap
    } else {
        value
    }
}

impl Stamp {
    /// Returns how many ticks the timestamp is after N T.
    fn offset_ticks(&self, rate: Rate) -> f64 {
        let num = i128::from(rate.num());
        let ticks = i128::from(self.timestamp) * num
            - self.number % (WRAP * num) * i128::from(rate.den()) * TICKS_PER_S;
        nearest(ticks, WRAP * num) as f64 / num as f64
    }

    /// Returns the time from the timestamp to the first packet.
    fn latency_ns(&self) -> Option<f64> {
        let ps_per_s = i128::from(PS_PER_S);
        let passed = |ps: i128| ps * TICKS_PER_S - i128::from(self.timestamp) * ps_per_s;
        self.first_ps
            .map(|ps| nearest(passed(ps), WRAP * ps_per_s) as f64 / TICKS_PER_S as f64 / 1e3)
    }
}

/// Judges the timestamps of video. Where the capture's clock is not the sender's only their
/// steps are judged. Time O(pictures).
pub fn video(
    stamps: &[Stamp],
    steps: &BTreeMap<i64, u64>,
    rate: Rate,
    raster: Raster,
) -> Vec<Check> {
    let (num, den) = (i128::from(rate.num()), i128::from(rate.den()));
    let mut checks = Vec::new();
    let latency = range(stamps.iter().filter_map(Stamp::latency_ns));
    if let Some(latency) = latency.filter(|ns| ns.min.abs() < MOST_NS && ns.max.abs() < MOST_NS) {
        let (share, of) = raster.default_offset();
        let frame = den * TICKS_PER_S * i128::from(raster.pictures());
        let (share, of) = (i128::from(share) * frame, i128::from(of) * num);
        let most = (share + of - 1) / of + 1;
        let offset = range(stamps.iter().map(|stamp| stamp.offset_ticks(rate)));
        checks.extend(offset.map(|o| check(Quantity::RtpOffsetTicks, o, -1.0, most as f64)));
        checks.push(check(Quantity::RtpLatencyNs, latency, 0.0, MOST_LATENCY_NS));
    }
    let all = steps
        .iter()
        .flat_map(|(step, count)| (0..*count).map(|_| *step as f64));
    let ticks = den * TICKS_PER_S;
    let (least, most) = (ticks / num, (ticks + num - 1) / num);
    let steps = range(all);
    checks.extend(steps.map(|s| check(Quantity::RtpStepTicks, s, least as f64, most as f64)));
    checks
}

/// Judges the delay of audio.
pub fn audio(delay_ns: Option<Range<f64>>, packet_time_ns: f64) -> Vec<Check> {
    let Some(delay) = delay_ns else {
        return Vec::new();
    };
    let mean = Range {
        min: delay.mean,
        mean: delay.mean,
        max: delay.mean,
    };
    let most = MOST_DELAY_PACKET_TIMES * packet_time_ns;
    vec![
        check(Quantity::DelayNs, delay, 0.0, most),
        check(Quantity::MeanDelayNs, mean, 0.0, MOST_MEAN_DELAY_NS),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Scan;

    const HD: Raster = Raster {
        height: 1080,
        scan: Scan::Progressive,
    };

    /// Judges ten pictures whose timestamps are `ticks` after N T, rounded down, and whose packets
    /// come `late_ps` after N T.
    fn judge(rate: &str, raster: Raster, ticks: i128, late_ps: i128) -> Vec<(Quantity, bool)> {
        let rate: Rate = rate.parse().expect("a rate");
        let (num, den) = (i128::from(rate.num()), i128::from(rate.den()));
        let stamps: Vec<_> = (105_000_000_000..105_000_000_010)
            .map(|number: i128| Stamp {
                timestamp: ((number * den * TICKS_PER_S / num + ticks) % WRAP) as i64,
                number,
                first_ps: Some(number * den * i128::from(PS_PER_S) / num + late_ps),
            })
            .collect();
        let mut steps = BTreeMap::new();
        for pair in stamps.windows(2) {
            let step = i128::from(pair[1].timestamp) - i128::from(pair[0].timestamp);
            *steps.entry(step.rem_euclid(WRAP) as i64).or_insert(0) += 1;
        }
        let checks = video(&stamps, &steps, rate, raster);
        checks.iter().map(|c| (c.quantity, c.is_met)).collect()
    }

    #[test]
    fn video_by_its_limits() {
        use Quantity::{RtpLatencyNs, RtpOffsetTicks, RtpStepTicks};
        let us = 1_000_000;
        let table = [
            // TR_OFFSET's default is 57.3 ticks at 59.94, so 59 are the most.
            ("59.94", 0, 600 * us, [true, true]),
            ("59.94", 59, 660 * us, [true, true]),
            ("59.94", 60, 670 * us, [false, true]),
            ("59.94", -1, 0, [false, true]),
            ("59.94", 0, -12 * us, [true, false]),
            ("59.94", 0, 985 * us, [true, true]),
            ("59.94", 0, 1_012 * us, [true, false]),
            ("25", -1, 0, [true, true]),
            ("25", -2, 0, [false, true]),
            ("25", 0, -1, [true, false]),
            // TR_OFFSET's default is more than a millisecond there.
            ("15", 0, 1_012 * us, [true, false]),
            ("1", 0, 999 * us, [true, true]),
        ];
        for (rate, ticks, late_ps, expected) in table {
            let found = judge(rate, HD, ticks, late_ps);
            let all = [
                (RtpOffsetTicks, expected[0]),
                (RtpLatencyNs, expected[1]),
                (RtpStepTicks, true),
            ];
            assert_eq!(found, all, "{rate}, {ticks} ticks, {late_ps} ps");
        }
    }

    #[test]
    fn other_clocks_leave_the_steps() {
        let found = judge("50", HD, 0, 2 * i128::from(PS_PER_S));
        assert_eq!(found, [(Quantity::RtpStepTicks, true)]);
        let steps = BTreeMap::from([(1800, 9), (1801, 1)]);
        let rate = "50".parse().expect("a rate");
        let found = video(&[], &steps, rate, HD);
        assert_eq!(found.len(), 1);
        assert!(!found[0].is_met, "1801 ticks at 50 pictures a second");
    }

    #[test]
    fn audio_by_its_limits() {
        let of = |min, mean, max| {
            let checks = audio(Some(Range { min, mean, max }), 1e6);
            checks.iter().map(|c| c.is_met).collect::<Vec<_>>()
        };
        assert_eq!(of(0.0, 2.5e6, 20e6), [true, true]);
        assert_eq!(of(-1.0, 2.5e6, 20e6), [false, true]);
        assert_eq!(of(0.0, 2.6e6, 20e6), [true, false]);
        assert_eq!(of(0.0, 1e6, 20.1e6), [false, true]);
        assert!(audio(None, 1e6).is_empty());
    }
}
