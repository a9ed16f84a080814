// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer lab`: from a scenario to a folder of results.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use scenario::result::{Engine, FORMAT, RunResult};
use scenario::{Kernel, Options, Scenario};
use trace::analyse::Curves;
use vmlab::RunSpec;

use crate::bars::Bars;
use crate::catalogue;
use crate::cells::{self, write};
use crate::cli::{Form, Lab, LabRun};
use crate::conformance;
use crate::sim;
use crate::terminal;

/// What every folder of results has, and no other folder should.
const RESULT: &str = "result.json";

/// A finished run.
pub struct Finished {
    /// Where its files are.
    pub out: PathBuf,
    /// What was found.
    pub result: RunResult,
    /// For the charts, by cell.
    pub curves: Vec<Curves>,
}

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
        println!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(true);
    }
    let width = all.iter().map(|(_, s)| s.name.len()).max().unwrap_or(0);
    for (_, s) in &all {
        println!("{:width$}  {:>4} cells  {}", s.name, s.cells.len(), s.title);
        println!("{:width$}              {}", "", s.source);
    }
    println!("\npspacer lab run NAME runs one of them.");
    Ok(true)
}

/// How a command line wants a scenario read.
pub fn options(pairs: &[String], form: &Form) -> Result<Options> {
    let mut set = vec![];
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=') else {
            bail!("--set {pair:?}: expected KEY=VALUE, as in --set rate=250mbit");
        };
        set.push((key.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(Options {
        quick: !form.full,
        set,
    })
}

/// Reads the scenario that the arguments mean, with what they change in it.
fn scenario_of(args: &LabRun) -> Result<Scenario> {
    let file = catalogue::find(&args.scenario)?;
    let mut scenario = catalogue::read(&file, &options(&args.set, &args.form)?)?;
    if let Some(kernel) = &args.kernel {
        scenario.kernel = kernel.parse::<Kernel>().context("--kernel")?;
    }
    if let Some(seed) = args.seed {
        scenario.seed = seed;
    }
    Ok(scenario)
}

fn run_and_show(args: &LabRun) -> Result<bool> {
    let scenario = scenario_of(args)?;
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| Path::new("out").join(&scenario.name));
    let mut lab = vmlab::Lab::find()?;
    lab.refresh = args.refresh;
    let finished = run(&lab, &scenario, &out, args.jobs)?;
    show(&finished, args.json)
}

/// Says what a run found; `false` if a bound did not hold.
pub fn show(finished: &Finished, json: bool) -> Result<bool> {
    if json {
        print!("{}", finished.result.to_json()?);
        return Ok(finished.result.ok);
    }
    let style = terminal::style();
    if let [curves] = &finished.curves[..] {
        println!("{}", report::terminal::chart(curves, style));
    }
    println!("{}", report::summary(&finished.result, style));
    println!("Report: {}", finished.out.join("report.html").display());
    Ok(finished.result.ok)
}

/// Runs a scenario into `out` and measures it.
pub fn run(
    lab: &vmlab::Lab,
    scenario: &Scenario,
    out: &Path,
    jobs: Option<NonZeroUsize>,
) -> Result<Finished> {
    ensure!(
        !sim::is_needed(scenario),
        "{}: its flows name a stack or how much they send: pspacer sim run runs it",
        scenario.name
    );
    make_room(out)?;
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
    let ran = vmlab::run(lab, &spec, &bars);
    bars.clear();
    let ran = ran?;
    let mut result = RunResult {
        format: FORMAT.into(),
        scenario: scenario.name.clone(),
        title: scenario.title.clone(),
        source: scenario.source.clone(),
        engine: Engine::Vmlab,
        kernel: ran.kernel_release,
        seed: scenario.seed,
        ok: true,
        cells: vec![],
    };
    let mut curves = vec![];
    for (cell, output) in scenario.cells.iter().zip(&ran.cells) {
        let (mut measured, drawn) =
            cells::measure(cell, &output.dir, output.zero_ns, &output.busy_ns)?;
        measured.tc.clone_from(&output.tc);
        measured.flow_reports.clone_from(&output.flow_reports);
        for plot in report::cell_plots(&drawn) {
            write(&output.dir.join(plot.name), plot.svg.as_bytes())?;
        }
        result.cells.push(measured);
        curves.push(drawn);
    }
    result.ok = result.cells.iter().flat_map(|c| &c.bounds).all(|b| b.ok);
    write_all(out, &result, &curves)?;
    let stats = serde_json::to_string_pretty(&ran.stats)?;
    write(&out.join("run.json"), stats.as_bytes())?;
    Ok(Finished {
        out: out.to_path_buf(),
        result,
        curves,
    })
}

/// The pictures, the report and the result of a run.
pub fn write_all(out: &Path, result: &RunResult, curves: &[Curves]) -> Result<()> {
    let drawn: Vec<_> = curves.iter().cloned().map(Some).collect();
    for plot in report::run_plots(result, &drawn) {
        write(&out.join(plot.name), plot.svg.as_bytes())?;
    }
    write(
        &out.join("report.html"),
        report::html(result, &drawn).as_bytes(),
    )?;
    write(&out.join(RESULT), result.to_json()?.as_bytes())
}

/// An empty folder for results: new, or one of ours, whose old results go.
/// Anything else is refused: it could be somebody's work.
pub fn make_room(out: &Path) -> Result<()> {
    if out.exists() {
        let empty = fs::read_dir(out)
            .with_context(|| format!("--out {}: expected a folder", out.display()))?
            .next()
            .is_none();
        ensure!(
            empty || out.join(RESULT).is_file() || out.join(STARTED).is_file(),
            "--out {}: the folder has files that are not results of ours; expected a new or empty \
             folder, or one with a {RESULT}",
            out.display()
        );
        fs::remove_dir_all(out).with_context(|| format!("cannot empty {}", out.display()))?;
    }
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    write(&out.join(STARTED), b"results are being made here\n")
}

/// Marks a folder whose run has begun and may have failed.
const STARTED: &str = ".pspacer";

fn lint() -> Result<bool> {
    let bars = Bars::new();
    let said = vmlab::Lab::find().and_then(|lab| lab.lint(Kernel::V6_1, &bars));
    bars.clear();
    let said = said?;
    print!("{said}");
    ensure!(said.is_empty(), "checkpatch or sparse has something to say");
    println!("checkpatch and sparse: nothing to say");
    Ok(true)
}
