// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer lab`: runs scenarios in the laboratory, and lists them.

use std::fmt::Write as _;

use anyhow::Result;
use clap::{Args, Subcommand};
use lab_run::{catalogue, lab};
use scenario::{Kernel, Options};

use crate::headings::{OUTPUT, RUN};
use crate::output::print;
use crate::progress::Bars;
use crate::scenario_run;
use crate::terminal;
use crate::values;

/// `pspacer lab`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// What there is to run
    List {
        /// One JSON array on standard output
        #[arg(long, help_heading = OUTPUT)]
        json: bool,
    },
    /// Run a scenario: a file, a folder under experiments/, or its name
    Run(LabRunArgs),
}

/// `pspacer lab run`.
#[derive(Debug, Args)]
pub struct LabRunArgs {
    /// What and where to
    #[command(flatten)]
    pub run: scenario_run::RunArgs,
    /// Kernel to boot instead of the scenario's
    #[arg(long, value_name = "6.1|6.12|7", help_heading = RUN, value_parser = values::kernel(),
        hide_possible_values = true)]
    pub kernel: Option<Kernel>,
    /// Look for newer kernels and programs, even if the cache has some
    #[arg(long, help_heading = RUN)]
    pub refresh: bool,
}

/// Runs a subcommand of `pspacer lab`. Returns `false` if a bound did not hold.
pub fn main(command: &Command) -> Result<bool> {
    match command {
        Command::List { json } => list(*json),
        Command::Run(args) => run_and_show(args),
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

fn run_and_show(args: &LabRunArgs) -> Result<bool> {
    let mut scenario = args.run.scenario()?;
    if let Some(kernel) = &args.kernel {
        scenario.kernel = *kernel;
    }
    let mut lab = vmlab::Lab::find()?;
    lab.refresh = args.refresh;
    let out = args.run.out(&scenario.name);
    let finished = lab::run(&lab, &scenario, &out, args.run.jobs, &Bars::new())?;
    scenario_run::show(&finished, args.run.json)
}
