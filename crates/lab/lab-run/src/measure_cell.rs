// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures one cell: from what the guest recorded in the cell's folder, or from what the simulator
//! recorded, to the cell's part of the result.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, Result};
use capture::export::{ExportedDirection, arrivals, write_pcapng};
use capture::flows::FlowTable;
use capture::record::Record;
use capture::timeline::TimelineReader;
use metrics::analyse::{AnalyseError, CellAnalysis, Recorded, Timeline, analyse_cell};
use metrics::curves::Curves;
use metrics::waits::timestamps_ps;
use scenario::result::CellResult;
use scenario::{Cell, Direction, End};
use sender_log::sample::TcpSample;

use crate::ground_truth::judge::judge;
use crate::results_dir::ResultsDir;

/// Number of intervals of the report's curves: a point for every other pixel.
const INTERVALS: u64 = 400;

/// The frames that one end of a cable sent.
pub struct Sent {
    /// The cable and its end.
    pub direction: Direction,
    /// Name of the direction, `CABLE.END`.
    pub name: String,
    /// The frames, in order of departure.
    pub records: Vec<Record>,
    /// The flows that the frames belong to.
    pub flows: FlowTable,
    /// The first bytes of each data frame.
    pub snap: Vec<u8>,
    /// When the sender handed over each frame, ps, where that is known.
    pub timestamps_ps: Vec<u64>,
}

/// Measures the cell whose files are in `dir`; writes `wire.pcapng` and `curves.json` beside them.
/// `zero_ns` is t = 0 on the guest's clock; `busy_ns` is the time that its CPU was busy in each
/// window.
pub fn measure(
    cell: &Cell,
    (out, dir): (&ResultsDir, &Path),
    zero_ns: u64,
    busy_ns: &[u64],
) -> Result<(CellResult, Curves)> {
    let mut sent = vec![];
    for (index, cable) in cell.cables.iter().enumerate() {
        for end in End::BOTH {
            let name = format!("{}.{end}", cable.name);
            let direction = Direction { cable: index, end };
            sent.push(read(dir, name, direction, cable.snap_bytes)?);
        }
    }
    let tcp = tcp_samples(cell, dir)?;
    let zero_ps = zero_ns.saturating_mul(1000);
    let analysis = analyse(cell, &sent, &tcp, (zero_ps, busy_ns))
        .with_context(|| format!("cannot analyse {}", dir.display()))?;
    keep(cell, (out, dir), &sent, zero_ps, analysis)
}

/// Measures the frames that were sent. `zero_ps` is t = 0 on their clock.
pub fn analyse(
    cell: &Cell,
    sent: &[Sent],
    tcp: &[Vec<TcpSample>],
    (zero_ps, busy_ns): (u64, &[u64]),
) -> Result<CellAnalysis, AnalyseError> {
    let timelines: Vec<_> = sent
        .iter()
        .map(|s| Timeline {
            direction: s.direction,
            records: &s.records,
            flows: &s.flows,
            timestamps_ps: &s.timestamps_ps,
        })
        .collect();
    let recorded = Recorded {
        zero_ps,
        timelines: &timelines,
        busy_ns,
        tcp,
    };
    analyse_cell(cell, &recorded, INTERVALS)
}

/// Writes `wire.pcapng` and `curves.json` into a cell's folder, and returns the cell's part of the
/// result. `zero_ps` is t = 0 on the clock of the frames.
pub fn keep(
    cell: &Cell,
    (out, dir): (&ResultsDir, &Path),
    sent: &[Sent],
    zero_ps: u64,
    mut analysis: CellAnalysis,
) -> Result<(CellResult, Curves)> {
    export(cell, (out, dir), sent)?;
    captures(cell, (out, dir), sent)?;
    for (flow, waits) in cell.flows.iter().zip(&mut analysis.waits) {
        if !waits.is_empty() {
            let path = dir.join(format!("flow-{}.delays.csv", flow.name));
            out.write(&path, delays_table(waits.counts_ns()).as_bytes())?;
        }
    }
    let curves = serde_json::to_string(&analysis.curves)?;
    out.write(&dir.join("curves.json"), curves.as_bytes())?;

    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let (mut result, curves) = result(cell, name.into_owned(), analysis);
    result.stops = judge(cell, dir, zero_ps / 1000)?;
    Ok((result, curves))
}

/// Returns a cell's part of the result, and its curves. `dir` is the name of its folder.
pub fn result(cell: &Cell, dir: String, analysis: CellAnalysis) -> (CellResult, Curves) {
    let result = CellResult {
        params: cell.params.clone(),
        dir,
        windows: analysis.windows,
        bounds: analysis.bounds,
        ..CellResult::default()
    };
    (result, analysis.curves)
}

fn read(dir: &Path, name: String, direction: Direction, snap_bytes: u32) -> Result<Sent> {
    let path = dir.join(format!("timeline.{name}"));
    let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let records = TimelineReader::new(file)
        .collect::<Result<Vec<_>, _>>()
        .with_context(|| format!("{} is damaged", path.display()))?;
    let path = dir.join(format!("flows.{name}"));
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let flows =
        FlowTable::parse(&text).with_context(|| format!("{} is damaged", path.display()))?;
    let path = dir.join(format!("snap.{name}"));
    let snap = match snap_bytes {
        0 => vec![],
        _ => fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?,
    };
    Ok(Sent {
        direction,
        name,
        records,
        flows,
        timestamps_ps: timestamps_ps(&snap, snap_bytes as usize),
        snap,
    })
}

/// Returns the samples of each flow's sender state over time; empty for flows that were not
/// sampled.
fn tcp_samples(cell: &Cell, dir: &Path) -> Result<Vec<Vec<TcpSample>>> {
    let of = |name: &str| {
        let path = dir.join(format!("flow-{name}.tcp"));
        if !path.exists() {
            return Ok(vec![]);
        }
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        sender_log::sample::parse(&text).with_context(|| format!("{} is damaged", path.display()))
    };
    cell.flows.iter().map(|flow| of(&flow.name)).collect()
}

/// Writes the scenario's captures. A capture shows what leaves its end at the time of departure,
/// and what arrives there at the time of arrival.
fn captures(cell: &Cell, (out, dir): (&ResultsDir, &Path), sent: &[Sent]) -> Result<()> {
    for capture in &cell.captures {
        let cable = &cell.cables[capture.at.cable];
        let of = |end: End| {
            let s = &sent[2 * capture.at.cable + end.index()];
            ExportedDirection {
                name: &s.name,
                rate_bps: cable.rate_bps,
                records: &s.records,
                snap: &s.snap,
                snap_bytes: cable.snap_bytes as usize,
            }
        };
        let (leaving, coming) = (of(capture.at.end), of(capture.at.end.other()));
        let (records, snap) = arrivals(&coming);
        let coming = ExportedDirection {
            records: &records,
            snap: &snap,
            ..coming
        };
        let path = dir.join(format!("{}.pcapng", capture.name));
        // Of two frames with the same time, the arriving one comes first, because it may cause the
        // other.
        write_capture(out, &path, &[coming, leaving])?;
    }
    Ok(())
}

fn write_capture(
    out: &ResultsDir,
    path: &Path,
    directions: &[ExportedDirection<'_>],
) -> Result<()> {
    let file = out.create(path)?;
    write_pcapng(BufWriter::new(file), directions)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Writes `wire.pcapng`, with every cable of whose frames the first bytes were kept.
fn export(cell: &Cell, (out, dir): (&ResultsDir, &Path), sent: &[Sent]) -> Result<()> {
    let directions: Vec<_> = sent
        .iter()
        .map(|s| (s, &cell.cables[s.direction.cable]))
        .filter(|(_, cable)| cable.snap_bytes > 0)
        .map(|(s, cable)| ExportedDirection {
            name: &s.name,
            rate_bps: cable.rate_bps,
            records: &s.records,
            snap: &s.snap,
            snap_bytes: cable.snap_bytes as usize,
        })
        .collect();
    if directions.is_empty() {
        return Ok(());
    }
    write_capture(out, &dir.join("wire.pcapng"), &directions)
}

/// Returns a table of delays in ns and the number of packets that had each, in the form that
/// `pspacer predict` reads.
pub fn delays_table(delays: impl IntoIterator<Item = (u64, u64)>) -> String {
    let mut text = "delay_ns,count\n".to_owned();
    for (delay_ns, count) in delays {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{delay_ns},{count}");
    }
    text
}

/// Writes a file; an error names the file.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
