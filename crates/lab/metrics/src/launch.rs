// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures how far from their launch times datagrams leave. The laboratory's sender writes the
//! launch time into each datagram (`lab/send`), and the cable keeps the first bytes of each frame.

use capture::record::Record;
use scenario::result::FlowMetrics;
use units::rounding::thousandths;

use crate::gaps::Distribution;

/// Fills in the distances from launch times of frames that start within the span.
pub(crate) fn measure<'a>(
    metrics: &mut FlowMetrics,
    frames: impl Iterator<Item = (&'a Record, u64)>,
    span_ps: (u64, u64),
) {
    let mut distances = Distribution::default();
    let mut early_ps = 0;
    for (record, launch_ps) in frames {
        if launch_ps > 0 && (span_ps.0..span_ps.1).contains(&record.start_ps) {
            distances.push(record.start_ps.abs_diff(launch_ps));
            early_ps = early_ps.max(launch_ps.saturating_sub(record.start_ps));
        }
    }
    let ns = |ps: u64| thousandths(ps.into(), 1_000);
    metrics.launch_p50_ns = distances.percentile_ps(50).map(ns);
    metrics.launch_p99_ns = distances.percentile_ps(99).map(ns);
    metrics.launch_max_ns = distances.percentile_ps(100).map(ns);
    metrics.launch_early_ns = metrics.launch_max_ns.map(|_| ns(early_ps));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_and_late_are_equally_far() {
        let frame = |start_ps| Record {
            start_ps,
            ..Record::default()
        };
        let frames = [
            (frame(5_000), 6_000),
            (frame(8_000), 6_500),
            (frame(9_000), 9_000),
            (frame(9_500), 0),
            (frame(20_000), 1),
        ];
        let mut metrics = FlowMetrics::default();
        let all = frames.iter().map(|(record, launch)| (record, *launch));
        measure(&mut metrics, all, (0, 20_000));
        assert_eq!(metrics.launch_p50_ns, Some(1.0));
        assert_eq!(metrics.launch_max_ns, Some(1.5));
        assert_eq!(metrics.launch_early_ns, Some(1.0));
        measure(&mut metrics, [].into_iter(), (0, 1));
        assert_eq!(
            (metrics.launch_max_ns, metrics.launch_early_ns),
            (None, None)
        );
    }
}
