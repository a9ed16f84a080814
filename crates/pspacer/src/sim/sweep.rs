// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer sim sweep`: every cell with every seed, on all cores; what was
//! done before an interruption is not done again.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use netsim::run::run_cell;
use scenario::Scenario;

use super::shard::{self, Part, Sweep};
use super::table::{self, Entry, Journal, rows, write_table};
use super::{progress_bar, recorded, reports, side_by_side};
use crate::cells;
use crate::cli::SimSweep;
use crate::output::print;

/// Runs what of the sweep is not done yet.
pub fn main(args: &SimSweep) -> Result<()> {
    let (file, scenario) = args.chosen.read()?;
    let seeds = args.seeds.as_ref();
    let seeds = seeds.map_or_else(|| vec![scenario.seed], |seeds| seeds.0.clone());
    let part = Part {
        sweep: Sweep {
            set: args.chosen.set.iter().map(ToString::to_string).collect(),
            full: args.chosen.form.full,
            ..Sweep::new(&scenario, &file, seeds)?
        },
        shard: args.shard.unwrap_or_default(),
    };
    let named = || Path::new("out").join(format!("{}-sweep", scenario.name));
    let out = args.out.clone().unwrap_or_else(named);
    ensure!(
        !super::isochronous::is_meant(&scenario),
        "{}: a scenario with segments has `runs` in place of a sweep: pspacer sim run runs it",
        scenario.name
    );
    super::check(&scenario)?;
    table::check(&scenario)?;
    make_room(&out, &part)?;
    let done = run(&scenario, &part, &out, args)?;
    let (all, table) = (part.numbers().count(), out.join("table.csv"));
    print(&format!("{done} of {all} done: {}\n", table.display()))
}

/// The folder is new, empty, or this very sweep's.
fn make_room(out: &Path, part: &Part) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    if out.join(shard::FILE).exists() {
        let there = Part::read(out)?;
        if let Some(difference) = part.sweep.differs_from(&there.sweep) {
            bail!(
                "--out {}: the folder has another sweep: {difference}; expected a new folder, or \
                 the same sweep to go on with",
                out.display()
            );
        }
        ensure!(
            there.shard == part.shard,
            "--out {}: the folder has shard {}/{} of this sweep; expected a folder for each",
            out.display(),
            there.shard.index,
            there.shard.count
        );
        return Ok(());
    }
    let is_empty = fs::read_dir(out)
        .with_context(|| format!("cannot read {}", out.display()))?
        .next()
        .is_none();
    ensure!(
        is_empty,
        "--out {}: the folder has files that are no sweep's; expected a new or empty folder",
        out.display()
    );
    part.write(out)
}

fn run(scenario: &Scenario, part: &Part, out: &Path, args: &SimSweep) -> Result<usize> {
    let _lock = shard::lock(out)?;
    let journal = Journal::open(out)?;
    let all: Vec<usize> = part.numbers().collect();
    let is_known = |number: &usize| journal.entries.contains_key(number);
    let missing: Vec<usize> = all.iter().copied().filter(|n| !is_known(n)).collect();
    let bar = progress_bar(all.len() as u64, "sweeping");
    bar.set_position((all.len() - missing.len()) as u64);
    let journal = Mutex::new(journal);
    let outcome = side_by_side(missing.len(), args.jobs, |index| {
        let entry = one(scenario, &part.sweep, missing[index])?;
        bar.inc(1);
        let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal
            .add(entry)
            .with_context(|| format!("cannot write into {}", out.display()))
    });
    bar.finish_and_clear();
    outcome?;
    let journal = journal.into_inner().unwrap_or_else(PoisonError::into_inner);
    write_table(out, &journal.entries)?;
    Ok(journal.entries.len())
}

/// One cell with one seed.
fn one(scenario: &Scenario, sweep: &Sweep, number: usize) -> Result<Entry> {
    let cell = &scenario.cells[number % sweep.cells];
    let seed = sweep.seeds[number / sweep.cells];
    let ran = run_cell(cell, seed, false, &mut |_| {})
        .with_context(|| format!("cell {} of {}, seed {seed}", cell.index, scenario.name))?;
    let reports = reports(cell, &ran);
    let (sent, tcp) = recorded(cell, ran.recorder, None)?;
    let analysis = cells::analyse(cell, &sent, &tcp, (0, &[]))?;
    Ok(Entry {
        number,
        seed,
        params: cell.params.clone(),
        rows: rows(&analysis.windows, &reports),
    })
}
