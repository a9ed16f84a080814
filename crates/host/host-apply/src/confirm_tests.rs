// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes that wait, and all that may come between: an answer, its end, a kill of either process,
//! at any instant. The state of the devices is a file here; processes, lock and names are those of
//! `apply --confirm`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::zombie_processes,
    reason = "tests fail that way; processes answer on standard output, and are waited for"
)]

use std::fs;
use std::io::{Read, Write, stdin};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::Result;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng as _;

use crate::confirm::{Outcome, Trial, guard, left, made};
use crate::run_dir::Lock;

const ROUNDS: u64 = 1000;
const SIDE_BY_SIDE: u64 = 16;
/// How long changes wait, and in which instants something happens.
const PATIENCE: Duration = Duration::from_secs(20);
const AFTER: Duration = Duration::from_millis(60);
const WITHIN_US: u32 = 150_000;
/// Steps of making changes, and of taking them back.
const STEPS: u32 = 3;
const STEP: Duration = Duration::from_millis(4);

fn device(folder: &Path) -> PathBuf {
    folder.join("device")
}

/// Makes changes as a kernel does: one after the other.
fn make(folder: &Path, what: &str) -> Result<()> {
    for step in 1..STEPS {
        fs::write(device(folder), format!("{step} of {STEPS} steps to {what}"))?;
        sleep(STEP);
    }
    Ok(fs::write(device(folder), what)?)
}

fn folder() -> PathBuf {
    PathBuf::from(std::env::var("FOLDER").unwrap())
}

/// Starts one of the tests below as a process.
fn process(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            &format!("confirm_tests::{name}"),
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("FOLDER", folder);
    command
}

#[test]
#[ignore = "a process of the test below"]
fn applies() {
    let folder = folder();
    let lock = Lock::take(&folder).unwrap();
    let mut guard = process("guards", &folder);
    let (trial, mut guard) = Trial::begin(&folder, "old", &mut guard).unwrap();
    fs::write(folder.join("guard"), guard.id().to_string()).unwrap();
    make(&folder, "new").unwrap();
    let mut back = |state: &str| make(&folder, state);
    let Ok(until_ns) = made(&mut guard, AFTER) else {
        let back = trial.decide(&lock, false, &mut back);
        println!("\nsaid {:?}", back.unwrap());
        return;
    };
    drop(lock);
    let is_kept = trial.ask(&mut stdin().lock(), until_ns).unwrap();
    let lock = Lock::take(&folder).unwrap();
    let outcome = trial.decide(&lock, is_kept, &mut back).unwrap();
    println!("\nsaid {outcome:?}");
    drop(lock);
    // Whoever started this waits for the guard, too.
    let _ = guard.wait();
}

#[test]
#[ignore = "a process of the test below"]
fn guards() {
    let folder = folder();
    if let Some(trial) = guard(&folder).unwrap() {
        let lock = Lock::take(&folder).unwrap();
        let mut back = |state: &str| make(&folder, state);
        trial.decide(&lock, false, &mut back).unwrap();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Enter,
    EndOfTerminal,
    Elsewhere,
    KillApply,
    KillGuard,
    Nothing,
}

/// Waits until all is decided: a guard that has just been started may go on for a while.
fn ended(folder: &Path, apply: &mut Child) {
    apply.wait().unwrap();
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let lock = Lock::take(folder).unwrap();
        if left(folder).is_none() {
            return;
        }
        drop(lock);
        sleep(Duration::from_millis(2));
    }
}

fn round(seed: u64) -> Option<String> {
    let mut random = Pcg32::new(seed, 0);
    let mut below = |bound: u32| random.next_u32() % bound;
    let all = [
        Event::Enter,
        Event::EndOfTerminal,
        Event::Elsewhere,
        Event::KillApply,
        Event::KillGuard,
        Event::Nothing,
    ];
    let event = all[below(all.len() as u32) as usize];
    let at = Duration::from_micros(below(WITHIN_US).into());
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(device(folder), "old").unwrap();
    let mut apply = process("applies", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = apply.stdin.take();
    let mut out = apply.stdout.take().unwrap();
    sleep(at);
    let guard = || fs::read_to_string(folder.join("guard")).ok()?.parse().ok();
    let mut answered = None;
    match event {
        Event::Enter => {
            let _ = input.as_mut().unwrap().write_all(b"\n");
        }
        Event::EndOfTerminal => input = None,
        Event::Elsewhere => {
            let lock = Lock::take(folder).unwrap();
            answered = Trial::waiting(folder).unwrap().map(|trial| {
                let mut never = |_: &str| panic!("an answer takes nothing back");
                trial.decide(&lock, true, &mut never).unwrap()
            });
        }
        Event::KillApply => apply.kill().unwrap(),
        Event::KillGuard => {
            if let Some(guard) = guard() {
                let _ = kill(Pid::from_raw(guard), Signal::SIGKILL);
            }
        }
        Event::Nothing => {}
    }
    ended(folder, &mut apply);
    drop(input);
    let mut said = String::new();
    out.read_to_string(&mut said).unwrap();
    let said = match (said.contains("said Stay"), said.contains("said TakenBack")) {
        (true, false) => Some(Outcome::Stay),
        (false, true) => Some(Outcome::TakenBack),
        _ => None,
    };
    let is = fs::read_to_string(device(folder)).unwrap();
    let is_as_said = |outcome| match outcome {
        Outcome::Stay => is == "new",
        Outcome::TakenBack => is == "old",
    };
    let is_right = match event {
        // Nobody is left to say it; what nobody confirmed is not in force.
        Event::KillApply => said.is_none_or(is_as_said) && (is == "old" || said.is_some()),
        Event::Elsewhere => {
            said.is_some_and(is_as_said)
                && answered.is_none_or(|answer| answer == Outcome::Stay && is == "new")
        }
        Event::Nothing | Event::EndOfTerminal | Event::KillGuard => {
            said == Some(Outcome::TakenBack) && is == "old"
        }
        Event::Enter => said.is_some_and(is_as_said),
    };
    let is_decided = left(folder).is_none();
    (!is_right || !is_decided).then(|| {
        format!(
            "seed {seed}: {event:?} after {at:?}: said {said:?}, answered {answered:?}, is {is}"
        )
    })
}

/// What is said is what is in force, and what nobody confirmed is taken back as a whole.
#[test]
fn what_is_said_is_in_force_whatever_comes_between() {
    let wrong: Vec<String> = scope(|scope| {
        let threads: Vec<_> = (0..SIDE_BY_SIDE)
            .map(|first| {
                scope.spawn(move || {
                    let seeds = (first..ROUNDS).step_by(SIDE_BY_SIDE as usize);
                    seeds.filter_map(round).collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
