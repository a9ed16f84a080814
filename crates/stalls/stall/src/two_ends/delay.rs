// SPDX-License-Identifier: MIT OR Apache-2.0
//! One-way delays: their distribution, and how they go over time.

use serde::Serialize;

/// Intervals that the time is divided into.
const INTERVALS: usize = 200;

/// The delays of one direction's packets, s.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Delays {
    pub min_s: Option<f64>,
    /// Half of the packets took at most so long.
    pub median_s: Option<f64>,
    /// 99 of 100 packets took at most so long.
    pub p99_s: Option<f64>,
    pub max_s: Option<f64>,
    /// How they go over time, where there are packets.
    pub over_time: Vec<Interval>,
}

/// The delays of the packets that were sent in an interval, s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// When it begins, since the near capture's first common packet.
    pub start_s: f64,
    pub packets: u64,
    pub min_s: f64,
    /// Half of the packets took at most so long.
    pub median_s: f64,
    pub max_s: f64,
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

fn at(sorted: &[i64], percent: usize) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get(last * percent / 100).copied().map(seconds)
}

impl Delays {
    /// Sums up packets: when each was sent, and how long it took, ns.
    pub(super) fn of(packets: impl Iterator<Item = (i64, i64)>) -> Self {
        let mut packets: Vec<_> = packets.collect();
        packets.sort_unstable();
        let mut sorted: Vec<_> = packets.iter().map(|(_, delay)| *delay).collect();
        sorted.sort_unstable();
        let mut over_time = Vec::new();
        if let (Some((first, _)), Some((last, _))) = (packets.first(), packets.last()) {
            let step = (last - first) / INTERVALS as i64 + 1;
            let intervals = packets.chunk_by(|a, b| (a.0 - first) / step == (b.0 - first) / step);
            over_time.extend(intervals.filter_map(|of| {
                let mut delays: Vec<_> = of.iter().map(|(_, delay)| *delay).collect();
                delays.sort_unstable();
                let begin = first + (of.first()?.0 - first) / step * step;
                Some(Interval {
                    start_s: seconds(begin),
                    packets: of.len() as u64,
                    min_s: at(&delays, 0)?,
                    median_s: at(&delays, 50)?,
                    max_s: at(&delays, 100)?,
                })
            }));
        }
        Self {
            min_s: at(&sorted, 0),
            median_s: at(&sorted, 50),
            p99_s: at(&sorted, 99),
            max_s: at(&sorted, 100),
            over_time,
        }
    }
}
