// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a scenario once on the simulator.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use metrics::curves::Curves;
use netsim::run::{Ran, run_cell};
use scenario::result::{CellResult, Engine};
use scenario::{Cell, Scenario};
use serde_json::json;
use vmlab::Event;

use crate::finished::Finished;
use crate::measure_cell;
use crate::progress::{Progress, Steps};
use crate::results_dir::{ResultsDir, Writer};
use crate::sim::isochronous;
use crate::sim::record_cell::{recorded, reports};
use crate::sim::senders::Senders;
use crate::sim::support::check;
use crate::sim::transfers::{self, Outcome};
use crate::workers::side_by_side;

/// Runs a scenario on the simulator, writes into `out`, and measures what was recorded.
pub fn run(
    scenario: &Scenario,
    out: &Path,
    jobs: Option<NonZeroUsize>,
    progress: &dyn Progress,
) -> Result<Finished> {
    if isochronous::is_meant(scenario) {
        return isochronous::run(scenario, out, jobs, progress);
    }
    check(scenario)?;
    let room = ResultsDir::open(out, Writer::Run)?;
    let begin = Instant::now();
    // The scenario has at most 1000 runs.
    let runs = usize::try_from(scenario.runs).unwrap_or(1).max(1);
    let count = scenario.cells.len() * runs;
    let steps = Steps::of_cells(progress, "simulating", count);
    let pieces = side_by_side(count, jobs, |index| {
        let (cell, run) = (&scenario.cells[index / runs], index % runs);
        let seed = scenario.seed.wrapping_add(run as u64);
        // Only the first run of a cell writes files.
        let out = (run == 0).then_some(&room);
        run_one(cell, seed, out, &steps)
            .with_context(|| format!("cell {} of {}, seed {seed}", cell.index, scenario.name))
    });
    progress.clear();
    let mut pieces = pieces?.into_iter();
    let wall_s = begin.elapsed().as_secs_f64();
    let mut notes: Vec<String> = vec![];
    let (mut hops, mut simulated_s) = (0, 0.0);
    let (mut results, mut table, mut senders) = (vec![], vec![], vec![]);
    for cell in &scenario.cells {
        let mut outcomes = vec![];
        let mut first = None;
        for one in pieces.by_ref().take(runs) {
            hops += one.hops;
            simulated_s += (cell.duration_ns + cell.settle_ns) as f64 / 1e9;
            notes.extend(one.notes);
            outcomes.push(one.outcomes);
            first = first.or(one.measured);
        }
        let rows = transfers::rows(cell, &outcomes);
        if let Some((mut result, curves, records)) = first {
            transfers::judge(cell, &rows, &mut result);
            results.push((result, curves));
            senders.push(records);
        }
        table.extend(rows);
    }
    notes.sort();
    notes.dedup();
    for note in &notes {
        let text = &format!("pspacer: {note}");
        progress.event(&Event::Note { text });
    }
    let stats = json!({
        "wall_s": wall_s,
        "simulated_s": simulated_s,
        "speed": simulated_s / wall_s,
        "packet_hops": hops,
        "packet_hops_per_s": (hops as f64 / wall_s).round(),
        "not_modelled": notes,
    });
    let engine = (Engine::Netsim, String::new());
    let mut finished = Finished::write(scenario, engine, (results, table), &room, &stats)?;
    finished.plots = Senders::plots(senders);
    for plot in &finished.plots {
        room.write(&out.join(&plot.name), plot.svg.as_bytes())?;
    }
    Ok(finished)
}

/// The result of one run of a cell.
struct One {
    /// The measurements, if the run's files were written.
    measured: Option<(CellResult, Curves, Senders)>,
    outcomes: Vec<Outcome>,
    notes: Vec<String>,
    hops: u64,
}

/// Runs a cell. If there is a folder `out`, writes the cell's folder in the same form as the
/// laboratory's guest.
fn run_one(cell: &Cell, seed: u64, out: Option<&ResultsDir>, steps: &Steps<'_>) -> Result<One> {
    let ran = run_cell(cell, seed, out.is_some(), &mut steps.cell())?;
    let (notes, hops) = (ran.notes.clone(), ran.counts.frames);
    let outcomes = transfers::outcomes(cell, &ran);
    let measured = out.map(|out| measure(cell, ran, out)).transpose()?;
    Ok(One {
        measured,
        outcomes,
        notes,
        hops,
    })
}

/// Writes a cell's folder, and measures it.
fn measure(cell: &Cell, ran: Ran, out: &ResultsDir) -> Result<(CellResult, Curves, Senders)> {
    let dir = out.folder(&format!("cell-{}", cell.index))?;
    let reports = reports(cell, &ran);
    let senders = Senders::keep(cell, &ran.recorder, (out, &dir))?;
    let (sent, tcp) = recorded(cell, ran.recorder, Some((out, &dir)))?;
    let analysis = measure_cell::analyse(cell, &sent, &tcp, (0, &[]))?;
    let (mut result, curves) = measure_cell::keep(cell, (out, &dir), &sent, 0, analysis)?;
    result.flow_reports = reports;
    Ok((result, curves, senders))
}
