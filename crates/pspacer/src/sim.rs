// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer sim`: runs scenarios on the simulator.

use std::path::Path;

use anyhow::Result;
use lab_run::sim::merge::merge;
use lab_run::sim::run::run;
use lab_run::sim::sweep::{SweepSpec, Swept, sweep};

use crate::cli::{Run, Sim, SimMerge, SimSweep};
use crate::output::print;
use crate::progress::Bars;
use crate::scenario_run;

/// Runs a subcommand of `pspacer sim`. Returns `false` if a bound did not hold.
pub fn main(sim: &Sim) -> Result<bool> {
    match sim {
        Sim::Run(args) => run_and_show(args),
        Sim::Sweep(args) => sweep_and_show(args).map(|()| true),
        Sim::Merge(args) => merge_and_show(args).map(|()| true),
    }
}

fn run_and_show(args: &Run) -> Result<bool> {
    let scenario = args.scenario()?;
    let out = args.out(&format!("{}-sim", scenario.name));
    let finished = run(&scenario, &out, args.jobs, &Bars::new(), None)?;
    scenario_run::show(&finished, args.json)
}

fn sweep_and_show(args: &SimSweep) -> Result<()> {
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

fn merge_and_show(args: &SimMerge) -> Result<()> {
    let (rows, table) = merge(&args.folders, &args.out)?;
    print(&format!("{rows} rows of work: {}\n", table.display()))
}
