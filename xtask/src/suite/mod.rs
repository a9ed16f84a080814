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
    /// Only this part of the tests, such as 1/3; tests without guests are in the first
    #[arg(long, value_parser = part)]
    part: Option<(usize, usize)>,
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
    if let Some(part) = args.part {
        units = part_of(units, part);
    }
    ensure!(!units.is_empty(), "no test is to run");
    let mut passed = None;
    if args.tier == Tier::All && env::var_os(FRESH).is_none() {
        passed = Passed::of(&Cache::default_folder()?, &root)?;
    }
    if let Some(passed) = &passed {
        println!("    files {}", passed.files());
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

/// Reads which part of how many is meant.
fn part(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/');
    let numbers = numbers.and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    match numbers {
        Some((part, of)) if (1..=of).contains(&part) => Ok((part, of)),
        _ => Err("expected a part of how many, such as 1/3".to_owned()),
    }
}

/// Returns one part of processes. Guests that begin next to each other take about as long, and are in
/// different parts.
fn part_of(units: Vec<Unit>, (part, of): (usize, usize)) -> Vec<Unit> {
    let mut guests = 0;
    let is_in = |unit: &Unit| {
        if unit.is_guest {
            guests += 1;
        }
        let place = if unit.is_guest { guests } else { 1 };
        place % of == part % of
    };
    units.into_iter().filter(is_in).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(name: usize, is_guest: bool) -> Unit {
        Unit {
            name: name.to_string(),
            executable: PathBuf::new(),
            folder: PathBuf::new(),
            exactly: vec![],
            is_guest,
        }
    }

    #[test]
    fn the_parts_are_all_of_it_and_each_once() {
        for of in 1..5 {
            let mut names: Vec<String> = vec![];
            for part in 1..=of {
                let units = (0..40).map(|n| unit(n, n % 3 > 0)).collect();
                let units = part_of(units, (part, of));
                let guests = units.iter().filter(|unit| unit.is_guest).count();
                assert!(guests.abs_diff(26 / of) <= 1, "{guests} of {part}/{of}");
                assert!(part == 1 || guests == units.len());
                names.extend(units.into_iter().map(|unit| unit.name));
            }
            names.sort_by_key(|name| name.parse::<usize>().unwrap_or(usize::MAX));
            let all: Vec<String> = (0..40).map(|n: usize| n.to_string()).collect();
            assert_eq!(names, all);
        }
    }

    #[test]
    fn a_part_is_one_of_how_many() {
        assert_eq!(part("2/3"), Ok((2, 3)));
        for text in ["", "3", "0/3", "4/3", "1/0", "a/b", "1/3/3"] {
            assert!(part(text).is_err(), "{text}");
        }
    }
}
