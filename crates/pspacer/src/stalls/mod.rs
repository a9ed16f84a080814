// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer stalls`: tells why transfers stalled, from captures of them.

mod files;
mod json;

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use stall::captures::{Found, read, worst_first};
use stall::select::Selector;

use crate::headings::{FILTERS, OUTPUT, RUN};
use crate::output;
use crate::values;
use files::Files;

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
    /// Every connection and every stop; else the worst of each. The sum by cause
    /// counts all, listed or not
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

/// Analyses the captures and prints the results. Returns `false` if `--exit-code` was given and a
/// stall was found.
///
/// # Errors
/// When a file cannot be read at all, there is no TCP in the files, no connection matches, or an
/// output cannot be written. A file that is damaged further on is analysed up to the damage.
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
        let style = crate::terminal::style();
        report::stalls::text::write(&mut out, &found, args.all, style)?;
    }
    out.flush()?;
    let stalls = |i: &usize| found.analysis.connections[*i].stalls.len();
    Ok(!args.exit_code || found.shown.iter().map(stalls).sum::<usize>() == 0)
}

/// Reads all files once. `history_of` is the connection whose events are kept.
fn analyse(args: &StallsArgs, files: &Files, history_of: Option<usize>) -> Result<Found> {
    let found = read(files.open()?, files.names(), args.min_duration, history_of);
    files.finished();
    if found.counts.segments == 0 {
        let why = found.damages.first();
        let why = why.map_or(String::new(), |(name, d)| format!("; {name}: {d}"));
        bail!("no TCP segment among {} packets{why}", found.counts.packets);
    }
    Ok(found)
}

/// Returns the page, in which the first of the listed connections is drawn. A second reading of the
/// files keeps its events.
fn draw(args: &StallsArgs, files: &Files, found: &mut Found) -> Result<String> {
    if let Some(&index) = found.shown.first() {
        let again = analyse(args, files, Some(index))?;
        let history = again.analysis.connections.into_iter().nth(index);
        if let Some(connection) = found.analysis.connections.get_mut(index) {
            connection.history = history.and_then(|c| c.history);
        }
    }
    Ok(report::stalls::page::html(found, args.interval))
}
