// SPDX-License-Identifier: MIT OR Apache-2.0
//! The profile counts what the guest executes, and does not change it.

use std::fs;

use scenario::Kernel;
use vmlab::{CellOutput, Lab, Quiet, RunSpec};

use crate::common::{LONG, scenario};

fn run(profile: bool) -> (CellOutput, Vec<u8>) {
    let more = r#"
sink = true
[[tc]]
host = "tx"
lines = [
  "qdisc add dev eth0 root handle 1: psp default 1 mode timer",
  "class add dev eth0 parent 1: classid 1:1 psp rate 10mbit",
]
[[window]]
name = "all"
from = "2ms"
"#;
    let scenario = scenario(more);
    let folder = tempfile::tempdir().unwrap();
    let mut lab = Lab::find().unwrap();
    lab.profile = profile;
    let spec = RunSpec {
        cells: &scenario.cells,
        per_boot: 1,
        kernel: Kernel::V6_1,
        seed: 1,
        out_dir: folder.path(),
        jobs: None,
        timeout: Some(LONG),
    };
    let mut ran = vmlab::run(&lab, &spec, &Quiet).unwrap_or_else(|error| panic!("{error}"));
    let cell = ran.cells.remove(0);
    let timeline = fs::read(cell.dir.join("timeline.wire.a")).unwrap();
    (cell, timeline)
}

#[test]
fn a_profile_counts_every_instruction_and_changes_nothing() {
    let (plain, expected) = run(false);
    let (profiled, timeline) = run(true);
    assert!(plain.profile.is_empty());
    assert!(!expected.is_empty() && timeline == expected);
    assert_eq!(plain.busy_ns, profiled.busy_ns);

    let rows = &profiled.profile[0];
    let counted: u64 = rows.iter().map(|row| row.instructions).sum();
    let busy = profiled.busy_ns[0];
    // An instruction is a nanosecond. What the idle task executes itself is idle time.
    assert!(
        counted >= busy && counted < busy + busy / 10,
        "{counted} instructions, busy for {busy} ns"
    );
    let sum = |function: &str| -> u64 {
        let of = rows.iter().filter(|row| row.function == function);
        of.map(|row| row.instructions).sum()
    };
    assert!(sum("psp_dequeue") > 0 && sum("programs") > 0);
    let inlined = |row: &&vmlab::ProfileRow| row.module == "sch_psp" && row.inlined != row.function;
    assert!(rows.iter().any(|row| inlined(&row)));
}
