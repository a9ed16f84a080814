// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sweeps a scenario: every cell with every seed, on all cores. A sweep that was interrupted
//! continues where it was.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use netsim::run::run_cell;
use scenario::Scenario;

use crate::measure_cell;
use crate::progress::{Progress, Steps};
use crate::sim::queue_drops;
use crate::sim::record_cell::{recorded, reports};
use crate::sim::shard::{self, Part, Shard, Sweep};
use crate::sim::support;
use crate::sim::sweep_table::{self, Entry, Journal, rows, write_table};
use crate::workers::side_by_side;

/// Describes what is swept, and how.
pub struct SweepSpec<'a> {
    /// The scenario whose cells are run.
    pub scenario: &'a Scenario,
    pub file: &'a Path,
    /// The seeds, in order.
    pub seeds: Vec<u64>,
    /// Changes of the scenario, as `KEY=VALUE`.
    pub set: Vec<String>,
    /// Whether the full form is run.
    pub full: bool,
    /// The part of the work that is done.
    pub shard: Shard,
    /// Folder of the table.
    pub out: &'a Path,
    /// Number of cells that run at the same time; one for each core by default.
    pub jobs: Option<NonZeroUsize>,
}

/// The progress of a sweep.
pub struct Swept {
    /// Pieces of work that are done.
    pub done: usize,
    /// All pieces of work of this shard.
    pub all: usize,
    /// Path of the table of the results.
    pub table: PathBuf,
}

/// Runs the pieces of work that are not done yet.
pub fn sweep(spec: SweepSpec<'_>, progress: &dyn Progress) -> Result<Swept> {
    let SweepSpec { scenario, out, .. } = spec;
    let part = Part {
        sweep: Sweep {
            set: spec.set,
            full: spec.full,
            ..Sweep::new(scenario, spec.file, spec.seeds)?
        },
        shard: spec.shard,
    };
    ensure!(
        !support::has_segments(scenario),
        "{}: a scenario with segments has `runs` in place of a sweep: pspacer sim run runs it",
        scenario.name
    );
    support::check(scenario)?;
    sweep_table::check(scenario)?;
    if !part.check_folder(out)? {
        part.write(out)?;
    }
    let done = run(scenario, &part, (out, spec.jobs), progress)?;
    Ok(Swept {
        done,
        all: part.numbers().count(),
        table: out.join("table.csv"),
    })
}

fn run(
    scenario: &Scenario,
    part: &Part,
    (out, jobs): (&Path, Option<NonZeroUsize>),
    progress: &dyn Progress,
) -> Result<usize> {
    let _lock = shard::lock(out)?;
    let journal = Journal::open(out)?;
    let all: Vec<usize> = part.numbers().collect();
    let is_known = |number: &usize| journal.entries.contains_key(number);
    let missing: Vec<usize> = all.iter().copied().filter(|n| !is_known(n)).collect();
    let known = (all.len() - missing.len()) as u64;
    let steps = Steps::new(progress, "sweeping", known, all.len() as u64);
    let journal = Mutex::new(journal);
    let outcome = side_by_side(missing.len(), jobs, |index| {
        let entry = one(scenario, &part.sweep, missing[index])?;
        steps.add(1);
        let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal
            .add(entry)
            .with_context(|| format!("cannot write into {}", out.display()))
    });
    progress.clear();
    outcome?;
    let journal = journal.into_inner().unwrap_or_else(PoisonError::into_inner);
    write_table(out, &journal.entries)?;
    Ok(journal.entries.len())
}

/// Runs one cell with one seed.
fn one(scenario: &Scenario, sweep: &Sweep, number: usize) -> Result<Entry> {
    let cell = &scenario.cells[number % sweep.cells];
    let seed = sweep.seeds[number / sweep.cells];
    let mut ran = run_cell(cell, seed, false, &mut |_| {})
        .with_context(|| format!("cell {} of {}, seed {seed}", cell.index, scenario.name))?;
    let reports = reports(cell, &ran);
    let displaced = std::mem::take(&mut ran.recorder.displaced);
    let (sent, tcp) = recorded(cell, ran.recorder, None)?;
    let mut analysis = measure_cell::analyse(cell, &sent, &tcp, (0, &[]))?;
    queue_drops::add(cell, &displaced, &mut analysis);
    Ok(Entry {
        number,
        seed,
        params: cell.params.clone(),
        rows: rows(&analysis.windows, &reports),
    })
}
