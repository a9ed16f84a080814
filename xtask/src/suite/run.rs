// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs processes of tests, as many side by side as there are processors and one more, and says how
//! long each took.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// A process that runs tests of one program.
pub struct Unit {
    pub name: String,
    pub executable: PathBuf,
    pub folder: PathBuf,
    /// Names of the tests.
    pub exactly: Vec<String>,
    pub is_guest: bool,
}

/// How it ended.
pub struct Ran {
    pub name: String,
    pub log: PathBuf,
    pub counts: Counts,
    pub passed: bool,
    pub wall: Duration,
    /// Processor time of the process and all that it waited for.
    pub cpu: Duration,
}

/// Tests by their ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u32,
    pub failed: u32,
    pub ignored: u32,
}

/// No process takes longer; a guest has a limit of its own, which is lower.
const LIMIT: Duration = Duration::from_secs(2400);
const POLL: Duration = Duration::from_millis(20);
/// A line says where the run is.
const TICK: Duration = Duration::from_secs(30);
/// A guest has at least 512 MB; this much free memory is asked for each process.
const MEMORY_KB: u64 = 1 << 20;

/// What the threads share.
struct State<'a> {
    waiting: Vec<&'a Unit>,
    running: Vec<&'a str>,
    ran: Vec<Ran>,
}

/// Runs all in their order; each writes its output to a file in `logs`, and `note` is told of each.
pub fn all(
    units: &[Unit],
    logs: &Path,
    environment: &[(&str, String)],
    note: &(dyn Fn(&Unit, &Ran) + Sync),
) -> Result<Vec<Ran>> {
    fs::create_dir_all(logs).with_context(|| logs.display().to_string())?;
    let begin = Instant::now();
    let state = Mutex::new(State {
        waiting: units.iter().rev().collect(),
        running: vec![],
        ran: vec![],
    });
    let lock = || {
        state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    };
    let work = |with_guests: bool| {
        loop {
            let unit = {
                let mut state = lock();
                let is_mine = |unit: &&Unit| with_guests || !unit.is_guest;
                let Some(place) = state.waiting.iter().rposition(is_mine) else {
                    break;
                };
                let unit = state.waiting.remove(place);
                state.running.push(&unit.name);
                unit
            };
            let ran = one(unit, logs, environment);
            println!("    {}", line(&ran));
            note(unit, &ran);
            if !ran.passed {
                print!("{}", fs::read_to_string(&ran.log).unwrap_or_default());
            }
            let mut state = lock();
            state.running.retain(|name| *name != unit.name);
            state.ran.push(ran);
        }
    };
    let tick = || {
        let mut last = Instant::now();
        loop {
            sleep(Duration::from_millis(100));
            let state = lock();
            if state.waiting.is_empty() && state.running.is_empty() {
                break;
            }
            if last.elapsed() >= TICK {
                last = Instant::now();
                println!(
                    "    ... {} of {} done after {} s; now {}",
                    state.ran.len(),
                    units.len(),
                    begin.elapsed().as_secs(),
                    state.running.join(", ")
                );
            }
        }
    };
    thread::scope(|threads| {
        for _ in 0..side_by_side() {
            threads.spawn(|| work(true));
        }
        // A guest keeps a processor busy. Some of the others mostly wait.
        threads.spawn(|| work(false));
        threads.spawn(tick);
    });
    let state = state
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(state.ran)
}

/// Returns how many processes run at once.
fn side_by_side() -> u64 {
    let processors = thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text.lines().find_map(|line| {
        let rest = line.strip_prefix("MemAvailable:")?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    });
    let fit = available.map_or(processors, |kb| kb / MEMORY_KB);
    processors.min(fit.max(1))
}

fn line(ran: &Ran) -> String {
    let Counts {
        passed,
        failed,
        ignored,
    } = ran.counts;
    let mut counts = format!("{passed} passed");
    if failed > 0 || !ran.passed {
        counts += &format!(", {failed} failed");
    }
    if ignored > 0 {
        counts += &format!(", {ignored} ignored");
    }
    let (wall_s, cpu_s) = (ran.wall.as_secs_f64(), ran.cpu.as_secs_f64());
    let fault = if ran.passed { "" } else { "FAILED: " };
    format!(
        "{fault}{}: {counts}; {wall_s:.1} s, {cpu_s:.1} s of processor",
        ran.name
    )
}

fn one(unit: &Unit, logs: &Path, environment: &[(&str, String)]) -> Ran {
    let file = unit.name.replace("::", ".");
    let log = logs.join(format!("{file}.log"));
    let begin = Instant::now();
    let (ended, cpu) = match start(unit, &log, environment) {
        Ok(mut child) => wait(&mut child, begin),
        Err(error) => {
            // The log may be what could not be written.
            println!("    {}: {error:#}", unit.name);
            (false, Duration::ZERO)
        }
    };
    let said = fs::read_to_string(&log).unwrap_or_default();
    let counts = counts(&said);
    let ended_well = |counts: Counts| (counts.passed + counts.ignored) as usize;
    let are_all = counts.is_some_and(|counts| ended_well(counts) == unit.exactly.len());
    Ran {
        name: unit.name.clone(),
        log,
        counts: counts.unwrap_or_default(),
        passed: ended && are_all,
        wall: begin.elapsed(),
        cpu,
    }
}

fn start(unit: &Unit, log: &Path, environment: &[(&str, String)]) -> Result<Child> {
    let out = File::create(log).with_context(|| log.display().to_string())?;
    let mut command = Command::new(&unit.executable);
    command.current_dir(&unit.folder).stdin(Stdio::null());
    command.stderr(out.try_clone()?).stdout(out);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    // As cargo sets them.
    command
        .env("CARGO", "cargo")
        .env("CARGO_MANIFEST_DIR", &unit.folder);
    command.arg("--exact").args(&unit.exactly);
    // Processes share the processors already.
    command.args(["--test-threads", "1"]);
    command
        .spawn()
        .with_context(|| unit.executable.display().to_string())
}

/// Waits for the end, and returns whether it was a good one, and the processor time.
fn wait(child: &mut Child, begin: Instant) -> (bool, Duration) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    // It is left waitable, because its times go with it.
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    while begin.elapsed() < LIMIT {
        match waitid(Id::Pid(pid), flags) {
            Ok(WaitStatus::StillAlive) => sleep(POLL),
            _ => break,
        }
    }
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // It fails if the process has ended, as it should have.
    let _ = child.kill();
    let passed = child.wait().is_ok_and(|status| status.success());
    (passed, processor_time(&stat))
}

/// Returns the time of a process and its children from the text of `/proc/PID/stat`.
fn processor_time(stat: &str) -> Duration {
    // The name before may have spaces and brackets.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields = rest.split_whitespace().skip(11).take(4);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    // A tick is a hundredth of a second on every Linux.
    Duration::from_millis(ticks * 10)
}

/// Returns the counts of the last line that says how a program's tests ended.
fn counts(said: &str) -> Option<Counts> {
    let line = said
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("test result: "))?;
    let count = |what: &str| -> Option<u32> {
        let (before, _) = line.split_once(&format!(" {what}"))?;
        before.rsplit([' ', '.']).next()?.parse().ok()
    };
    Some(Counts {
        passed: count("passed")?,
        failed: count("failed")?,
        ignored: count("ignored")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read() {
        let said = "test a ... ok\n\ntest result: ok. 12 passed; 1 failed; 3 ignored; 0 measured; 7 filtered out; finished in 0.01s\n";
        let expected = Counts {
            passed: 12,
            failed: 1,
            ignored: 3,
        };
        assert_eq!(counts(said), Some(expected));
        assert_eq!(counts("test a ... ok"), None);
    }

    #[test]
    fn times_of_a_process_are_read() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194304 100 0 0 0 150 50 25 75 20 0 1 0 1";
        assert_eq!(processor_time(stat), Duration::from_secs(3));
    }

    fn shell(folder: &Path, name: &str, script: &str, exactly: usize) -> Unit {
        use std::os::unix::fs::PermissionsExt;
        let executable = folder.join(name);
        let text = format!("#!/bin/sh\n{script}\n");
        let written = fs::write(&executable, text)
            .and_then(|()| fs::set_permissions(&executable, fs::Permissions::from_mode(0o755)));
        assert!(written.is_ok());
        Unit {
            name: format!("a::{name}"),
            executable,
            folder: folder.to_owned(),
            exactly: vec!["t".to_owned(); exactly],
            is_guest: false,
        }
    }

    #[test]
    fn only_what_says_that_all_its_tests_passed_has_passed() {
        let folder = std::env::temp_dir().join(format!("suite-{}", std::process::id()));
        assert!(fs::create_dir_all(&folder).is_ok());
        let result = |passed, ignored| {
            format!(
                "echo 'test result: ok. {passed} passed; 0 failed; {ignored} ignored; 0 measured; 0 filtered out'"
            )
        };
        let units = [
            shell(&folder, "good", &result(2, 1), 3),
            shell(&folder, "library", &result(0, 0), 0),
            shell(&folder, "none", &result(0, 0), 1),
            shell(&folder, "silent", "true", 0),
            shell(&folder, "bad", &format!("{}; exit 101", result(1, 0)), 1),
            shell(&folder, "killed", "kill -9 $$", 1),
        ];
        let ran = all(&units, &folder.join("logs"), &[], &|_, _| ()).unwrap_or_default();
        let mut passed: Vec<_> = ran.iter().map(|ran| (&*ran.name, ran.passed)).collect();
        passed.sort_unstable();
        assert_eq!(
            passed,
            [
                ("a::bad", false),
                ("a::good", true),
                ("a::killed", false),
                ("a::library", true),
                ("a::none", false),
                ("a::silent", false),
            ]
        );
        assert!(fs::remove_dir_all(&folder).is_ok());
    }
}
