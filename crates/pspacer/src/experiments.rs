// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer experiments`: runs every experiment, and writes the pages of the results.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use lab_run::experiments::{Plan, ages, run};
use scenario::result::RunResult;

use crate::headings::{FILTERS, OUTPUT, RUN};
use crate::output::print;
use crate::progress::Bars;
use crate::scenario_run::Form;
use crate::terminal;

/// `pspacer experiments`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("told").multiple(true))]
pub struct ExperimentsArgs {
    /// Short or full
    #[command(flatten)]
    pub form: Form,
    /// Where the index, the pages and figures/ go [default: of the full form docs/results of the
    /// source tree, or out/full without one; of the short form out/quick]
    #[arg(long, value_name = "DIR", help_heading = OUTPUT, alias = "results")]
    pub out: Option<PathBuf>,
    /// Only the experiment of this name, or those whose name contains it; the other pages
    /// and lines of the index stay
    #[arg(long, value_name = "TEXT", group = "told", help_heading = FILTERS)]
    pub only: Option<String>,
    /// One JSON object on standard output, nothing else there: of the one experiment of --only, or
    /// of --stale
    #[arg(long, requires = "told", help_heading = OUTPUT)]
    pub json: bool,
    /// Run nothing: list the runs behind each page of docs/results that differ from what would run
    /// now, and how long they take; compiles modules; exits with 1 if any does but for packages of
    /// others
    #[arg(long, group = "told", conflicts_with_all = ["full", "quick", "out", "again", "jobs"], help_heading = RUN)]
    pub stale: bool,
    /// Make the pages, too, of which nothing has changed since they were made
    #[arg(long, requires = "full", help_heading = RUN)]
    pub again: bool,
    /// Guests side by side [default: one for each core]
    #[arg(long, value_name = "N", help_heading = RUN)]
    pub jobs: Option<NonZeroUsize>,
}

/// Runs the experiments. Returns `false` if a bound did not hold.
pub fn main(args: &ExperimentsArgs) -> Result<bool> {
    if args.stale {
        return stale(args);
    }
    let plan = Plan {
        quick: !args.form.full,
        results: args.out.clone(),
        only: args.only.clone(),
        lone: args.json,
        again: args.again,
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

/// Lists what has changed since each page was made, and how long making it anew takes. It is an error
/// if anything of the project's has: newer packages are none.
fn stale(args: &ExperimentsArgs) -> Result<bool> {
    let ages = ages(args.only.as_deref(), &Bars::new())?;
    let stale = ages.iter().filter(|age| age.is_older_than_code()).count();
    let judged = || -> Result<bool> {
        let all = ages.len();
        let older = ages.iter().filter(|age| age.is_older_than_code());
        let minutes: f64 = older.map(|age| age.minutes).sum();
        ensure!(
            stale == 0,
            "{stale} of {all} pages are older than the code: about {minutes:.0} minutes"
        );
        Ok(true)
    };
    if args.json {
        let rows = ages.iter();
        let rows = rows.map(|age| {
            serde_json::json!({
                "page": age.name,
                "changed": age.changed,
                "repackaged": age.repackaged,
                "minutes": (age.minutes * 10.0).round() / 10.0,
            })
        });
        print(&format!("{:#}\n", serde_json::Value::from_iter(rows)))?;
        return judged();
    }
    for age in &ages {
        let mut said = if age.is_fresh() {
            "fresh".to_owned()
        } else {
            format!("{:.1} min: ", age.minutes) + &age.changed.join(", ")
        };
        if !age.repackaged.is_empty() {
            let between = if age.changed.is_empty() { "" } else { "; " };
            let runs = age.repackaged.join(", ");
            said += &format!("{between}on other packages {runs}");
        }
        print(&format!("{:<32} {said}\n", age.name))?;
    }
    judged()
}

/// Returns the results of one experiment as one JSON object: the table of its first scenario, and
/// the results of all scenarios.
fn json_of(results: &[RunResult]) -> Result<String> {
    let first = results.first().context("an experiment without scenarios")?;
    let object = serde_json::json!({ "table": first.table, "results": results });
    Ok(serde_json::to_string_pretty(&object)? + "\n")
}
