// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the flows of a capture, and writes what was found: JSON, and a folder with a page and
//! plots.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use capture::selector::Selector;
use metrics::survey::{Part, Series, Survey, survey};
use serde::Serialize;

use crate::capture_file::Source;
use crate::results_dir::{ResultsDir, Writer};

/// What is measured of a capture.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// The flows; empty: all.
    pub flows: &'a [Selector],
    /// Line rate, of which gaps are given in byte times; 0 if it is not known.
    pub line_bps: u64,
    /// The unit of burstiness; 0: a flow's largest packet.
    pub mtu_bytes: u32,
    /// Begin, after the first packet.
    pub from_ns: u64,
    /// End, after the first packet.
    pub to_ns: Option<u64>,
    /// Interval of the curves.
    pub interval_ns: Option<u64>,
}

/// The JSON object of `pspacer measure --json`.
#[derive(Serialize)]
struct Measures<'a> {
    format: &'static str,
    file: &'a str,
    frames: usize,
    resolution_ps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<String>,
    window: &'a scenario::result::WindowResult,
}

/// Measures the wanted flows; `name` is the file's name as people see it.
///
/// # Errors
/// When the file holds no packets, or no wanted flow, or nothing lies in the wanted part.
pub fn measure(source: &Source, name: &str, wanted: &Wanted<'_>) -> Result<Survey> {
    ensure!(!source.records.is_empty(), "{name} holds no packets");
    let series = Series {
        name,
        records: &source.records,
        flows: &source.flows,
        rate_bps: wanted.line_bps,
        mtu: wanted.mtu_bytes,
    };
    let ps = |ns: u64| ns.saturating_mul(1000);
    let part = Part {
        from_ps: ps(wanted.from_ns),
        to_ps: wanted.to_ns.map(ps),
        interval_ps: wanted.interval_ns.map(ps),
    };
    let is_wanted =
        |key: &_| wanted.flows.is_empty() || wanted.flows.iter().any(|f| f.matches(key));
    let found = survey(&series, part, is_wanted)
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

/// Returns what was found as one JSON object, with a line end.
pub fn json(source: &Source, name: &str, found: &Survey) -> Result<String> {
    let measures = Measures {
        format: "pspacer-measures-1",
        file: name,
        frames: source.records.len(),
        resolution_ps: source.resolution_ps,
        damage: source.damage.as_ref().map(ToString::to_string),
        window: &found.window,
    };
    Ok(serde_json::to_string_pretty(&measures)? + "\n")
}

/// Writes report.html, measures.json with this text, and the plots into a folder.
///
/// # Errors
/// When the folder holds files that `pspacer measure` has not written, or a file cannot be written.
pub fn write_report(
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
        ("Timestamps", format!("to {resolution}")),
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
