// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs random operations (`lab/fuzz`) in a guest.

use std::path::Path;
use std::time::Duration;

use scenario::Kernel;

use crate::error::Error;
use crate::kbuild;
use crate::progress::Progress;
use crate::script::{QDISC_MODULES, ScriptOutput, ScriptSpec, run_script};
use crate::setup::Lab;

/// Describes what [`run_fuzz`] is to do. The same description gives the same operations.
#[derive(Clone, Copy, Debug)]
pub struct FuzzSpec<'a> {
    /// The kernel to run the operations on.
    pub kernel: Kernel,
    /// Seed of the operations.
    pub seed: u64,
    pub operations: u64,
    /// Limit of the processor time.
    pub timeout: Duration,
    /// Folder for the logs.
    pub out_dir: &'a Path,
}

/// Runs random operations; the output is TAP.
///
/// # Errors
/// When the guest cannot be made, or its kernel complains, panics or hangs.
pub fn run_fuzz(
    lab: &Lab,
    spec: FuzzSpec<'_>,
    progress: &dyn Progress,
) -> Result<ScriptOutput, Error> {
    let slow = if lab.debug_kernel { 10 } else { 1 };
    let (seed, operations) = (spec.seed, spec.operations);
    let script = format!("SEED={seed} OPERATIONS={operations} SLOW={slow} sh");
    run(lab, spec, &script, "run.sh", progress)
}

/// Makes each allocation of each request fail once (`seed` and `operations` are not used); the
/// output is TAP. It needs the debug kernel.
///
/// # Errors
/// As [`run_fuzz`].
pub fn run_no_memory(
    lab: &Lab,
    spec: FuzzSpec<'_>,
    progress: &dyn Progress,
) -> Result<ScriptOutput, Error> {
    run(lab, spec, "sh", "no-memory.sh", progress)
}

fn run(
    lab: &Lab,
    spec: FuzzSpec<'_>,
    shell: &str,
    script: &str,
    progress: &dyn Progress,
) -> Result<ScriptOutput, Error> {
    let programs = kbuild::programs(&lab.cache, &lab.sources, progress)?;
    let source = |name: &str| lab.sources.path().join(name);
    let files = [
        (programs.join("psp-fuzz"), "/usr/bin/psp-fuzz"),
        (programs.join("psp-fail"), "/usr/bin/psp-fail"),
        (source("lab/fuzz").join(script), "/tests/script.sh"),
        (source("kernel/tests/lib.sh"), "/tests/lib.sh"),
        (source("lab/debug-kernel/leaks.sh"), "/tests/leaks.sh"),
    ];
    let files: Vec<_> = files
        .iter()
        .map(|(from, to)| (from.as_path(), *to))
        .collect();
    let script = ScriptSpec {
        kernel: spec.kernel,
        modules: QDISC_MODULES,
        files: &files,
        command: &format!("{shell} /tests/leaks.sh sh /tests/script.sh"),
        seed: 1,
        timeout: spec.timeout,
        out_dir: spec.out_dir,
    };
    run_script(lab, &script, progress)
}
