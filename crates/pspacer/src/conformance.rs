// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer lab tdc` and `pspacer lab fuzz`: what the qdisc is held to beside
//! the experiments.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use scenario::Kernel;
use vmlab::{FuzzSpec, load_cases, run_fuzz, run_tdc};

use crate::bars::Bars;
use crate::cli::{Guest, LabFuzz, LabTdc};
use crate::output::print;

/// Processor time of a guest; the debug kernel is some ten times slower.
const TIMEOUT: Duration = Duration::from_secs(2 * 3600);

fn lab(guest: &Guest) -> Result<(vmlab::Lab, Kernel)> {
    let mut lab = vmlab::Lab::find()?;
    lab.debug_kernel = guest.debug;
    let kernel = guest.kernel.unwrap_or(Kernel::V6_1);
    Ok((lab, kernel))
}

/// Runs the cases and prints TAP; `false` if one failed.
pub fn tdc(args: &LabTdc) -> Result<bool> {
    let (lab, kernel) = lab(&args.guest)?;
    let mut cases = load_cases(&lab.sources.path().join("tests/tdc"))?;
    if let Some(text) = &args.only {
        cases.retain(|case| case.id == *text || case.name.contains(text.as_str()));
        ensure!(
            !cases.is_empty(),
            "--only {text}: no case has this id or name"
        );
    }
    let bars = Bars::new();
    let out = Path::new("out/tdc");
    let ran = run_tdc(&lab, kernel, &cases, TIMEOUT, out, &bars);
    bars.clear();
    let ran = ran?;
    print(&ran.tap())?;
    Ok(ran.is_ok())
}

/// Runs random operations and prints TAP; `false` if something was wrong.
pub fn fuzz(args: &LabFuzz) -> Result<bool> {
    let (lab, kernel) = lab(&args.guest)?;
    let bars = Bars::new();
    let spec = FuzzSpec {
        kernel,
        seed: args.seed,
        operations: args.operations,
        timeout: TIMEOUT,
        out_dir: Path::new("out/fuzz"),
    };
    let ran = run_fuzz(&lab, spec, &bars);
    bars.clear();
    let ran = ran?;
    print(&ran.output)?;
    Ok(ran.status == 0)
}
