// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the qdisc beside the experiments: conformance cases, random operations, and the
//! kernel's own checkers.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use scenario::{Kernel, UnknownKernel};
use vmlab::{
    FuzzSpec, MACHINE_SCRIPTS, Machine, MachineTests, ScriptOutput, TdcOutput, load_cases,
    run_fuzz, run_machine_tests, run_tdc,
};

use crate::notes::Notes;

/// Limit of a guest's processor time; the debug kernel is some ten times slower.
const TIMEOUT: Duration = Duration::from_secs(2 * 3600);

/// Which guest a test runs in.
#[derive(Debug, Args)]
pub struct Guest {
    /// Kernel to boot [default: 6.1]
    #[arg(long, value_name = "6.1|6.12|7", value_parser = kernel(), hide_possible_values = true)]
    kernel: Option<Kernel>,
    /// The debug kernel instead; built first if the cache has none
    #[arg(long)]
    debug: bool,
}

/// Arguments of `cargo xtask tdc`.
#[derive(Debug, Args)]
pub struct Tdc {
    #[command(flatten)]
    guest: Guest,
    /// Only the case with this id, or those whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// Arguments of `cargo xtask fuzz`.
#[derive(Debug, Args)]
pub struct Fuzz {
    #[command(flatten)]
    guest: Guest,
    /// Seed of the operations: the same seed repeats a run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of operations
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    operations: u64,
}

/// Arguments of `cargo xtask machines`.
#[derive(Debug, Args)]
pub struct Machines {
    /// Machine to emulate [default: each]
    #[arg(long, value_name = "arm64|armhf|s390x", value_parser = machine(), hide_possible_values = true)]
    machine: Option<Machine>,
    /// Number of random operations at the end; with none, the module is not unloaded either
    #[arg(long, value_name = "N", default_value_t = 5000)]
    operations: u64,
}

fn machine() -> impl TypedValueParser<Value = Machine> {
    PossibleValuesParser::new(Machine::NAMES)
        .try_map(|name| -> Result<Machine, String> { name.parse() })
}

fn kernel() -> impl TypedValueParser<Value = Kernel> {
    PossibleValuesParser::new(Kernel::NAMES)
        .try_map(|name| -> Result<Kernel, UnknownKernel> { name.parse() })
}

fn lab(guest: &Guest) -> Result<(vmlab::Lab, Kernel)> {
    let mut lab = vmlab::Lab::find()?;
    lab.debug_kernel = guest.debug;
    let kernel = guest.kernel.unwrap_or(Kernel::V6_1);
    Ok((lab, kernel))
}

/// Runs the conformance cases.
///
/// # Errors
/// When `--only` names no case, or the guest fails. A case that fails is no error.
pub fn tdc(args: &Tdc) -> Result<TdcOutput> {
    let (lab, kernel) = lab(&args.guest)?;
    let mut cases = load_cases(&lab.sources.path().join("tests/tdc"))?;
    if let Some(text) = &args.only {
        cases.retain(|case| case.id == *text || case.name.contains(text.as_str()));
        ensure!(
            !cases.is_empty(),
            "--only {text}: no case has this id or name"
        );
    }
    let out = Path::new("out/tdc");
    let notes = Notes::default();
    Ok(run_tdc(&lab, kernel, &cases, TIMEOUT, out, &notes)?)
}

/// Runs the qdisc's own tests on other machines, and prints what they say.
pub fn machines(args: &Machines) -> Result<()> {
    let lab = vmlab::Lab::find()?;
    let one = args.machine.as_ref().map(std::slice::from_ref);
    for machine in one.unwrap_or(&Machine::ALL) {
        let tests = MachineTests {
            machine: *machine,
            scripts: MACHINE_SCRIPTS,
            operations: args.operations,
            timeout: TIMEOUT,
            out_dir: &Path::new("out/machines").join(machine.name()),
        };
        println!("# {}", machine.name());
        let ran = run_machine_tests(&lab, &tests, &Notes::default())?;
        print!("{}", ran.output);
        ensure!(ran.status == 0, "{}: a test failed", machine.name());
    }
    Ok(())
}

/// Runs random operations.
pub fn fuzz(args: &Fuzz) -> Result<ScriptOutput> {
    let (lab, kernel) = lab(&args.guest)?;
    let spec = FuzzSpec {
        kernel,
        seed: args.seed,
        operations: args.operations,
        timeout: TIMEOUT,
        out_dir: Path::new("out/fuzz"),
    };
    Ok(run_fuzz(&lab, spec, &Notes::default())?)
}

/// Runs checkpatch and sparse, and prints what they complain of.
pub fn lint() -> Result<()> {
    let complaints = vmlab::Lab::find()?.lint(Kernel::V6_1, &Notes::default())?;
    print!("{complaints}");
    ensure!(complaints.is_empty(), "checkpatch or sparse complains");
    println!("checkpatch and sparse: nothing to say");
    Ok(())
}
