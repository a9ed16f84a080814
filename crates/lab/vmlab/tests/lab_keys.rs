// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changes the key of a guest and what does not. No guest boots here, but the module is
//! compiled once more for each change.

use std::fs;
use std::path::Path;

use scenario::{Kernel, Scenario};
use vmlab::{Keys, Lab, Quiet, RunSpec, Sources};
use walkdir::WalkDir;

use crate::common::scenario;

/// Folders whose sources end up in guests.
const FOLDERS: [&str; 6] = ["core", "kernel", "uapi", "lab", "tc", "tests"];

fn copy(from: &Path, to: &Path) {
    for folder in FOLDERS {
        for entry in WalkDir::new(from.join(folder)) {
            let entry = entry.unwrap();
            let target = to.join(entry.path().strip_prefix(from).unwrap());
            if entry.file_type().is_dir() {
                fs::create_dir_all(target).unwrap();
            } else if entry.file_type().is_file() {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }
}

fn key(lab: &Lab, scenario: &Scenario, kernel: Kernel) -> Keys {
    let spec = RunSpec {
        cells: &scenario.cells,
        per_boot: 1,
        kernel,
        seed: scenario.seed,
        out_dir: Path::new(""),
        jobs: None,
        timeout: None,
    };
    let mut keys = vmlab::keys(lab, &[spec], "the command", &Quiet).unwrap();
    assert_eq!(keys.len(), 1);
    keys.remove(0)
}

/// Another kernel's packages change the key of all, and not that of what is the project's.
#[test]
fn packages_are_not_the_projects() {
    let mut lab = Lab::find().unwrap();
    let scenario = scenario("");
    let plain = key(&lab, &scenario, Kernel::V6_1);
    lab.nics = vec!["e1000"];
    let other = key(&lab, &scenario, Kernel::V6_1);
    assert_eq!(plain.own, other.own);
    assert_ne!(plain.all, other.all);
}

/// A comment, and what it does to the numbers of lines, changes no key; a constant changes that of
/// guests with a psp, and of no others.
fn a_comment_changes_no_key_and_a_constant_does(kernel: Kernel) {
    let root = tempfile::tempdir().unwrap();
    let mut lab = Lab::find().unwrap();
    copy(lab.sources.path(), root.path());
    lab.sources = Sources::at(root.path().to_owned()).unwrap();
    let psp =
        scenario("[[tc]]\nhost = \"tx\"\nlines = [\"qdisc add dev eth0 root psp default 1\"]\n");
    let plain = scenario("");
    let keys = || [&psp, &plain].map(|scenario| key(&lab, scenario, kernel));
    let first = keys();
    assert_eq!(keys(), first);
    assert_ne!(first[0], first[1]);
    let change = |file: &str, from: &str, to: &str| {
        let path = root.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} has no {from:?}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
    };
    let line = "// SPDX-License-Identifier: GPL-2.0-only\n";
    let commented = format!("{line}/*\n * Why.\n */\n");
    for file in ["kernel/sch_psp.c", "kernel/psp_class.c", "kernel/psp_dev.c"] {
        change(file, line, &commented);
    }
    for file in ["lab/agent/agent.c", "lab/send/send.c", "lab/wire/wire_tx.c"] {
        change(file, line, &commented);
    }
    assert_eq!(keys(), first);
    change(
        "kernel/sch_psp.c",
        "(10ull * NSEC_PER_SEC)",
        "(11ull * NSEC_PER_SEC)",
    );
    let [with, without] = keys();
    assert_ne!(with.all, first[0].all);
    assert_ne!(with.own, first[0].own);
    assert_eq!(without, first[1]);
}

#[test]
fn a_comment_changes_no_key_v6_1() {
    a_comment_changes_no_key_and_a_constant_does(Kernel::V6_1);
}

#[test]
fn a_comment_changes_no_key_v6_12() {
    a_comment_changes_no_key_and_a_constant_does(Kernel::V6_12);
}

#[test]
fn a_comment_changes_no_key_v7() {
    a_comment_changes_no_key_and_a_constant_does(Kernel::V7);
}
