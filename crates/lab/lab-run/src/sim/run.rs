// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a scenario once on the simulator.

use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::Result;
use metrics::analyse::CellAnalysis;
use metrics::curves::Curves;
use netsim::run::{Ran, run_cell};
use scenario::result::CellResult;
use scenario::{Cell, Scenario};
use serde::{Deserialize, Serialize};

use crate::finished::Finished;
use crate::measure_cell::{self, Sent};
use crate::progress::Progress;
use crate::remarks::{say, say_unmeasured};
use crate::results_dir::ResultsDir;
use crate::runs;
use crate::sim::isochronous;
use crate::sim::queue_drops;
use crate::sim::record_cell::{recorded, reports};
use crate::sim::repeat::{self, OneRun, Repeated};
use crate::sim::senders::Senders;
use crate::sim::support::{check, has_segments};
use crate::sim::transfers::{self, Outcome};
use crate::stored::{Id, Stored};

/// Returns the pieces of a scenario.
pub fn pieces(scenario: &Scenario) -> Result<Vec<Id>> {
    if !has_segments(scenario) {
        check(scenario)?;
    }
    Ok(repeat::ids(scenario))
}

/// Measures the piece with this number, unless the store has it.
pub fn fill(scenario: &Scenario, number: usize, stored: (&Stored, &Id)) -> Result<()> {
    if has_segments(scenario) {
        let work = |one: &OneRun<'_>| isochronous::run_cell_of(scenario, one);
        return repeat::fill(scenario, number, stored, work);
    }
    repeat::fill(scenario, number, stored, run_one)
}

/// Runs a scenario on the simulator, writes into `out`, and measures what was recorded. With a store,
/// what it has does not run, and what was recorded is not kept.
pub fn run(
    scenario: &Scenario,
    out: &Path,
    jobs: Option<NonZeroUsize>,
    progress: &dyn Progress,
    stored: Option<&Stored>,
) -> Result<Finished> {
    let how = (progress, stored);
    if has_segments(scenario) {
        return isochronous::run(scenario, out, jobs, how);
    }
    check(scenario)?;
    let mut all = Repeated::new(scenario, out, jobs, how, run_one)?;
    let runs = usize::try_from(scenario.runs.max(1))?;
    let mut notes: Vec<String> = vec![];
    let mut hops = 0;
    let (mut results, mut table, mut senders) = (vec![], vec![], vec![]);
    for cell in &scenario.cells {
        let mut outcomes = vec![];
        let mut first = None;
        for one in all.pieces.by_ref().take(runs) {
            hops += one.hops;
            notes.extend(one.notes);
            outcomes.push(one.outcomes);
            first = match (first, one.measured) {
                (Some((mut result, curves, records)), Some((again, ..))) => {
                    runs::add(&mut result, &again);
                    Some((result, curves, records))
                }
                (first, measured) => first.or(measured),
            };
        }
        let rows = transfers::rows(cell, &outcomes);
        if let Some((mut result, curves, records)) = first {
            transfers::judge(cell, &rows, &mut result);
            results.push((result, curves));
            senders.push(records);
        }
        table.extend(transfers::told(cell, rows, &outcomes));
    }
    notes.sort();
    notes.dedup();
    say(progress, &notes);
    say_unmeasured(progress, scenario);
    let mut stats = all.stats(hops);
    stats["not_modelled"] = notes.into();
    all.finish((results, table), Senders::plots(senders), &stats)
}

/// The result of one run of a cell.
#[derive(Serialize, Deserialize)]
struct One {
    /// The measurements; none of a further run of transfers.
    measured: Option<(CellResult, Curves, Senders)>,
    outcomes: Vec<Outcome>,
    notes: Vec<String>,
    hops: u64,
}

/// Runs a cell. If there is a folder `out`, writes the cell's folder in the same form as the
/// laboratory's guest; else what was recorded is gone once it was measured.
fn run_one(one: &OneRun<'_>) -> Result<One> {
    let cell = one.cell;
    // Of a further run only what it transferred is told, or else its metrics.
    let is_measured = one.is_first || !transfers::are_in(cell);
    let ran = run_cell(cell, one.seed, is_measured, &mut one.steps.cell())?;
    let (notes, hops) = (ran.notes.clone(), ran.counts.frames);
    let outcomes = transfers::outcomes(cell, &ran);
    let measured = match (one.is_first, is_measured) {
        (true, _) => Some(measure(cell, ran, one.out)?),
        (false, true) => Some(measure_again(cell, ran)?),
        (false, false) => None,
    };
    Ok(One {
        measured,
        outcomes,
        notes,
        hops,
    })
}

/// Measures a further run of a cell, of which no file is kept.
fn measure_again(cell: &Cell, ran: Ran) -> Result<(CellResult, Curves, Senders)> {
    let (_, analysis) = analyse(cell, ran, None)?;
    let result = CellResult {
        windows: analysis.windows,
        bounds: analysis.bounds,
        ..CellResult::default()
    };
    Ok((result, Curves::default(), Senders::default()))
}

/// Measures a cell, and writes its folder into `out`.
fn measure(
    cell: &Cell,
    ran: Ran,
    out: Option<&ResultsDir>,
) -> Result<(CellResult, Curves, Senders)> {
    let name = format!("cell-{}", cell.index);
    let dir = out.map(|out| out.folder(&name)).transpose()?;
    let folder = out.zip(dir.as_deref());
    let reports = reports(cell, &ran);
    let senders = Senders::keep(cell, &ran.recorder, folder)?;
    let (sent, analysis) = analyse(cell, ran, folder)?;
    let (mut result, curves) = match folder {
        Some(folder) => measure_cell::keep(cell, folder, &sent, 0, analysis)?,
        None => measure_cell::result(cell, name, analysis),
    };
    result.flow_reports = reports;
    Ok((result, curves, senders))
}

/// Measures the frames of a run, and writes them into the folder if there is one.
fn analyse(
    cell: &Cell,
    mut ran: Ran,
    folder: Option<(&ResultsDir, &Path)>,
) -> Result<(Vec<Sent>, CellAnalysis)> {
    let displaced = std::mem::take(&mut ran.recorder.displaced);
    let (sent, tcp) = recorded(cell, ran.recorder, folder)?;
    let mut analysis = measure_cell::analyse(cell, &sent, &tcp, (0, &[]))?;
    queue_drops::add(cell, &displaced, &mut analysis);
    Ok((sent, analysis))
}
