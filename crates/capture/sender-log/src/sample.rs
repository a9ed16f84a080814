// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes the state of a TCP sender over time: `flow-NAME.tcp` (`docs/use/formats.md`).

use std::fmt::Write as _;

/// The state of a connection that the kernel reported at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSample {
    /// Time after t = 0 of the cell.
    pub time_ns: u64,
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Slow start threshold; `None`: not set yet.
    pub ssthresh_bytes: Option<u64>,
    /// Smoothed round-trip time.
    pub srtt_us: u64,
    /// Segments retransmitted, since the start.
    pub retransmits: u64,
    /// The stack's own pacing rate; 0: no pacing.
    pub pacing_rate_bps: u64,
    /// Payload acknowledged, since the start.
    pub acked_bytes: u64,
}

/// Why a file of samples was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TcpError {
    /// The first line lacks a needed column.
    #[error("line 1: there is no column {0}")]
    NoColumn(&'static str),
    /// A line that is too short, or a value that is not a whole number.
    #[error("line {line}: {column} is {found:?}, expected a whole number")]
    Value {
        /// From 1.
        line: usize,
        column: &'static str,
        found: String,
    },
    /// Time or a counter runs backwards.
    #[error("line {line}: {column} is less than in the line before")]
    Backwards {
        /// From 1.
        line: usize,
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

/// The kernel's value for a threshold that is not set yet (`TCP_INFINITE_SSTHRESH`).
pub const NO_THRESHOLD: u64 = 0x7fff_ffff;

/// The first line of the file.
pub const HEADER: &str = "time_ns,cwnd_segments,ssthresh_segments,srtt_us,rttvar_us,mss_bytes,\
                          unacked_segments,lost_segments,retrans_segments,pacing_rate_bps,\
                          delivery_rate_bps,acked_bytes,sent_bytes\n";

/// One line of the file, in the units of `TCP_INFO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// After t = 0 of the cell.
    pub time_ns: u64,
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Slow start threshold; from [`NO_THRESHOLD`] on there is none yet.
    pub ssthresh_segments: u32,
    /// Smoothed round-trip time.
    pub srtt_us: u64,
    /// Its mean deviation.
    pub rttvar_us: u64,
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// Sent and not acknowledged.
    pub unacked_segments: u32,
    /// Of these, thought lost.
    pub lost_segments: u32,
    /// Segments retransmitted, since the start.
    pub retrans_segments: u64,
    /// The stack's own pacing rate; 0: none.
    pub pacing_rate_bps: u64,
    /// The delivery rate that the stack measured; 0: none.
    pub delivery_rate_bps: u64,
    /// Payload acknowledged, since the start.
    pub acked_bytes: u64,
    /// Payload sent, since the start.
    pub sent_bytes: u64,
}

impl Line {
    /// Appends the line to a file's text.
    pub fn write(&self, out: &mut String) {
        // A string takes everything.
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{},{},{}",
            self.time_ns,
            self.cwnd_segments,
            u64::from(self.ssthresh_segments).min(NO_THRESHOLD),
            self.srtt_us,
            self.rttvar_us,
            self.mss_bytes,
            self.unacked_segments,
            self.lost_segments,
            self.retrans_segments,
            self.pacing_rate_bps,
            self.delivery_rate_bps,
            self.acked_bytes,
            self.sent_bytes,
        );
    }

    /// The same as [`parse`] reads it.
    pub fn sample(&self) -> TcpSample {
        sample([
            self.time_ns,
            self.cwnd_segments.into(),
            self.ssthresh_segments.into(),
            self.srtt_us,
            self.mss_bytes.into(),
            self.retrans_segments,
            self.pacing_rate_bps,
            self.acked_bytes,
        ])
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(time_ns: u64, cwnd: u64, ssthresh: u64, retrans: u64, acked: u64) -> String {
        format!("\n{time_ns},{cwnd},{ssthresh},200000,1,1448,9,0,{retrans},77,5,{acked},{acked}")
    }

    #[test]
    fn columns_are_found_by_name() {
        let text = HEADER.trim_end().to_owned()
            + &line(5, 10, 2_147_483_647, 0, 0)
            + &line(6, 2, 7, 3, 99);
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
        // A file that ends behind its header has no samples; an empty file has no header.
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
            let error = parse(&(HEADER.trim_end().to_owned() + more)).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn written_samples_are_read_unchanged() {
        let mut text = HEADER.to_owned();
        let lines = [0, NO_THRESHOLD as u32, u32::MAX].map(|ssthresh_segments| Line {
            time_ns: 7,
            cwnd_segments: 10,
            ssthresh_segments,
            srtt_us: 200,
            mss_bytes: 1448,
            retrans_segments: 3,
            pacing_rate_bps: 77,
            acked_bytes: 99,
            ..Line::default()
        });
        lines.iter().for_each(|line| line.write(&mut text));
        assert_eq!(parse(&text), Ok(lines.map(|line| line.sample()).to_vec()));
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        #[test]
        fn hostile_text_never_panics(text in "[0-9,\n a-z_]{0,200}") {
            let _ = parse(&text);
            let _ = parse(&(HEADER.to_owned() + &text));
        }
    }
}
