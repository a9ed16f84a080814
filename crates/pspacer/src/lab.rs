// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer lab`: from a scenario to a folder of results.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use scenario::result::Engine;
use scenario::{Kernel, Options, Scenario};
use vmlab::{Event, Progress, RunSpec};

use crate::bars::Bars;
use crate::catalogue;
use crate::cells;
use crate::cli::{Lab, LabRun};
use crate::conformance;
use crate::output::print;
use crate::results_dir::{ResultsDir, Writer};
use crate::runs::Finished;
use crate::sim;
use crate::terminal;
use crate::truth;

/// Runs a subcommand of `pspacer lab`; `false` if a bound did not hold.
pub fn main(lab: &Lab) -> Result<bool> {
    match lab {
        Lab::List { json } => list(*json),
        Lab::Run(args) => run_and_show(args),
        Lab::Lint => lint(),
        Lab::Tdc(args) => conformance::tdc(args),
        Lab::Fuzz(args) => conformance::fuzz(args),
    }
}

fn list(json: bool) -> Result<bool> {
    let mut all = vec![];
    for folder in catalogue::folders()? {
        for file in catalogue::files_in(&folder)? {
            let s = catalogue::read(&file, &Options::default())?;
            all.push((file, s));
        }
    }
    if json {
        let rows: Vec<_> = all
            .iter()
            .map(|(file, s)| {
                serde_json::json!({
                    "name": s.name, "title": s.title, "source": s.source,
                    "cells": s.cells.len(), "file": file,
                })
            })
            .collect();
        print(&(serde_json::to_string_pretty(&rows)? + "\n"))?;
        return Ok(true);
    }
    let mut text = String::new();
    let width = all.iter().map(|(_, s)| s.name.len()).max().unwrap_or(0);
    for (_, s) in &all {
        let (name, cells, title, source) = (&s.name, s.cells.len(), &s.title, &s.source);
        let _ = writeln!(text, "{name:width$}  {cells:>4} cells  {title}");
        let _ = writeln!(text, "{:width$}              {source}", "");
    }
    if !terminal::is_quiet() {
        text += "\npspacer lab run NAME runs one of them.\n";
    }
    print(&text)?;
    Ok(true)
}

fn run_and_show(args: &LabRun) -> Result<bool> {
    let mut scenario = args.run.scenario()?;
    if let Some(kernel) = &args.kernel {
        scenario.kernel = *kernel;
    }
    let mut lab = vmlab::Lab::find()?;
    lab.refresh = args.refresh;
    let out = args.run.out(&scenario.name);
    run(&lab, &scenario, &out, args.run.jobs)?.show(args.run.json)
}

/// Runs a scenario into `out` and measures it.
pub fn run(
    lab: &vmlab::Lab,
    scenario: &Scenario,
    out: &Path,
    jobs: Option<NonZeroUsize>,
) -> Result<Finished> {
    if let Some(line) = sim::own_qdisc(scenario) {
        bail!(
            "{}: tc: cqf is a qdisc of the simulator's own, which no kernel has: pspacer sim run \
             runs it",
            line.place
        );
    }
    ensure!(
        !sim::is_needed(scenario),
        "{}: it has segments, several runs, or flows that name a stack, how much they send or when they are silent: pspacer sim run runs it",
        scenario.name
    );
    truth::check(scenario)?;
    let room = ResultsDir::open(out, Writer::Run)?;
    let bars = Bars::new();
    let spec = RunSpec {
        cells: &scenario.cells,
        per_boot: scenario.per_boot,
        kernel: scenario.kernel,
        seed: scenario.seed,
        out_dir: out,
        jobs,
        timeout: None,
    };
    let noted = |event: &Event<'_>| match event {
        // A file that is not in the marker stays; this run fails at its next one.
        Event::Output { path, is_folder } => drop(room.announce(path, *is_folder)),
        other => bars.event(other),
    };
    let ran = vmlab::run(lab, &spec, &noted);
    bars.clear();
    let ran = ran?;
    let mut cells = vec![];
    for (cell, output) in scenario.cells.iter().zip(&ran.cells) {
        let (mut measured, drawn) =
            cells::measure(cell, (&room, &output.dir), output.zero_ns, &output.busy_ns)?;
        measured.tc.clone_from(&output.tc);
        measured.flow_reports.clone_from(&output.flow_reports);
        cells.push((measured, drawn));
    }
    let engine = (Engine::Vmlab, ran.kernel_release);
    Finished::write(scenario, engine, (cells, vec![]), &room, &ran.stats)
}

fn lint() -> Result<bool> {
    let bars = Bars::new();
    let said = vmlab::Lab::find().and_then(|lab| lab.lint(Kernel::V6_1, &bars));
    bars.clear();
    let said = said?;
    print(&said)?;
    ensure!(said.is_empty(), "checkpatch or sparse has something to say");
    print("checkpatch and sparse: nothing to say\n")?;
    Ok(true)
}
