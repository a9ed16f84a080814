// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer stalls`: why transfers stopped, from captures of them.

mod files;
mod json;
mod page;
mod select;
pub mod text;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use capture::encapsulation::Encapsulations;
use capture::error::Damage;
use capture::segments::Counts;
use clap::Args;
use files::Files;
use select::Selector;
use stall::{Analyser, Analysis, Options};

use crate::cli::{FILTERS, OUTPUT, RUN};
use crate::output;
use crate::values;

/// Arguments of `pspacer stalls`.
#[derive(Debug, Args)]
pub struct StallsArgs {
    /// Captures (pcap or pcapng, also gzip or zstd packed); of several, such as
    /// those of a rotated capture, the packets are merged in order of time. "-"
    /// is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only these connections: "port 80" and the like as for measure; addresses and ports as in
    /// "10.1.1.1:80", ":5001" or "10.1.1.1 10.1.2.1:80"; or a number in the list; may be repeated
    #[arg(long, value_name = "FILTER|ENDS|N", alias = "connection", help_heading = FILTERS)]
    pub flow: Vec<Selector>,
    /// Only stops that took at least this long, as in 50ms [default: what is
    /// long for the connection's round trip, and at least 20ms]
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = FILTERS)]
    pub min_duration: Option<u64>,
    /// Every connection and every stop; else the worst of each
    #[arg(long, help_heading = OUTPUT)]
    pub all: bool,
    /// One JSON object on standard output, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Also write a page with the worst connection (or the one named by
    /// --flow) drawn: sequence numbers, flight, window and throughput
    /// over time
    #[arg(long, value_name = "OUT.html", help_heading = OUTPUT)]
    pub report: Option<PathBuf>,
    /// Interval of the throughput in the page, as in 10ms [default: about 200 of them]
    #[arg(long, value_name = "TIME", value_parser = values::some_time, help_heading = OUTPUT)]
    pub interval: Option<u64>,
    /// Exit with 3 if a stop was found, for scripts
    #[arg(long, help_heading = RUN)]
    pub exit_code: bool,
}

/// Everything that was found.
struct Found {
    analysis: Analysis,
    counts: Counts,
    damages: Vec<(String, Damage)>,
    encapsulations: Encapsulations,
    /// Names of the files.
    files: Vec<String>,
    /// Indices of the connections to show, the worst first.
    shown: Vec<usize>,
}

/// Analyses the captures and prints what it found. `false` if `--exit-code` was
/// given and a stop was found.
///
/// # Errors
/// When a file cannot be read at all, there is no TCP in them, no connection
/// matches, or an output cannot be written. A file damaged further on is
/// analysed up to there.
pub fn main(args: &StallsArgs) -> Result<bool> {
    let files = Files::new(&args.files)?;
    ensure!(
        args.report.is_none() || !files.has_stdin(),
        "--report reads the capture twice: name a file instead of -"
    );
    let mut found = analyse(args, &files, None)?;
    found.shown = worst_first(&found.analysis, &args.flow);
    for note in found.notes() {
        output::note(&format!("pspacer: {note}"));
    }
    if found.shown.is_empty() && !args.flow.is_empty() {
        bail!(
            "no connection matches --flow; there are {}, as \"pspacer stalls --all\" lists them",
            found.analysis.connections.len()
        );
    }
    if let Some(path) = &args.report {
        let page = draw(args, &files, &mut found)?;
        fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = std::io::BufWriter::new(output::out());
    if args.json {
        json::write(&mut out, &found)?;
    } else {
        text::write(&mut out, &found, args.all, crate::terminal::style())?;
    }
    out.flush()?;
    let stops = |i: &usize| found.analysis.connections[*i].stops.len();
    Ok(!args.exit_code || found.shown.iter().map(stops).sum::<usize>() == 0)
}

/// What is found in one capture.
///
/// # Errors
/// If nothing of it can be read.
pub fn read(path: &Path) -> Result<Analysis> {
    let files = Files::new(&[path.to_path_buf()])?;
    let mut segments = files.open()?;
    let mut analyser = Analyser::new(Options::default());
    while let Some(segment) = segments.next() {
        analyser.segment(&segment);
    }
    Ok(analyser.finish())
}

/// Reads all files once. `history_of` is the connection whose events are kept.
fn analyse(args: &StallsArgs, files: &Files, history_of: Option<usize>) -> Result<Found> {
    let mut options = Options {
        history_of,
        ..Options::default()
    };
    if let Some(least_ns) = args.min_duration {
        options.min_stop_ns = least_ns;
        options.min_stop_blind_ns = least_ns;
    }
    let mut segments = files.open()?;
    let mut analyser = Analyser::new(options);
    while let Some(segment) = segments.next() {
        analyser.segment(&segment);
    }
    files.finished();
    let counts = segments.counts().clone();
    let damages = segments.damages().to_vec();
    if counts.segments == 0 {
        let why = damages.first().map(|(name, d)| format!("; {name}: {d}"));
        let why = why.unwrap_or_default();
        bail!("no TCP segment among {} packets{why}", counts.packets);
    }
    let mut analysis = analyser.finish();
    if let Some(least_ns) = args.min_duration {
        for connection in &mut analysis.connections {
            connection.stops.retain(|s| s.duration_ns >= least_ns);
        }
    }
    Ok(Found {
        analysis,
        counts,
        damages,
        encapsulations: segments.into_encapsulations(),
        files: files.names(),
        shown: Vec::new(),
    })
}

/// The page, with the first of the connections shown drawn: its events are kept
/// in a second reading.
fn draw(args: &StallsArgs, files: &Files, found: &mut Found) -> Result<String> {
    if let Some(&index) = found.shown.first() {
        let again = analyse(args, files, Some(index))?;
        let history = again.analysis.connections.into_iter().nth(index);
        if let Some(connection) = found.analysis.connections.get_mut(index) {
            connection.history = history.and_then(|c| c.history);
        }
    }
    Ok(page::html(found, args.interval))
}

/// Indices of the connections that are wanted, by how long they stopped and
/// what that cost, then in order of their first packets.
fn worst_first(analysis: &Analysis, wanted: &[Selector]) -> Vec<usize> {
    let mut shown: Vec<_> = (0..analysis.connections.len())
        .filter(|i| {
            let connection = &analysis.connections[*i];
            wanted.is_empty() || wanted.iter().any(|w| w.matches(i + 1, connection))
        })
        .collect();
    shown.sort_by_cached_key(|i| {
        let stops = &analysis.connections[*i].stops;
        let stopped_ns: u64 = stops.iter().map(|s| s.duration_ns).sum();
        let cost: u64 = stops.iter().filter_map(|s| s.bytes_cost).sum();
        std::cmp::Reverse((stopped_ns, cost))
    });
    shown
}

impl Found {
    /// What was not read, or not well, by file.
    fn notes(&self) -> impl Iterator<Item = String> {
        let damages = self.damages.iter().map(|(name, d)| format!("{name}: {d}"));
        let counts = self.counts.notes().into_iter();
        let analysis = self.analysis.notes.iter().cloned();
        damages.chain(counts).chain(analysis)
    }
}

/// The name of a cause, side, confidence or place: as in JSON, without dashes.
/// Abbreviations are such.
pub fn words<T: serde::Serialize>(value: &T) -> String {
    let name = serde_json::to_value(value).unwrap_or_default();
    let spaced = name.as_str().unwrap_or_default().replace('-', " ");
    let word = |w: &str| match w {
        "ack" | "pmtu" | "rto" => w.to_uppercase(),
        other => other.to_owned(),
    };
    spaced.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
