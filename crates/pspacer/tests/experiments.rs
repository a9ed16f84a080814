// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer experiments` without guests.

use std::fs;
use std::process::{Command, Output};

use crate::common::capture::Capture;
use crate::common::{Folder, text};
use serde_json::{Value, json};

const SCENARIO: &str = r#"
name = "tiny"
title = "A closed window"
source = "made here"
duration = "2s"
[[host]]
name = "tx"
[[host]]
name = "rx"
[[cable]]
name = "wire"
ends = ["tx:eth0", "rx:eth0"]
rate = "100mbit"
snap = 96
[[capture]]
name = "sender"
cable = "wire"
at = "tx"
[[flow]]
name = "bulk"
type = "tcp"
from = "tx"
to = "rx"
port = 80
[[stop]]
flow = "bulk"
cause = "receiver-window-closed"
side = "receiver"
from = "200ms"
to = "800ms"
"#;

const PAPER: &str = r#"
reports = "Nothing."
differs = "It is tiny."
[index]
reports = "Nothing in one line."
ours = "One stall."
judged_by = "stops"
[stops]
kernels = ["6.1"]
quick_kernels = ["6.1"]
right_min_pct = 95
"#;

/// Makes a tree with one experiment and a run's results as the laboratory leaves them: a
/// capture whose clock is at 1 s when t = 0, and an old verdict.
fn tree(name: &str, zero_ns: Option<u64>) -> Folder {
    let tree = Folder::new(name);
    let cell = tree.0.join("out/quick-runs/tiny/cell-0");
    for folder in [
        &tree.0.join("core"),
        &tree.0.join("experiments/tiny"),
        &cell,
    ] {
        fs::create_dir_all(folder).unwrap();
    }
    tree.file("experiments/tiny/scenario.toml", SCENARIO.as_bytes());
    tree.file("experiments/tiny/paper.toml", PAPER.as_bytes());
    let mut capture = Capture::new();
    capture.transfer(1_000_000, 20_001, 40, Some(20));
    fs::write(cell.join("sender.pcapng"), capture.0).unwrap();
    let curves = json!({
        "interval_s": 1.0, "duration_s": 2.0, "queue_window": "all", "flows": [], "wire": {},
    });
    fs::write(cell.join("curves.json"), curves.to_string()).unwrap();
    let mut result = json!({
        "format": "pspacer-result-1", "scenario": "tiny", "title": "A closed window",
        "source": "made here", "engine": "vmlab", "kernel": "6.1.0", "seed": 1, "ok": true,
        "cells": [{
            "params": {}, "dir": "cell-0", "windows": [], "bounds": [], "tc": {},
            "flow_reports": {},
            "stops": [{
                "flow": "bulk", "cause": "receiver-window-closed", "side": "receiver",
                "from_s": 0.2, "to_s": 0.8, "seen": { "sender": null },
            }],
        }],
    });
    if let Some(zero_ns) = zero_ns {
        result["cells"][0]["zero_ns"] = zero_ns.into();
    }
    tree.file(
        "out/quick-runs/tiny/result.json",
        result.to_string().as_bytes(),
    );
    tree
}

fn experiments(tree: &Folder) -> Output {
    experiments_from(tree, &tree.0, &[])
}

/// Runs `pspacer experiments` from another folder, with more options.
fn experiments_from(tree: &Folder, from: &std::path::Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pspacer"))
        .args(["experiments", "--only", "tiny", "--reuse", "--json"])
        .args(more)
        .current_dir(from)
        .env("PSPACER_ROOT", &tree.0) // which has no sources for a guest
        .output()
        .unwrap()
}

#[test]
fn stored_captures_are_judged_anew() {
    let tree = tree("experiments-reuse", Some(1_000_000_000));
    let out = experiments(&tree);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let printed: Value = serde_json::from_slice(&out.stdout).unwrap();
    let seen = &printed["results"][0]["cells"][0]["stops"][0]["seen"]["sender"];
    assert_eq!(seen["cause"], "receiver-window-closed", "{printed}");
    // The stall begins 20 rounds after the handshake, counted from t = 0.
    let start_s = seen["start_s"].as_f64().unwrap();
    assert!((0.2..0.23).contains(&start_s), "{start_s}");
    let page = fs::read_to_string(tree.0.join("out/quick/tiny.md")).unwrap();
    assert!(
        page.contains("1 stalls, 1 judgements: 100.0 % are right"),
        "{page}"
    );
    let index = fs::read_to_string(tree.0.join("out/quick/README.md")).unwrap();
    let line = "| [tiny](tiny.md) | Nothing in one line. | One stall. | \
                **reached**: 100.0 % of the judgements are right |";
    assert!(index.lines().any(|l| l == line), "{index}");
    let kept = fs::read_to_string(tree.0.join("out/quick-runs/tiny/result.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept, printed["results"][0]);
}

#[test]
fn what_cannot_be_judged_anew_is_not_taken() {
    let tree = tree("experiments-unknown-zero", None);
    let out = experiments(&tree);
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    assert!(said.contains("sources"), "a guest is wanted: {said}");
}

/// A result of 6.12 is not taken for 6.1, although its release begins with the same digits.
#[test]
fn the_results_of_another_kernel_are_not_taken() {
    for (release, is_taken) in [
        ("6.1.0", true),
        ("6.1", true),
        ("6.1-rc3", true),
        ("6.12.9", false),
    ] {
        let tree = tree("experiments-kernel", Some(1_000_000_000));
        let kept = tree.0.join("out/quick-runs/tiny/result.json");
        let text_of = fs::read_to_string(&kept).unwrap().replace("6.1.0", release);
        fs::write(&kept, text_of).unwrap();
        let out = experiments(&tree);
        let said = text(&out.stderr);
        assert_eq!(out.status.success(), is_taken, "{release}: {said}");
        assert_eq!(
            said.contains("sources"),
            !is_taken,
            "{release}: a guest is wanted: {said}"
        );
    }
}

/// `--only` keeps the pages and lines of other experiments.
#[test]
fn only_one_page_and_one_line_are_written() {
    let tree = tree("experiments-only", Some(1_000_000_000));
    fs::create_dir_all(tree.0.join("out/quick")).unwrap();
    let other = "| [other](other.md) | a | b | **missed**: c |\n";
    let old = "| [tiny](tiny.md) | old | old | old |\n";
    let head = "a head of a person\n\n| a | b | c | d |\n|---|---|---|---|\n";
    tree.file(
        "out/quick/README.md",
        (head.to_owned() + other + old).as_bytes(),
    );
    tree.file("out/quick/other.md", b"another page");
    let out = experiments(&tree);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let index = fs::read_to_string(tree.0.join("out/quick/README.md")).unwrap();
    let (kept, fresh) = index.split_at(head.len() + other.len());
    assert_eq!(kept, head.to_owned() + other);
    assert!(
        fresh.contains("One stall.") && fresh.lines().count() == 1,
        "{fresh}"
    );
    let page = fs::read_to_string(tree.0.join("out/quick/other.md")).unwrap();
    assert_eq!(page, "another page");
}

/// The full form writes the project's own pages, from any working folder.
#[test]
fn the_page_is_in_the_project_and_not_in_the_working_folder() {
    let tree = tree("experiments-docs", Some(1_000_000_000));
    let below = tree.0.join("below");
    fs::create_dir_all(below.join("out/experiments")).unwrap();
    fs::rename(
        tree.0.join("out/quick-runs/tiny"),
        below.join("out/experiments/tiny"),
    )
    .unwrap();
    fs::create_dir(tree.0.join("docs")).unwrap();
    let out = experiments_from(&tree, &below, &["--full"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(tree.0.join("docs/results/tiny.md").is_file());
    assert!(!below.join("docs").exists());
}
