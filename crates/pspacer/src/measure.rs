// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer measure`: measures rates, gaps and burstiness in any capture.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use capture::selector::Selector;
use clap::Args;
use lab_run::capture_file::{Source, read};
use lab_run::capture_survey::{Wanted, json, measure, write_report};
use lab_run::results_dir::{ResultsDir, Writer};

use crate::headings::{FILTERS, OUTPUT};
use crate::output::{note, out};
use crate::terminal;
use crate::values::{rate, some_time, time};

/// Arguments of `pspacer measure`.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// A capture (pcap or pcapng, also gzip or zstd packed), whatever its name; "-" is standard
    /// input. Or a timeline of the laboratory (timeline.a, with flows.a beside it)
    pub file: PathBuf,
    /// Only these flows: tcp, udp, src, dst, host, sport, dport, port and their values, as in
    /// "udp dport 5001" or "dst 10.1.0.0/16"; or addresses and ports as in "10.1.1.1:80", ":5001"
    /// or "10.1.1.1 10.1.2.1:80"; may be repeated
    #[arg(long, value_name = "FILTER|ENDS", value_parser = Selector::without_number,
        help_heading = FILTERS)]
    pub flow: Vec<Selector>,
    /// Line rate, as in 1gbit: gaps are then given in byte times
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = UNITS)]
    pub line: Option<u64>,
    /// MTU of the device: the unit of burstiness [default: a flow's largest packet]
    #[arg(long, value_name = "BYTES", value_parser = mtu, help_heading = UNITS)]
    pub mtu: Option<u32>,
    /// Begin, after the first packet, as in 100ms
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = FILTERS)]
    pub from: Option<u64>,
    /// End, after the first packet
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = FILTERS)]
    pub to: Option<u64>,
    /// Interval of the curves [default: about 400 of them]
    #[arg(long, value_name = "TIME", value_parser = some_time, help_heading = OUTPUT)]
    pub interval: Option<u64>,
    /// One JSON object on standard output, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Also write report.html, measures.json and the plots into this folder
    #[arg(long, value_name = "DIR", alias = "report", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    /// Media streams
    #[command(flatten)]
    pub streams: media::measure::StreamArgs,
}

/// Heading of the options that set the units of the results.
const UNITS: &str = "Units";

/// Parses a number of bytes above 0.
fn mtu(text: &str) -> Result<u32, String> {
    let known = text.parse().ok().filter(|bytes| *bytes > 0);
    known.ok_or_else(|| "expected bytes, 1 or more".to_owned())
}

/// Returns the file's name as shown to people.
fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Measures the file and prints what it found.
///
/// # Errors
/// When the file cannot be read at all, holds no selected flow, or an output cannot be written. A
/// file that is damaged further on is measured up to the damage.
pub fn main(args: &MeasureArgs) -> Result<()> {
    if args.streams.st2110 {
        return streams(args);
    }
    let source = read(&args.file).with_context(|| args.file.display().to_string())?;
    for problem in source
        .notes
        .iter()
        .chain(&source.damage.as_ref().map(ToString::to_string))
    {
        note(&format!("pspacer: {}: {problem}", args.file.display()));
    }
    let name = name(&args.file);
    let wanted = Wanted {
        flows: &args.flow,
        line_bps: args.line.unwrap_or(0),
        mtu_bytes: args.mtu.unwrap_or(0),
        from_ns: args.from.unwrap_or(0),
        to_ns: args.to,
        interval_ns: args.interval,
    };
    let found = measure(&source, &name, &wanted)?;
    let json = json(&source, &name, &found)?;
    if let Some(folder) = &args.out {
        write_report(folder, &name, &source, &found, &json)?;
    }
    let mut out = out();
    if args.json {
        out.write_all(json.as_bytes())?;
    } else {
        let style = crate::terminal::style();
        out.write_all(report::terminal::chart(&found.curves, style).as_bytes())?;
        writeln!(out)?;
        out.write_all(report::window_summary(&found.window, style).as_bytes())?;
        let hints = hints(args, &source).into_iter();
        for hint in hints.filter(|_| !terminal::is_quiet()) {
            writeln!(out, "{hint}")?;
        }
    }
    Ok(())
}

/// Measures media streams and prints what it found.
fn streams(args: &MeasureArgs) -> Result<()> {
    let found = media::measure::measure(&media::measure::Request {
        file: &args.file,
        args: &args.streams,
        flows: &args.flow,
        style: terminal::style(),
    })?;
    let notes = found.notes.iter();
    notes.for_each(|text| note(&format!("pspacer: {text}")));
    if let Some(folder) = &args.out {
        let folder = ResultsDir::open(folder, Writer::Measure)?;
        for (name, text) in &found.files {
            folder.write(&folder.path().join(name), text.as_bytes())?;
        }
    }
    let text = if args.json { &found.json } else { &found.text };
    out().write_all(text.as_bytes())?;
    ensure!(found.is_expected, "a stream is not what --expect says");
    Ok(())
}

/// Returns hints that a reader of the results should know.
fn hints(args: &MeasureArgs, source: &Source) -> Vec<String> {
    let mut hints = Vec::new();
    if args.line.is_none() {
        hints.push("With --line RATE gaps are shown too, in byte times of the line.".to_owned());
    }
    if source.resolution_ps >= 1_000_000 {
        hints.push(format!(
            "Timestamps are {} µs apart at best: burstiness and rates of single packets are no \
             finer than that.",
            source.resolution_ps / 1_000_000
        ));
    }
    hints
}
