// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask test`: runs the tests of a tier. Each guest has a process of its own, and so have
//! the tests of a file.

mod passed;
mod programs;
mod run;
mod tiers;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use passed::Passed;
use programs::Program;
use run::{Ran, Unit};
use tiers::{Tier, Tiers, boots};
use vmlab::{Cache, FRESH};

/// So many of the slowest are named.
const SLOWEST: usize = 10;

/// Options of `cargo xtask test`.
#[derive(Debug, Args)]
pub struct Test {
    /// Which tests run
    #[arg(long, value_enum, default_value = "test")]
    tier: Tier,
    /// Only those whose name, CRATE::FILE::TEST, contains this
    #[arg(long)]
    only: Option<String>,
    /// Only those that boot guests, or only the others
    #[arg(long)]
    guests: Option<bool>,
    /// Number that chooses among the kernels; otherwise it follows from the committed tree
    #[arg(long)]
    round: Option<u32>,
    /// Print all tests with their tiers, and run none
    #[arg(long)]
    list: bool,
    /// Folder of the logs
    #[arg(long, default_value = "target/test-logs")]
    logs: PathBuf,
}

/// A test and what becomes of it.
struct Listed<'a> {
    program: &'a Program,
    name: String,
    full: String,
    is_ignored: bool,
    is_guest: bool,
}

/// Runs or lists the tests.
pub fn main(args: &Test) -> Result<()> {
    let root = vmlab::Sources::find()?.path().to_owned();
    let file = root.join("tests/tiers.toml");
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let tiers = Tiers::parse(&text)?;
    let programs = programs::compile(&root, args.tier == Tier::Check)?;
    let all = listed(&programs)?;
    if args.tier != Tier::Check {
        let names: Vec<&str> = all.iter().map(|test| &*test.full).collect();
        let idle = tiers.idle(&names);
        ensure!(
            idle.is_empty(),
            "{}: no test is named {}",
            file.display(),
            idle.join(", ")
        );
    }
    let round = args.round.unwrap_or_else(|| round(&root));
    if args.list {
        return list(&all, &tiers, round);
    }
    let is_wanted = |test: &&Listed<'_>| {
        args.only
            .as_ref()
            .is_none_or(|only| test.full.contains(only))
            && args.guests.is_none_or(|guests| guests == test.is_guest)
    };
    let wanted: Vec<_> = all.iter().filter(is_wanted).collect();
    let (mut units, left) = units(&wanted, &tiers, args.tier, round);
    ensure!(!units.is_empty(), "no test is to run");
    let mut passed = None;
    if args.tier == Tier::All && env::var_os(FRESH).is_none() {
        passed = Passed::of(&Cache::default_folder()?, &root)?;
    }
    if let Some(passed) = &passed {
        let all = units.len();
        units.retain(|unit| !(unit.is_guest && passed.has(&unit.name)));
        println!(
            "    {} guests passed before with the same files",
            all - units.len()
        );
    }
    let guests = units.iter().filter(|unit| unit.is_guest).count();
    println!(
        "    {guests} guests and {} processes without; round {}; {left} tests left to make test-all",
        units.len() - guests,
        round % 3
    );
    let begin = Instant::now();
    // Logs of other tests would be taken for results.
    let logs = root.join(&args.logs);
    if logs.exists() {
        fs::remove_dir_all(&logs).with_context(|| logs.display().to_string())?;
    }
    let mut environment = vec![];
    if args.tier == Tier::All {
        environment.push(("PSPACER_TESTS", "all".to_owned()));
        // Of the guests that have run one of sixteen runs again with each tree, unless the caller wants others.
        if env::var_os(FRESH).is_none() {
            environment.push((FRESH, format!("digit:{:x}", round % 16)));
        }
    }
    let note = |unit: &Unit, ran: &Ran| {
        let Some(passed) = passed.as_ref().filter(|_| ran.passed && unit.is_guest) else {
            return;
        };
        if let Err(error) = passed.note(&unit.name) {
            println!("    not noted: {error:#}");
        }
    };
    let ran = run::all(&units, &logs, &environment, &note)?;
    summary(&ran, begin.elapsed())
}

fn listed(programs: &[Program]) -> Result<Vec<Listed<'_>>> {
    let mut all = vec![];
    for program in programs {
        for test in program.tests()? {
            let full = format!("{}{}", program.prefix, test.name);
            let is_guest = boots(&full);
            all.push(Listed {
                program,
                name: test.name,
                is_ignored: test.is_ignored,
                is_guest,
                full,
            });
        }
    }
    Ok(all)
}

/// Returns a number that differs from one committed tree to another.
fn round(root: &Path) -> u32 {
    let tree = passed::git(root, &["rev-parse", "HEAD^{tree}"]).unwrap_or_default();
    u32::from_str_radix(tree.get(..7).unwrap_or_default(), 16).unwrap_or(0)
}

/// Returns the processes to run in their order, and how many tests another tier has.
fn units(tests: &[&Listed<'_>], tiers: &Tiers, tier: Tier, round: u32) -> (Vec<Unit>, usize) {
    let mut units: Vec<Unit> = vec![];
    let mut left = 0;
    for test in tests {
        if test.is_guest && !tiers.runs(tier, &test.full, round) {
            left += usize::from(!test.is_ignored);
            continue;
        }
        if test.is_guest && test.is_ignored {
            continue;
        }
        let file = test.name.split("::").next().unwrap_or_default();
        let name = match (test.is_guest, test.program.has_files) {
            (true, _) => test.full.clone(),
            (false, true) => format!("{}{file}", test.program.prefix),
            (false, false) => format!("{}({})", test.program.prefix, test.program.kind),
        };
        match units
            .iter_mut()
            .find(|unit| unit.name == name && unit.executable == test.program.executable)
        {
            Some(unit) => unit.exactly.push(test.name.clone()),
            None => units.push(Unit {
                name,
                executable: test.program.executable.clone(),
                folder: test.program.folder.clone(),
                exactly: vec![test.name.clone()],
                is_guest: test.is_guest,
            }),
        }
    }
    units.sort_by_key(|unit| (tiers.rank(&unit.name), !unit.is_guest));
    (units, left)
}

fn list(all: &[Listed<'_>], tiers: &Tiers, round: u32) -> Result<()> {
    let mut lines: Vec<String> = all
        .iter()
        .map(|test| {
            let tier = match test {
                test if test.is_ignored => "asked",
                test if !test.is_guest => "test",
                test if !tiers.runs(Tier::All, &test.full, round) => "test alone",
                test if (0..3).all(|round| tiers.runs(Tier::Test, &test.full, round)) => "test",
                test if tiers.runs(Tier::Test, &test.full, round) => "test in turn, now",
                _ => "test in turn",
            };
            format!("{tier:<18} {}", test.full)
        })
        .collect();
    lines.sort();
    for line in lines {
        println!("{line}");
    }
    Ok(())
}

/// Prints what took longest and how all ended.
fn summary(ran: &[Ran], wall: Duration) -> Result<()> {
    let mut slowest: Vec<&Ran> = ran.iter().collect();
    slowest.sort_by_key(|ran| std::cmp::Reverse(ran.wall));
    println!("    the slowest:");
    for ran in slowest.iter().take(SLOWEST) {
        println!(
            "    {:>7.1} s wall, {:>6.1} s of processor: {}",
            ran.wall.as_secs_f64(),
            ran.cpu.as_secs_f64(),
            ran.name
        );
    }
    let sum = |count: fn(&Ran) -> u32| ran.iter().map(count).sum::<u32>();
    let cpu: Duration = ran.iter().map(|ran| ran.cpu).sum();
    println!(
        "    {} passed, {} failed, {} ignored in {} processes; {:.0} s wall, {:.0} s of processor",
        sum(|ran| ran.counts.passed),
        sum(|ran| ran.counts.failed),
        sum(|ran| ran.counts.ignored),
        ran.len(),
        wall.as_secs_f64(),
        cpu.as_secs_f64()
    );
    let bad: Vec<&str> = ran
        .iter()
        .filter(|ran| !ran.passed)
        .map(|ran| &*ran.name)
        .collect();
    ensure!(bad.is_empty(), "failed: {}", bad.join(", "));
    Ok(())
}
