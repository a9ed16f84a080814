// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer experiments` of the simulator, without guests.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{Folder, text};
use serde_json::Value;

const SCENARIO: &str = r#"
name = "tiny"
title = "One short transfer"
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
snap = 0
[[flow]]
name = "bulk"
type = "tcp"
stack = "2.6.22"
bytes = "1mb"
from = "tx"
to = "rx"
[[bound]]
flow = "bulk"
metric = "unfinished"
max = 0
"#;

const PAPER: &str = r#"
reports = "Nothing."
differs = "It is tiny."
[index]
reports = "Nothing in one line."
ours = "One transfer."
judged_by = "bounds"
"#;

/// Makes a tree with one experiment, and the folders whose code decides its figures.
fn tree(name: &str) -> Folder {
    let tree = Folder::new(name);
    for folder in [
        "core/include",
        "core/src",
        "core/deps",
        "crates/lab/netsim/src",
        "crates/lab/metrics/src",
        "crates/base/pace/src",
        "experiments/tiny",
        "docs",
    ] {
        fs::create_dir_all(tree.0.join(folder)).unwrap();
    }
    tree.file("core/src/a.c", b"int a;");
    tree.file("experiments/tiny/scenario.toml", SCENARIO.as_bytes());
    tree.file("experiments/tiny/paper.toml", PAPER.as_bytes());
    tree
}

/// Runs `pspacer experiments` from a folder.
fn experiments(tree: &Folder, from: &Path, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pspacer"))
        .arg("experiments")
        .args(options)
        .current_dir(from)
        .env("PSPACER_ROOT", &tree.0) // which has no sources for a guest
        .output()
        .unwrap()
}

/// `--only` keeps the pages and lines of other experiments.
#[test]
fn only_one_page_and_one_line_are_written() {
    let tree = tree("experiments-only");
    fs::create_dir_all(tree.0.join("out/quick")).unwrap();
    let other = "| [other](other.md) | a | b | **missed**: c |\n";
    let old = "| [tiny](tiny.md) | old | old | old |\n";
    let head = "a head of a person\n\n| a | b | c | d |\n|---|---|---|---|\n";
    tree.file(
        "out/quick/README.md",
        (head.to_owned() + other + old).as_bytes(),
    );
    tree.file("out/quick/other.md", b"another page");
    let out = experiments(&tree, &tree.0, &["--only", "tiny", "--json"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let printed: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(printed["table"][0]["unfinished"], 0.0, "{printed}");
    let index = fs::read_to_string(tree.0.join("out/quick/README.md")).unwrap();
    let (kept, fresh) = index.split_at(head.len() + other.len());
    assert_eq!(kept, head.to_owned() + other);
    let line = "| [tiny](tiny.md) | Nothing in one line. | One transfer. | \
                **reached**: all 1 bounds hold |\n";
    assert_eq!(fresh, line);
    let page = fs::read_to_string(tree.0.join("out/quick/other.md")).unwrap();
    assert_eq!(page, "another page");
}

/// The full form writes the project's own pages, from any working folder, and a page of which
/// nothing has changed is not made again.
#[test]
fn a_page_is_made_again_once_its_code_changes() {
    let tree = tree("experiments-docs");
    let below = tree.0.join("below");
    fs::create_dir_all(&below).unwrap();
    let page = tree.0.join("docs/results/tiny.md");
    let stale = |expected: &str, code: i32| {
        let out = experiments(&tree, &below, &["--stale", "--json"]);
        let said = text(&out.stdout);
        assert!(said.contains(expected), "{expected}: {said}");
        assert_eq!(out.status.code(), Some(code), "{said}");
    };
    let full = |options: &[&str], is_made: bool| {
        if page.exists() {
            let kept = fs::read_to_string(&page).unwrap();
            fs::write(&page, kept + "<!-- kept -->\n").unwrap();
        }
        let out = experiments(&tree, &below, &[&["--full"], options].concat());
        assert!(out.status.success(), "{}", text(&out.stderr));
        let now = fs::read_to_string(&page).unwrap();
        assert_eq!(!now.contains("kept"), is_made, "{options:?}");
    };
    stale("not known", 1);
    full(&[], true);
    assert!(!below.join("docs").exists());
    stale("\"changed\": []", 0);
    full(&[], false);
    full(&["--again"], true);
    tree.file("core/src/a.c", b"int b;");
    stale("simulator", 1);
    full(&[], true);
    stale("\"changed\": []", 0);
}
