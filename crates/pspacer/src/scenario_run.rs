// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs on either engine: reads the scenario that the command line selects, and prints the results.

use std::path::{Path, PathBuf};

use anyhow::Result;
use lab_run::catalogue;
use lab_run::finished::Finished;
use scenario::{Options, Scenario};

use crate::cli::{Chosen, Run};
use crate::output::print;
use crate::terminal;
use crate::values::Pair;

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

impl Run {
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
