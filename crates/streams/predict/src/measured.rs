// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses files of measured delays: a histogram as CSV, or the output of `pspacer ping --json`
//! (`docs/use/formats.md`, "Delays").

use serde::Deserialize;

use crate::classes::Delay;

/// Why no delays can be read from a file.
#[derive(Debug, thiserror::Error)]
pub enum MeasuredError {
    /// The JSON cannot be parsed or lacks a needed field.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// JSON of another program.
    #[error("format {format:?}: expected \"{PING}\"")]
    Format {
        /// Name of the format that the file states.
        format: String,
    },
    /// The file holds only round trips, but one-way delays are wanted.
    #[error(
        "one_way is null: only round trips were measured; expected --round-trip on the command line"
    )]
    NoOneWay,
    /// A line that does not fit the table.
    #[error("line {line}: {text:?}: expected {expected}")]
    Line {
        /// From 1.
        line: usize,
        /// The line, or its first characters.
        text: String,
        /// What the line should be.
        expected: &'static str,
    },
    /// A table without rows.
    #[error("no delays")]
    Empty,
}

/// The `format` of ping's object.
pub const PING: &str = "pspacer-ping-1";
/// The valid first lines of a table.
const HEADS: [&str; 2] = ["delay_ns", "delay_ns,count"];
/// Characters of a wrong line that are shown.
const SHOWN: usize = 40;

#[derive(Deserialize)]
struct Named {
    format: String,
}

#[derive(Deserialize)]
struct Ping {
    round_trip: Delays,
    one_way: Option<Delays>,
}

#[derive(Deserialize)]
struct Delays {
    histogram: Vec<Bin>,
}

#[derive(Deserialize)]
struct Bin {
    delay_ns: u64,
    count: u64,
}

/// Reads delays from a file's text: JSON if it begins with `{`, else a table whose first line
/// is `delay_ns` or `delay_ns,count`; lines that begin with `#` are skipped. From ping's
/// object it reads the round trips if `round_trip`, else the delays of the forward path.
///
/// # Errors
/// Says what is wrong, and in which line or key.
pub fn read(text: &str, round_trip: bool) -> Result<Vec<Delay>, MeasuredError> {
    let delays = if text.trim_start().starts_with('{') {
        from_ping(text, round_trip)?
    } else {
        from_table(text)?
    };
    if delays.iter().all(|d| d.count == 0) {
        return Err(MeasuredError::Empty);
    }
    Ok(delays)
}

fn from_ping(text: &str, round_trip: bool) -> Result<Vec<Delay>, MeasuredError> {
    let Named { format } = serde_json::from_str(text)?;
    if format != PING {
        return Err(MeasuredError::Format { format });
    }
    let ping: Ping = serde_json::from_str(text)?;
    let delays = match (round_trip, ping.one_way) {
        (true, _) => ping.round_trip,
        (false, Some(one_way)) => one_way,
        (false, None) => return Err(MeasuredError::NoOneWay),
    };
    let of = |b: Bin| Delay {
        delay_ns: b.delay_ns,
        count: b.count,
    };
    Ok(delays.histogram.into_iter().map(of).collect())
}

fn from_table(text: &str) -> Result<Vec<Delay>, MeasuredError> {
    let mut lines = (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, l)| !l.is_empty() && !l.starts_with('#'));
    let wrong = |line, text: &str, expected| MeasuredError::Line {
        line,
        text: text.chars().take(SHOWN).collect(),
        expected,
    };
    let (line, head) = lines.next().ok_or(MeasuredError::Empty)?;
    let counted = match HEADS.iter().position(|h| *h == head) {
        Some(columns) => columns == 1,
        None => {
            let expected = "the line \"delay_ns\" or \"delay_ns,count\"";
            return Err(wrong(line, head, expected));
        }
    };
    let row = |(line, text): (usize, &str)| {
        let (delay, count) = match (counted, text.split_once(',')) {
            (true, Some((delay, count))) => (delay, count),
            (true, None) => return Err(wrong(line, text, "a delay in ns, a comma and a count")),
            (false, _) => (text, "1"),
        };
        match (delay.trim().parse(), count.trim().parse()) {
            (Ok(delay_ns), Ok(count)) => Ok(Delay { delay_ns, count }),
            _ => Err(wrong(line, text, "whole numbers")),
        }
    };
    lines.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str, round_trip: bool) -> Vec<(u64, u64)> {
        let delays = read(text, round_trip).unwrap();
        delays.iter().map(|d| (d.delay_ns, d.count)).collect()
    }

    #[test]
    fn tables() {
        assert_eq!(
            pairs("# here\ndelay_ns\n5\n\n 7 \n", true),
            [(5, 1), (7, 1)]
        );
        assert_eq!(pairs("delay_ns,count\n5, 3\n", false), [(5, 3)]);
    }

    #[test]
    fn what_ping_prints() {
        let both = r#"{"format": "pspacer-ping-1", "more": 1,
            "round_trip": {"histogram": [{"delay_ns": 9, "count": 2}], "max_ns": 9},
            "one_way": {"histogram": [{"delay_ns": 4, "count": 2}]}}"#;
        assert_eq!(pairs(both, true), [(9, 2)]);
        assert_eq!(pairs(both, false), [(4, 2)]);
    }

    #[test]
    fn a_rejected_file_is_named() {
        for (text, words) in [
            ("", "no delays"),
            ("delay\n1", "line 1: \"delay\""),
            ("delay_ns\n1.5", "line 2: \"1.5\": expected whole numbers"),
            ("delay_ns,count\n1", "line 2"),
            ("delay_ns,count\n1,0", "no delays"),
            ("delay_ns\n99999999999999999999", "line 2"),
            ("{\"format\": \"x\"}", "\"x\""),
            ("{\"format\": 3}", "line 1"),
            (
                r#"{"format": "pspacer-ping-1", "round_trip": {"histogram": []}}"#,
                "--round-trip",
            ),
        ] {
            let said = read(text, false).unwrap_err().to_string();
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
