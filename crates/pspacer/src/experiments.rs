// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer experiments`: runs every experiment, and writes the pages of the results.

use anyhow::{Context, Result};
use lab_run::experiments::{Plan, run};
use scenario::result::RunResult;

use crate::cli::Experiments;
use crate::output::print;
use crate::progress::Bars;
use crate::terminal;

/// Runs the experiments. Returns `false` if a bound did not hold.
pub fn main(args: &Experiments) -> Result<bool> {
    let plan = Plan {
        quick: !args.form.full,
        results: args.out.clone(),
        only: args.only.clone(),
        lone: args.json,
        reuse: args.reuse,
        jobs: args.jobs,
    };
    let outcome = run(&plan, &Bars::new())?;
    if args.json {
        print(&json_of(&outcome.results)?)?;
    } else if !terminal::is_quiet() {
        print(&format!("Results: {}\n", outcome.index.display()))?;
    }
    Ok(outcome.ok)
}

/// Returns the results of one experiment as one JSON object: the table of its first scenario, and
/// the results of all scenarios.
fn json_of(results: &[RunResult]) -> Result<String> {
    let first = results.first().context("an experiment without scenarios")?;
    let object = serde_json::json!({ "table": first.table, "results": results });
    Ok(serde_json::to_string_pretty(&object)? + "\n")
}
