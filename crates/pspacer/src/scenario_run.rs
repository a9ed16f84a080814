// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs on either engine: reads the scenario that the command line selects, and prints the results.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use lab_run::catalogue;
use lab_run::finished::Finished;
use scenario::{Options, Scenario};

use crate::headings::{OUTPUT, RUN};
use crate::output::print;
use crate::terminal;
use crate::values::{self, Pair};

/// Which scenario, with what changed in it.
#[derive(Debug, Args)]
pub struct Chosen {
    /// Scenario file, experiment folder, or the name of either
    pub scenario: String,
    /// Change a parameter, a sweep or a key of the scenario; may be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = RUN, value_parser = values::pair)]
    pub set: Vec<Pair>,
    /// Short or full
    #[command(flatten)]
    pub form: Form,
}

/// One run of a scenario, on either engine: `pspacer sim run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// What
    #[command(flatten)]
    pub chosen: Chosen,
    /// Seed instead of the scenario's; the same seed repeats a run to the byte
    #[arg(long, value_name = "N", help_heading = RUN)]
    pub seed: Option<u64>,
    /// Folder of the results [default: out/NAME, of sim out/NAME-sim]. What pspacer wrote there is replaced; a folder
    /// with files, that pspacer has not marked, is refused
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    /// result.json on standard output, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Guests or cells side by side [default: one for each core]
    #[arg(long, value_name = "N", help_heading = RUN)]
    pub jobs: Option<NonZeroUsize>,
}

/// Which form of a scenario is run.
#[derive(Debug, Args)]
pub struct Form {
    /// The full form: every cell, as long as docs/results is made with
    #[arg(long, help_heading = RUN)]
    pub full: bool,
    /// The short form, what `[quick]` in the scenario says (the default)
    #[arg(long, conflicts_with = "full", help_heading = RUN)]
    pub quick: bool,
}

impl Chosen {
    /// Reads the scenario file, with the changes of the command line. Returns the file's path, too.
    pub fn read(&self) -> Result<(PathBuf, Scenario)> {
        let pair = |pair: &Pair| (pair.key.clone(), pair.value.clone());
        let set = self.set.iter().map(pair).collect();
        let quick = !self.form.full;
        let file = catalogue::find(&self.scenario)?;
        let scenario = catalogue::read(&file, &Options { quick, set })?;
        Ok((file, scenario))
    }
}

impl RunArgs {
    /// Reads the selected scenario, with the seed of the command line.
    pub fn scenario(&self) -> Result<Scenario> {
        let (_, mut scenario) = self.chosen.read()?;
        if let Some(seed) = self.seed {
            scenario.seed = seed;
        }
        Ok(scenario)
    }

    /// Returns the folder of the results: `out/NAME` by default.
    pub fn out(&self, name: &str) -> PathBuf {
        let named = || Path::new("out").join(name);
        self.out.clone().unwrap_or_else(named)
    }
}

/// Prints the results of a run. Returns `false` if a bound did not hold.
pub fn show(finished: &Finished, json: bool) -> Result<bool> {
    if json {
        print(&finished.result.to_json()?)?;
        return Ok(finished.result.ok);
    }
    let style = terminal::style();
    let picture = match &finished.curves[..] {
        [curves] => report::terminal::chart(curves, style),
        curves => report::frames(&finished.result, curves, style),
    };
    if !picture.is_empty() {
        print(&format!("{picture}\n"))?;
    }
    print(&report::summary(&finished.result, style))?;
    if !terminal::is_quiet() {
        let page = finished.out.join("report.html");
        print(&format!("\nReport: {}\n", page.display()))?;
    }
    Ok(finished.result.ok)
}
