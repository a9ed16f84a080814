// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes metrics and curves from the samples of a TCP sender.

use sender_log::sample::TcpSample;
use serde::{Deserialize, Serialize};
use units::rounding::thousandths;
use units::time::NS_PER_S;

/// Metrics of a TCP sender over a span of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpMetrics {
    /// Payload acknowledged, divided by the time; between two samples it is interpolated
    /// linearly.
    pub goodput_bps: f64,
    pub retransmits: u64,
    /// Largest congestion window of the samples.
    pub cwnd_max_bytes: u64,
    /// Congestion window of the last sample.
    pub cwnd_end_bytes: u64,
}

/// Computes the metrics of `from_ns..to_ns` of a connection that began at `start_ns`, on the
/// samples' clock. `None` if no sample lies in the span. Linear in the samples.
pub fn metrics(
    samples: &[TcpSample],
    start_ns: u64,
    from_ns: u64,
    to_ns: u64,
) -> Option<TcpMetrics> {
    let begun = TcpSample {
        time_ns: start_ns,
        ..TcpSample::default()
    };
    let mut inside = samples
        .iter()
        .filter(|s| (from_ns..=to_ns).contains(&s.time_ns));
    let cwnd_max_bytes = inside.clone().map(|s| s.cwnd_bytes).max()?;
    let cwnd_end_bytes = inside.next_back()?.cwnd_bytes;
    let last_by = |at_ns: u64| {
        samples
            .iter()
            .rev()
            .find(|s| s.time_ns <= at_ns)
            .unwrap_or(&begun)
    };
    let acked = |at_ns: u64| {
        let before = last_by(at_ns);
        let after = samples.iter().find(|s| s.time_ns > at_ns);
        acked_between(before, after.unwrap_or(before), at_ns)
    };
    let bits = u128::from(acked(to_ns).saturating_sub(acked(from_ns))) * 8;
    let length_ns = u128::from(to_ns.saturating_sub(from_ns)).max(1);
    let retransmits = last_by(to_ns).retransmits;
    Some(TcpMetrics {
        goodput_bps: thousandths(bits * u128::from(NS_PER_S), length_ns),
        retransmits: retransmits.saturating_sub(last_by(from_ns).retransmits),
        cwnd_max_bytes,
        cwnd_end_bytes,
    })
}

fn acked_between(before: &TcpSample, after: &TcpSample, at_ns: u64) -> u64 {
    let between_ns = after.time_ns.saturating_sub(before.time_ns);
    let since_ns = at_ns.saturating_sub(before.time_ns).min(between_ns);
    let more = after.acked_bytes.saturating_sub(before.acked_bytes);
    let part = u128::from(more) * u128::from(since_ns) / u128::from(between_ns.max(1));
    // At most `more`.
    before.acked_bytes + u64::try_from(part).unwrap_or(more)
}

/// Samples as a report draws them; each list has one value per instant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpCurves {
    /// Instants, seconds from t = 0.
    pub time_s: Vec<f64>,
    /// Congestion window, bytes.
    pub cwnd_bytes: Vec<u64>,
    /// Slow start threshold, bytes; `None` where there is none.
    pub ssthresh_bytes: Vec<Option<u64>>,
    /// Smoothed round-trip time, us.
    pub srtt_us: Vec<u64>,
    /// Segments retransmitted since the start.
    pub retransmits: Vec<u64>,
    /// Payload acknowledged since the start, bytes.
    pub acked_bytes: Vec<u64>,
}

impl TcpCurves {
    /// Converts samples; `None` if there are none.
    pub fn of(samples: &[TcpSample]) -> Option<Self> {
        // A float is exact enough: 53 bits hold a nanosecond of a cell of hours.
        let seconds = |s: &TcpSample| s.time_ns as f64 / 1e9;
        (!samples.is_empty()).then(|| Self {
            time_s: samples.iter().map(seconds).collect(),
            cwnd_bytes: samples.iter().map(|s| s.cwnd_bytes).collect(),
            ssthresh_bytes: samples.iter().map(|s| s.ssthresh_bytes).collect(),
            srtt_us: samples.iter().map(|s| s.srtt_us).collect(),
            retransmits: samples.iter().map(|s| s.retransmits).collect(),
            acked_bytes: samples.iter().map(|s| s.acked_bytes).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sender_log::sample::{HEADER, parse};

    fn samples() -> Vec<TcpSample> {
        // 1 MB in each second from t = 1 s on, sampled each half second.
        (2..=20)
            .map(|i| TcpSample {
                time_ns: i * 500_000_000,
                cwnd_bytes: if i == 7 { 9000 } else { 1000 + i },
                retransmits: i / 4,
                acked_bytes: (i - 2) * 500_000,
                ..TcpSample::default()
            })
            .collect()
    }

    #[test]
    fn goodput_is_of_the_window_and_not_of_the_samples() {
        let s = |s: f64| (s * 1e9) as u64;
        let of = |from, to| metrics(&samples(), s(1.0), s(from), s(to)).unwrap();
        assert_eq!(of(1.0, 10.0).goodput_bps, 8e6);
        assert_eq!(of(2.2, 3.9).goodput_bps, 8e6);
        // The time after the last byte counts as silence.
        assert_eq!(of(9.0, 11.0).goodput_bps, 4e6);
        assert_eq!(
            (of(2.0, 4.0).retransmits, of(0.0, 10.0).retransmits),
            (1, 5)
        );
        assert_eq!(
            (of(3.0, 4.0).cwnd_max_bytes, of(3.0, 4.0).cwnd_end_bytes),
            (9000, 1008)
        );
        assert_eq!(metrics(&samples(), 0, s(20.0), s(21.0)), None);
        assert_eq!(metrics(&[], 0, 0, s(1.0)), None);
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        #[test]
        fn neighbouring_windows_add_up(cut in 1_000_000_001u64..9_999_999_999) {
            let (from, to) = (1_000_000_000, 10_000_000_000);
            let of = |from: u64, to: u64| {
                let m = metrics(&samples(), from, from, to);
                m.map_or(0.0, |m| m.goodput_bps * (to - from) as f64 / 8e9)
            };
            // A window without a sample has no goodput.
            prop_assume!((1_500_000_000..9_500_000_000).contains(&cut));
            let sum = of(from, cut) + of(cut, to);
            prop_assert!((sum - of(from, to)).abs() < 2.0, "{sum}");
        }

        #[test]
        fn hostile_text_never_panics(text in "[0-9,\n a-z_]{0,200}") {
            if let Ok(samples) = parse(&(HEADER.to_owned() + &text)) {
                let _ = metrics(&samples, 0, 1, u64::MAX);
            }
        }
    }
}
