// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer sim`: runs scenarios on the simulator.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Subcommand};
use lab_run::sim::merge::merge;
use lab_run::sim::run::run;
use lab_run::sim::shard::{Shard, seeds};
use lab_run::sim::sweep::{SweepSpec, Swept, sweep};

use crate::headings::{OUTPUT, RUN};
use crate::output::print;
use crate::progress::Bars;
use crate::scenario_run::{self, Chosen, RunArgs};

/// `pspacer sim`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario: a file, a folder under experiments/, or its name
    Run(RunArgs),
    /// Run a scenario's cells with many seeds, into one table; run again, it goes on where it was
    Sweep(SweepArgs),
    /// Join the shards of a sweep into one table
    Merge(MergeArgs),
}

/// `pspacer sim sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// What
    #[command(flatten)]
    pub chosen: Chosen,
    /// Seeds, such as 1..100 or 1,2,5 [default: the scenario's]
    #[arg(long, value_name = "SEEDS", value_parser = parse_seeds, help_heading = RUN)]
    pub seeds: Option<Seeds>,
    /// Folder of the table; that of the same sweep is gone on with
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    /// Only part I of N, I from 0: for the array jobs of a cluster
    #[arg(long, value_name = "I/N", help_heading = RUN)]
    pub shard: Option<Shard>,
    /// Cells side by side [default: one for each core]
    #[arg(long, value_name = "N", help_heading = RUN)]
    pub jobs: Option<NonZeroUsize>,
}

/// Seeds of a sweep, in order.
#[derive(Clone, Debug)]
pub struct Seeds(pub Vec<u64>);

fn parse_seeds(text: &str) -> Result<Seeds, String> {
    seeds(text).map(Seeds)
}

/// `pspacer sim merge`.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// The folders of all shards
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Folder of the joined table
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub out: PathBuf,
}

/// Runs a subcommand of `pspacer sim`. Returns `false` if a bound did not hold.
pub fn main(command: &Command) -> Result<bool> {
    match command {
        Command::Run(args) => run_and_show(args),
        Command::Sweep(args) => sweep_and_show(args).map(|()| true),
        Command::Merge(args) => merge_and_show(args).map(|()| true),
    }
}

fn run_and_show(args: &RunArgs) -> Result<bool> {
    let scenario = args.scenario()?;
    let out = args.out(&format!("{}-sim", scenario.name));
    let finished = run(&scenario, &out, args.jobs, &Bars::new(), None)?;
    scenario_run::show(&finished, args.json)
}

fn sweep_and_show(args: &SweepArgs) -> Result<()> {
    let (file, scenario) = args.chosen.read()?;
    let seeds = args.seeds.as_ref();
    let named = || Path::new("out").join(format!("{}-sweep", scenario.name));
    let out = args.out.clone().unwrap_or_else(named);
    let spec = SweepSpec {
        scenario: &scenario,
        file: &file,
        seeds: seeds.map_or_else(|| vec![scenario.seed], |seeds| seeds.0.clone()),
        set: args.chosen.set.iter().map(ToString::to_string).collect(),
        full: args.chosen.form.full,
        shard: args.shard.unwrap_or_default(),
        out: &out,
        jobs: args.jobs,
    };
    let Swept { done, all, table } = sweep(spec, &Bars::new())?;
    print(&format!("{done} of {all} done: {}\n", table.display()))
}

fn merge_and_show(args: &MergeArgs) -> Result<()> {
    let (rows, table) = merge(&args.folders, &args.out)?;
    print(&format!("{rows} rows of work: {}\n", table.display()))
}
