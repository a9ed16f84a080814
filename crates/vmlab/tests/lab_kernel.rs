// SPDX-License-Identifier: MIT OR Apache-2.0
//! The qdisc's own tests, `kernel/tests/*.sh`, each in a guest: no kernel
//! complaint, and every line of their TAP is `ok`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]

mod common;

use std::path::{Path, PathBuf};

use common::LONG;
use scenario::Kernel;
use vmlab::{Lab, Quiet, ScriptSpec, run_script};

const MODULES: &[&str] = &[
    "sch_psp",
    "wire",
    "pktgen",
    "veth",
    "dummy",
    "ifb",
    "8021q",
    "sch_netem",
    "sch_prio",
    "sch_tbf",
    "sch_htb",
    "sch_sfq",
    "sch_red",
    "sch_fq",
    "sch_codel",
    "sch_fq_codel",
    "sch_drr",
    "sch_mqprio",
    "cls_u32",
    "cls_flower",
    "cls_matchall",
    "cls_basic",
    "act_gact",
    "act_mirred",
    "act_police",
    "act_skbedit",
];

fn run(kernel: Kernel, name: &str, variables: &str) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel/tests");
    let files: Vec<(PathBuf, String)> = ["lib.sh", name]
        .iter()
        .map(|file| (tests.join(file), format!("/tests/{file}")))
        .collect();
    let files: Vec<_> = files
        .iter()
        .map(|(from, to)| (from.as_path(), to.as_str()))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let command = format!("{variables} sh /tests/{name}");
    let spec = ScriptSpec {
        kernel,
        modules: MODULES,
        files: &files,
        command: &command,
        seed: 1,
        timeout: LONG * 2,
        out_dir: folder.path(),
    };
    let output = run_script(&Lab::find().unwrap(), &spec, &Quiet)
        .unwrap_or_else(|error| panic!("{kernel}, {name}: {error}\n{}", console(folder.path())));
    let ok = output
        .output
        .lines()
        .filter(|line| line.starts_with("ok "))
        .count();
    let plan = format!("1..{ok}");
    assert!(
        output.status == 0 && ok > 0 && output.output.lines().any(|line| line == plan),
        "{kernel}, {name}: exit status {}\n{}",
        output.status,
        output.output
    );
}

/// The end of a console that a temporary folder takes with it.
fn console(folder: &Path) -> String {
    let text = std::fs::read_to_string(folder.join("console.log")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

#[test]
fn bad_input_is_refused() {
    for kernel in Kernel::ALL {
        run(kernel, "bad-input.sh", "");
    }
}

#[test]
fn the_papers_commands_work_word_for_word() {
    for kernel in Kernel::ALL {
        run(kernel, "papers.sh", "");
    }
}

#[test]
fn traps_of_other_qdiscs() {
    for kernel in Kernel::ALL {
        run(kernel, "traps.sh", "");
    }
}

#[test]
fn changes_under_traffic() {
    run(Kernel::V6_1, "stress.sh", "");
}

#[test]
fn gap_frames_modes_and_the_link() {
    for kernel in Kernel::ALL {
        run(kernel, "gaps.sh", "");
    }
}

#[test]
fn trains_cut_and_whole() {
    for kernel in Kernel::ALL {
        run(kernel, "trains.sh", "");
    }
}

#[test]
fn deadlines_and_ceil() {
    for kernel in Kernel::ALL {
        run(kernel, "waits.sh", "");
    }
}

#[test]
fn guard() {
    for kernel in Kernel::ALL {
        run(kernel, "guard.sh", "");
    }
}

#[test]
fn shares_of_a_line_below_mq() {
    for kernel in Kernel::ALL {
        run(kernel, "shares.sh", "");
    }
}
