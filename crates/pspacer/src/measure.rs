// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer measure`: measures rates, gaps and burstiness in any capture.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use capture::filter::FlowFilter;
use clap::Args;
use metrics::survey::{Part, Series, Survey, survey};
use serde::Serialize;

use crate::headings::{FILTERS, OUTPUT};
use crate::output::{note, out};
use crate::terminal;
use crate::values::{rate, some_time, time};
use lab_run::capture_file::{Source, read};
use lab_run::results_dir::{ResultsDir, Writer};

/// Arguments of `pspacer measure`.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// A capture (pcap or pcapng, also gzip or zstd packed), whatever its name; "-" is standard
    /// input. Or a timeline of the laboratory (timeline.a, with flows.a beside it)
    pub file: PathBuf,
    /// Only these flows: tcp, udp, src, dst, host, sport, dport, port and
    /// their values, as in "udp dport 5001"; may be repeated
    #[arg(long, value_name = "FILTER", help_heading = FILTERS)]
    pub flow: Vec<FlowFilter>,
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

/// The JSON object that `--json` prints.
#[derive(Serialize)]
struct Measures<'a> {
    format: &'static str,
    file: String,
    frames: usize,
    resolution_ps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<String>,
    window: &'a scenario::result::WindowResult,
}

/// Measures the file and prints what it found.
///
/// # Errors
/// When the file cannot be read at all, holds no selected flow, or an output cannot be written. A
/// file that is damaged further on is measured up to the damage.
pub fn main(args: &MeasureArgs) -> Result<()> {
    let source = read(&args.file).with_context(|| args.file.display().to_string())?;
    for problem in source
        .notes
        .iter()
        .chain(&source.damage.as_ref().map(ToString::to_string))
    {
        note(&format!("pspacer: {}: {problem}", args.file.display()));
    }
    let name = name(&args.file);
    let found = measure(args, &source, &name)?;
    let measures = Measures {
        format: "pspacer-measures-1",
        file: name.clone(),
        frames: source.records.len(),
        resolution_ps: source.resolution_ps,
        damage: source.damage.as_ref().map(ToString::to_string),
        window: &found.window,
    };
    let mut json = serde_json::to_string_pretty(&measures)?;
    json.push('\n');
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

fn measure(args: &MeasureArgs, source: &Source, name: &str) -> Result<Survey> {
    ensure!(!source.records.is_empty(), "{name} holds no packets");
    let series = Series {
        name,
        records: &source.records,
        flows: &source.flows,
        rate_bps: args.line.unwrap_or(0),
        mtu: args.mtu.unwrap_or(0),
    };
    let ps = |ns: u64| ns.saturating_mul(1000);
    let part = Part {
        from_ps: ps(args.from.unwrap_or(0)),
        to_ps: args.to.map(ps),
        interval_ps: args.interval.map(ps),
    };
    let wanted = |key: &_| args.flow.is_empty() || args.flow.iter().any(|f| f.matches(key));
    let found = survey(&series, part, wanted)
        .context("nothing lies between --from and --to, or --interval is far too short")?;
    if found.window.flows.is_empty() {
        let some: Vec<_> = source
            .flows
            .iter()
            .take(5)
            .filter_map(|(index, _)| source.flows.name(index))
            .collect();
        bail!(
            "no flow matches --flow; the first of {}: {}",
            source.flows.len(),
            some.join("; ")
        );
    }
    Ok(found)
}

/// Returns hints that a reader of the results should know.
fn hints(args: &MeasureArgs, source: &Source) -> Vec<String> {
    let mut hints = Vec::new();
    if args.line.is_none() {
        hints.push("With --line RATE gaps are shown too, in byte times of the line.".to_owned());
    }
    if source.resolution_ps >= 1_000_000 {
        hints.push(format!(
            "Time stamps are {} µs apart at best: burstiness and rates of single packets are no \
             finer than that.",
            source.resolution_ps / 1_000_000
        ));
    }
    hints
}

fn write_report(
    folder: &Path,
    name: &str,
    source: &Source,
    found: &Survey,
    json: &str,
) -> Result<()> {
    let folder = ResultsDir::open(folder, Writer::Measure)?;
    let write = |name: &str, bytes: &[u8]| folder.write(&folder.path().join(name), bytes);
    let resolution = match source.resolution_ps {
        ps if ps % 1_000_000 == 0 => format!("{} µs", ps / 1_000_000),
        ps if ps % 1_000 == 0 => format!("{} ns", ps / 1_000),
        ps => format!("{ps} ps"),
    };
    let facts = [
        ("Frames", units::display::count(source.records.len() as u64)),
        ("Flows", units::display::count(source.flows.len() as u64)),
        ("Time stamps", format!("to {resolution}")),
        (
            "Read",
            source
                .damage
                .as_ref()
                .map_or("to its end".to_owned(), ToString::to_string),
        ),
    ];
    let page = report::survey_html(name, &facts, found);
    write("report.html", page.as_bytes())?;
    write("measures.json", json.as_bytes())?;
    let mut plots = report::cell_plots(&found.curves).into_iter();
    plots.try_for_each(|plot| write(&plot.name, plot.svg.as_bytes()))
}
