// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code that the tests with guests share.

#![allow(dead_code, reason = "not every test uses everything")]

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use scenario::{Kernel, Options, Scenario, parse};
use vmlab::{
    Answers, Case, Error, FuzzSpec, Lab, QDISC_MODULES, Quiet, RunOutput, RunSpec, ScriptOutput,
    ScriptSpec, load_cases, run_fuzz, run_no_memory, run_script, run_tdc,
};

/// Makes a scenario: two hosts, one cable of 100 Mbit/s, one datagram flow for 20 ms. `more`
/// begins with further keys of the cable.
pub fn scenario(more: &str) -> Scenario {
    scenario_at("100mbit", "20ms", more)
}

/// Makes it with another rate of the cable, for another time.
pub fn scenario_at(rate: &str, duration: &str, more: &str) -> Scenario {
    let text = format!(
        r#"
name = "test"
title = "A test"
duration = "{duration}"
settle = "5ms"
memory = "512mb"
[[host]]
name = "tx"
[[host]]
name = "rx"
[[cable]]
name = "wire"
ends = ["tx:eth0", "rx:eth0"]
rate = "{rate}"
{more}
[[flow]]
name = "bulk"
type = "udp"
from = "tx"
to = "rx"
"#
    );
    parse("test.toml", &text, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a scenario on kernel 6.1, and never answers it from the store.
pub fn run_unstored(scenario: &Scenario, out_dir: &Path) -> Result<RunOutput, Error> {
    let mut lab = Lab::find()?;
    lab.answers = Answers::Unstored;
    run_in(&lab, Kernel::V6_1, scenario, out_dir, LONG)
}

/// Runs a scenario on kernel 6.1.
pub fn run(scenario: &Scenario, out_dir: &Path, timeout: Duration) -> Result<RunOutput, Error> {
    run_on(Kernel::V6_1, scenario, out_dir, timeout)
}

/// Runs a scenario on a kernel.
pub fn run_on(
    kernel: Kernel,
    scenario: &Scenario,
    out_dir: &Path,
    timeout: Duration,
) -> Result<RunOutput, Error> {
    run_in(&Lab::find()?, kernel, scenario, out_dir, timeout)
}

/// Runs a scenario on a kernel of this laboratory.
pub fn run_in(
    lab: &Lab,
    kernel: Kernel,
    scenario: &Scenario,
    out_dir: &Path,
    timeout: Duration,
) -> Result<RunOutput, Error> {
    let spec = RunSpec {
        cells: &scenario.cells,
        per_boot: scenario.per_boot,
        kernel,
        seed: scenario.seed,
        out_dir,
        jobs: None,
        timeout: Some(timeout),
    };
    vmlab::run(lab, &spec, &Quiet)
}

/// Limit of processor time, enough for any guest of these tests on a slow machine.
pub const LONG: Duration = Duration::from_secs(300);

/// Returns the console's text from the kernel's first complaint on, else its end. The temporary
/// folder, and the console with it, is removed after the test.
pub fn console(folder: &Path) -> String {
    let text = std::fs::read_to_string(folder.join("console.log")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let complains = |line: &&str| {
        ["WARNING:", "BUG:", "oom-killer"]
            .iter()
            .any(|w| line.contains(w))
    };
    let end = lines.len().saturating_sub(60);
    let begin = lines.iter().position(complains).unwrap_or(end);
    let some = lines.iter().skip(begin).take(100);
    some.copied().collect::<Vec<_>>().join("\n")
}

/// Runs random operations in a guest. A failure prints how to repeat it.
pub fn random_operations(lab: &Lab, kernel: Kernel, seed: u64, operations: u64, timeout: Duration) {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let spec = FuzzSpec {
        kernel,
        seed,
        operations,
        timeout,
        out_dir: folder.path(),
    };
    let again = format!("again: cargo xtask fuzz --seed {seed} --operations {operations}");
    let ran = run_fuzz(lab, spec, &Quiet)
        .unwrap_or_else(|error| panic!("{error}\n{}\n{again}", console(folder.path())));
    assert!(ran.status == 0, "{}\n{again}", ran.output);
}

/// Lets each allocation of each request fail once; needs the debug kernel.
pub fn no_memory(lab: &Lab, timeout: Duration) {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let spec = FuzzSpec {
        kernel: Kernel::V6_1,
        seed: 0,
        operations: 0,
        timeout,
        out_dir: folder.path(),
    };
    let ran = run_no_memory(lab, spec, &Quiet)
        .unwrap_or_else(|error| panic!("{error}\n{}", console(folder.path())));
    check_tap(Kernel::V6_1, "no-memory.sh", ran.status, &ran.output);
}

/// Runs one of the qdisc's own tests, `kernel/tests/NAME`, in a guest.
pub fn kernel_test(lab: &Lab, kernel: Kernel, name: &str, variables: &str, timeout: Duration) {
    // The debug kernel has no VLANs.
    let modules: &[&str] = if lab.debug_kernel { &[] } else { &["8021q"] };
    let command = format!("{variables} sh /tests/leaks.sh sh /tests/{name}");
    let more = More {
        modules,
        files: &[],
    };
    let ran = kernel_script(lab, kernel, &[name], &command, timeout, more);
    check_tap(kernel, name, ran.status, &ran.output);
}

/// Runs tests of the qdisc one after the other in one guest: `kernel/tests/several.sh`.
pub fn kernel_tests(lab: &Lab, kernel: Kernel, names: &[&str], timeout: Duration) {
    let command = format!(
        "{} sh /tests/several.sh {}",
        testkit::part(),
        names.join(" ")
    );
    let files: Vec<&str> = [&["several.sh"], names].concat();
    let more = More {
        modules: &["8021q", "act_vlan"],
        files: &[],
    };
    let ran = kernel_script(lab, kernel, &files, &command, timeout, more);
    check_parts(kernel, names, &ran);
}

/// Checks what `kernel/tests/several.sh` has printed of tests.
pub fn check_parts(place: impl Display, names: &[&str], ran: &ScriptOutput) {
    let mut parts = ran.output.split("@@ begin ").skip(1);
    for name in names {
        let part = parts.next().unwrap_or_default();
        let (said, status) = part
            .strip_prefix(&format!("{name}\n"))
            .and_then(|part| part.split_once(&format!("@@ end {name} ")))
            .unwrap_or_else(|| panic!("{place}: {name} did not end\n{}", ran.output));
        let status = status.trim().parse().unwrap_or(-1);
        check_tap(&place, name, status, said);
    }
    assert!(ran.status == 0 && parts.next().is_none(), "{}", ran.output);
}

/// What a guest has besides [`QDISC_MODULES`] and files of `kernel/tests`.
#[derive(Clone, Copy)]
pub struct More<'a> {
    pub modules: &'a [&'a str],
    pub files: &'a [(&'a Path, &'a str)],
}

/// Runs a command with files of `kernel/tests` in a guest.
pub fn kernel_script(
    lab: &Lab,
    kernel: Kernel,
    names: &[&str],
    command: &str,
    timeout: Duration,
    more: More<'_>,
) -> ScriptOutput {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut files = vec![(
        root.join("lab/debug-kernel/leaks.sh"),
        "/tests/leaks.sh".to_owned(),
    )];
    for name in names.iter().chain(&["lib.sh"]) {
        let from = root.join("kernel/tests").join(name);
        files.push((from, format!("/tests/{name}")));
    }
    let files: Vec<_> = files
        .iter()
        .map(|(from, to)| (from.as_path(), to.as_str()))
        .chain(more.files.iter().copied())
        .collect();
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let modules = QDISC_MODULES.iter().chain(more.modules);
    let modules: Vec<&str> = modules.copied().collect();
    let spec = ScriptSpec {
        kernel,
        modules: &modules,
        files: &files,
        command,
        seed: 1,
        timeout,
        out_dir: folder.path(),
    };
    run_script(lab, &spec, &Quiet)
        .unwrap_or_else(|error| panic!("{kernel}, {names:?}: {error}\n{}", console(folder.path())))
}

/// Checks that a test has ended well, and that each line of its TAP is `ok`.
pub fn check_tap(place: impl Display, name: &str, status: i32, output: &str) {
    // `cargo test -- --nocapture` shows this.
    println!("{place}, {name}:\n{output}");
    let ok = output
        .lines()
        .filter(|line| line.starts_with("ok "))
        .count();
    let plan = format!("1..{ok}");
    assert!(
        status == 0 && ok > 0 && output.lines().any(|line| line == plan),
        "{place}, {name}: exit status {status}\n{output}"
    );
}

/// Returns every fourth case. Another kernel has others. Ids are random, so each part has all kinds.
fn a_part(cases: Vec<Case>, kernel: Kernel) -> Vec<Case> {
    let first = Kernel::ALL.iter().position(|of| *of == kernel);
    cases
        .into_iter()
        .skip(first.unwrap_or(0))
        .step_by(4)
        .collect()
}

/// Runs the conformance cases in a guest, a part of them unless everything is to run. Below the checkers
/// of the debug kernel a host is slower than the line of
/// 1 Gbit/s: a case of mode hybrid that is told so is as it should be.
pub fn conformance(lab: &Lab, kernel: Kernel, timeout: Duration) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/tdc");
    let mut cases = load_cases(&folder).unwrap_or_else(|error| panic!("{error}"));
    assert!(cases.len() >= 120, "only {} cases", cases.len());
    if !testkit::everything() && !lab.debug_kernel {
        let all = cases.len();
        cases = a_part(cases, kernel);
        println!("{} of {all} cases", cases.len());
    }
    let out = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let ran = run_tdc(lab, kernel, &cases, timeout, out.path(), &Quiet)
        .unwrap_or_else(|error| panic!("{kernel}: {error}\n{}", console(out.path())));
    let is_slow = |log: &str| lab.debug_kernel && log.contains("why_not_hybrid host_slow");
    let mut verdicts = ran.verdicts.iter();
    let is_right = verdicts.all(|of| of.faults.is_empty() || is_slow(&of.log));
    assert!(is_right && ran.references == 0, "{kernel}:\n{}", ran.tap());
}
