// SPDX-License-Identifier: MIT OR Apache-2.0
//! The qdisc's own tests on another machine.

use std::path::Path;
use std::time::Duration;

use crate::error::Error;
use crate::machine::{Machine, MachineSpec, run_on};
use crate::progress::Progress;
use crate::script::{QDISC_MODULES, ScriptOutput};
use crate::setup::Lab;

/// Tests of `kernel/tests` that a machine runs, one after the other. The last one sets the clocks.
pub const MACHINE_SCRIPTS: &[&str] = &[
    "bad-input.sh",
    "changes.sh",
    "memory.sh",
    "papers.sh",
    "gaps.sh",
    "bursts.sh",
    "fifo.sh",
    "shares.sh",
    "throttled-many.sh",
    "txtime.sh",
];
/// Names of the tests that follow: random operations, at whose end the module goes; and a module
/// that comes and goes.
pub const MACHINE_ENDS: [&str; 2] = ["random.sh", "unload.sh"];

/// The longest time of a timer's interrupt on these machines: on arm64 it is 2500 ns, on armhf 2800.
const INTERRUPT_NS: u32 = 3000;

/// Describes what [`run_machine_tests`] is to do.
#[derive(Clone, Debug)]
pub struct MachineTests<'a> {
    /// Where the tests run.
    pub machine: Machine,
    /// Names of tests in `kernel/tests`.
    pub scripts: &'a [&'a str],
    /// Random operations; with none, [`MACHINE_ENDS`] is left out.
    pub operations: u64,
    /// Limit of the processor time.
    pub timeout: Duration,
    /// Folder for the logs.
    pub out_dir: &'a Path,
}

/// Runs tests of the qdisc in one guest of another machine. A line `@@ begin NAME` stands before
/// what each prints, and `@@ end NAME STATUS` behind it. A test that fails is no error.
///
/// # Errors
/// As [`run_on`].
pub fn run_machine_tests(
    lab: &Lab,
    tests: &MachineTests<'_>,
    progress: &dyn Progress,
) -> Result<ScriptOutput, Error> {
    let [random, unload] = MACHINE_ENDS;
    let own = ["lib.sh", "several.sh", unload];
    let source = |name: &str| lab.sources.path().join(name);
    let mut files: Vec<_> = own
        .iter()
        .chain(tests.scripts)
        .map(|name| {
            let from = source("kernel/tests").join(name);
            (from, format!("/tests/{name}"))
        })
        .collect();
    files.push((source("lab/fuzz/run.sh"), format!("/tests/{random}")));
    let files: Vec<_> = files
        .iter()
        .map(|(from, to)| (from.as_path(), to.as_str()))
        .collect();
    let modules: Vec<&str> = [QDISC_MODULES, &["8021q", "act_vlan"]].concat();
    let mut command = format!(
        "export INTERRUPT_NS={INTERRUPT_NS}\nsh /tests/several.sh {}\nall=$?\n",
        tests.scripts.join(" ")
    );
    if tests.operations > 0 {
        command += &format!("export OPERATIONS={}\n", tests.operations);
        for name in MACHINE_ENDS {
            command += &format!(
                "echo '@@ begin {name}'\nsh /tests/{name}\nstatus=$?\n\
                 [ $status = 0 ] || all=1\necho \"@@ end {name} $status\"\n"
            );
        }
    }
    command += "exit $all\n";
    let spec = MachineSpec {
        machine: tests.machine,
        modules: &modules,
        files: &files,
        command: &command,
        timeout: tests.timeout,
        out_dir: tests.out_dir,
    };
    run_on(lab, &spec, progress)
}
