// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a TCP sender over time: `flow-NAME.tcp` (`docs/formats.md`).

use serde::{Deserialize, Serialize};

use units::rounding::thousandths;
use units::time::NS_PER_S;

/// What the kernel said of a connection at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSample {
    /// After t = 0 of the cell.
    pub time_ns: u64,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow start threshold; `None`: none yet.
    pub ssthresh_bytes: Option<u64>,
    /// Smoothed round-trip time.
    pub srtt_us: u64,
    /// Segments sent again, since the start.
    pub retransmits: u64,
    /// The stack's own pacing rate; 0: none.
    pub pacing_rate_bps: u64,
    /// Payload acknowledged, since the start.
    pub acked_bytes: u64,
}

/// Why a file of samples was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TcpError {
    /// The first line does not name a column that is needed.
    #[error("line 1: there is no column {0}")]
    NoColumn(&'static str),
    /// A line that is too short, or something that is not a whole number.
    #[error("line {line}: {column} is {found:?}, expected a whole number")]
    Value {
        /// From 1.
        line: usize,
        /// Its name.
        column: &'static str,
        /// What stands there.
        found: String,
    },
    /// Time or a counter runs backwards.
    #[error("line {line}: {column} is less than in the line before")]
    Backwards {
        /// From 1.
        line: usize,
        /// Its name.
        column: &'static str,
    },
}

const COLUMNS: [&str; 8] = [
    "time_ns",
    "cwnd_segments",
    "ssthresh_segments",
    "srtt_us",
    "mss_bytes",
    "retrans_segments",
    "pacing_rate_bps",
    "acked_bytes",
];

/// The kernel's "no threshold yet" (`TCP_INFINITE_SSTHRESH`).
const NO_THRESHOLD: u64 = 0x7fff_ffff;

/// Reads a file of samples. Columns are found by their names; others may stand
/// beside them. Linear in the text.
///
/// # Errors
/// The first line that is not as it should be.
pub fn parse(text: &str) -> Result<Vec<TcpSample>, TcpError> {
    let mut lines = text.lines().zip(1..);
    let header: Vec<&str> = lines.next().map_or("", |l| l.0).split(',').collect();
    let mut places = [0; COLUMNS.len()];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        let found = header.iter().position(|name| name.trim() == column);
        *place = found.ok_or(TcpError::NoColumn(column))?;
    }
    let mut samples: Vec<TcpSample> = Vec::new();
    for (text, line) in lines.filter(|l| !l.0.trim().is_empty()) {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let mut values = [0u64; COLUMNS.len()];
        for ((value, place), column) in values.iter_mut().zip(places).zip(COLUMNS) {
            let found = fields.get(place).copied().unwrap_or("");
            *value = found.parse().map_err(|_| TcpError::Value {
                line,
                column,
                found: found.to_owned(),
            })?;
        }
        let sample = sample(values);
        if let Some(last) = samples.last() {
            check_order(last, &sample, line)?;
        }
        samples.push(sample);
    }
    Ok(samples)
}

fn sample(values: [u64; COLUMNS.len()]) -> TcpSample {
    let [
        time_ns,
        cwnd,
        ssthresh,
        srtt_us,
        mss,
        retransmits,
        pacing_rate_bps,
        acked_bytes,
    ] = values;
    TcpSample {
        time_ns,
        cwnd_bytes: cwnd.saturating_mul(mss),
        ssthresh_bytes: (ssthresh < NO_THRESHOLD).then(|| ssthresh.saturating_mul(mss)),
        srtt_us,
        retransmits,
        pacing_rate_bps,
        acked_bytes,
    }
}

fn check_order(last: &TcpSample, next: &TcpSample, line: usize) -> Result<(), TcpError> {
    let pairs = [
        ("time_ns", last.time_ns, next.time_ns),
        ("retrans_segments", last.retransmits, next.retransmits),
        ("acked_bytes", last.acked_bytes, next.acked_bytes),
    ];
    match pairs.iter().find(|(_, last, next)| next < last) {
        Some(&(column, ..)) => Err(TcpError::Backwards { line, column }),
        None => Ok(()),
    }
}

/// What samples say of a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpMetrics {
    /// Payload acknowledged, over the time; between two samples it is taken to
    /// come evenly.
    pub goodput_bps: f64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Largest congestion window of the samples.
    pub cwnd_max_bytes: u64,
    /// That of the last sample.
    pub cwnd_end_bytes: u64,
}

/// Metrics of `from_ns..to_ns` of a connection that began at `start_ns`, on the
/// samples' clock. `None` if no sample lies in it. Linear in the samples.
#[must_use]
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

/// Samples as a report draws them, one value of each list an instant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpCurves {
    /// Seconds from t = 0.
    pub time_s: Vec<f64>,
    /// Congestion window.
    pub cwnd_bytes: Vec<u64>,
    /// Slow start threshold, where there is one.
    pub ssthresh_bytes: Vec<Option<u64>>,
    /// Smoothed round-trip time.
    pub srtt_us: Vec<u64>,
    /// Segments sent again, since the start.
    pub retransmits: Vec<u64>,
    /// Payload acknowledged, since the start.
    pub acked_bytes: Vec<u64>,
}

impl TcpCurves {
    /// `None` without samples.
    #[must_use]
    pub fn of(samples: &[TcpSample]) -> Option<Self> {
        // A nanosecond of a cell of hours has its place in 53 bits.
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

    const HEADER: &str = "time_ns,cwnd_segments,ssthresh_segments,srtt_us,rttvar_us,mss_bytes,\
                          unacked_segments,lost_segments,retrans_segments,pacing_rate_bps,\
                          delivery_rate_bps,acked_bytes,sent_bytes";

    fn line(time_ns: u64, cwnd: u64, ssthresh: u64, retrans: u64, acked: u64) -> String {
        format!("\n{time_ns},{cwnd},{ssthresh},200000,1,1448,9,0,{retrans},77,5,{acked},{acked}")
    }

    #[test]
    fn columns_are_found_by_name() {
        let text = HEADER.to_owned() + &line(5, 10, 2_147_483_647, 0, 0) + &line(6, 2, 7, 3, 99);
        let samples = parse(&text).unwrap();
        assert_eq!(samples[0].cwnd_bytes, 14_480);
        assert_eq!(samples[0].ssthresh_bytes, None);
        let expected = TcpSample {
            time_ns: 6,
            cwnd_bytes: 2 * 1448,
            ssthresh_bytes: Some(7 * 1448),
            srtt_us: 200_000,
            retransmits: 3,
            pacing_rate_bps: 77,
            acked_bytes: 99,
        };
        assert_eq!(samples[1], expected);
        // The last line was cut off nowhere that matters; an empty file has no header.
        assert_eq!(parse(HEADER), Ok(vec![]));
        assert_eq!(parse(""), Err(TcpError::NoColumn("time_ns")));
    }

    #[test]
    fn bad_lines_are_named() {
        for (more, expected) in [
            (
                "\n1,2",
                "line 2: ssthresh_segments is \"\", expected a whole number".to_owned(),
            ),
            (
                &*line(1, 2, 3, 4, 5).replace("1448", "x"),
                "line 2: mss_bytes is \"x\", expected a whole number".to_owned(),
            ),
            (
                &*(line(7, 2, 3, 4, 5) + &line(6, 2, 3, 4, 5)),
                "line 3: time_ns is less than in the line before".to_owned(),
            ),
            (
                &*(line(7, 2, 3, 4, 5) + &line(8, 2, 3, 4, 4)),
                "line 3: acked_bytes is less than in the line before".to_owned(),
            ),
        ] {
            let error = parse(&(HEADER.to_owned() + more)).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

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
        // What was not sent any more counts as a silence.
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
            // A window without a sample has nothing to say.
            prop_assume!((1_500_000_000..9_500_000_000).contains(&cut));
            let sum = of(from, cut) + of(cut, to);
            prop_assert!((sum - of(from, to)).abs() < 2.0, "{sum}");
        }

        #[test]
        fn hostile_text_never_panics(text in "[0-9,\n a-z_]{0,200}") {
            let _ = parse(&text);
            if let Ok(samples) = parse(&(HEADER.to_owned() + "\n" + &text)) {
                let _ = metrics(&samples, 0, 1, u64::MAX);
            }
        }
    }
}
