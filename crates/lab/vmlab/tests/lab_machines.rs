// SPDX-License-Identifier: MIT OR Apache-2.0
//! The qdisc's own tests on machines of another order of bytes or another size of a word: Debian's
//! kernel of the machine, and the module, the plugin of tc and the programs compiled for it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use vmlab::{
    Lab, MACHINE_ENDS, MACHINE_SCRIPTS, Machine, MachineTests, Quiet, ScriptOutput, Sources,
    run_machine_tests,
};

use crate::common::{LONG, check_parts, console};

fn run(lab: &Lab, machine: Machine, scripts: &[&str], operations: u64) -> ScriptOutput {
    let folder = tempfile::tempdir().unwrap();
    let tests = MachineTests {
        machine,
        scripts,
        operations,
        timeout: LONG * 3,
        out_dir: folder.path(),
    };
    run_machine_tests(lab, &tests, &Quiet)
        .unwrap_or_else(|error| panic!("{}: {error}\n{}", machine.name(), console(folder.path())))
}

fn all(machine: Machine) {
    let ran = run(&Lab::find().unwrap(), machine, MACHINE_SCRIPTS, 5000);
    let names = [MACHINE_SCRIPTS, &MACHINE_ENDS].concat();
    check_parts(machine.name(), &names, &ran);
}

#[test]
fn arm64() {
    all(Machine::Arm64);
}

#[test]
fn armhf_of_32_bits() {
    all(Machine::Armhf);
}

#[test]
fn s390x_of_big_endian() {
    all(Machine::S390x);
}

/// Makes sources of which a file of the qdisc has other text.
fn sources_with(folder: &Path, name: &str, from: &str, to: &str) -> Sources {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let root = root.canonicalize().unwrap();
    for name in ["lab", "tc", "uapi", "core"] {
        symlink(root.join(name), folder.join(name)).unwrap();
    }
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(root.join("kernel")).arg(folder);
    assert!(copy.status().unwrap().success());
    let file = folder.join("kernel").join(name);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "{name}: {from}");
    fs::write(&file, text.replace(from, to)).unwrap();
    Sources::at(folder.to_owned()).unwrap()
}

/// A number of 64 bits, of which a kernel reads the first 32: little endian shows no fault for a
/// rate below 4 Gbit/s.
#[test]
fn a_number_that_is_read_by_half_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut lab = Lab::find().unwrap();
    lab.sources = sources_with(
        folder.path(),
        "psp_netlink.c",
        "nla_get_u64(tb[TCA_PSP_CLASS_CEIL])",
        "nla_get_u32(tb[TCA_PSP_CLASS_CEIL])",
    );
    let script = ["bad-input.sh"];
    let ran = run(&lab, Machine::S390x, &script, 0);
    let text = &ran.output;
    let found = "not ok 19 - ceil below the rate";
    assert!(ran.status != 0 && text.contains(found), "{text}");
    let blind = run(&lab, Machine::Arm64, &script, 0);
    check_parts("arm64", &script, &blind);
}
