// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer experiments` of the simulator, without guests.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{Folder, text};
use serde_json::Value;
use testkit::has;

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

/// Makes a tree with one experiment.
fn tree(name: &str) -> Folder {
    let tree = Folder::new(name);
    for folder in ["experiments/tiny", "docs"] {
        fs::create_dir_all(tree.0.join(folder)).unwrap();
    }
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
        .env("PSPACER_CACHE", tree.0.join("cache"))
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
    // A comment and words decide nothing.
    tree.file(
        "experiments/tiny/scenario.toml",
        format!("# Why.\n{SCENARIO}").as_bytes(),
    );
    stale("\"changed\": []", 0);
    let longer = SCENARIO.replace("1mb", "2mb");
    tree.file("experiments/tiny/scenario.toml", longer.as_bytes());
    stale("\"tiny\"", 1);
    full(&[], true);
    stale("\"changed\": []", 0);
}

/// What a cell measured is in the store: a page of which the store has everything is made without a
/// run, and one cell that changes is the one that runs.
#[test]
fn a_cell_whose_key_is_unchanged_does_not_run() {
    let tree = tree("experiments-stored");
    let swept = |sizes: &str| {
        SCENARIO
            .replace("snap = 0", "snap = 0\ndelay = \"${delay}\"")
            .replace("[[host]]\nname = \"tx\"", "")
            .replacen(
                "[[host]]",
                "[sweep]\ndelay = SIZES\n[[host]]\nname = \"tx\"\n[[host]]",
                1,
            )
            .replace("SIZES", sizes)
    };
    let made = |sizes: &str| {
        tree.file("experiments/tiny/scenario.toml", swept(sizes).as_bytes());
        let out = experiments(&tree, &tree.0, &["--only", "tiny"]);
        let said = text(&out.stderr);
        assert!(out.status.success(), "{said}");
        let measured = said.lines().find(|line| line.contains("guests and cells"));
        measured.unwrap_or_default().to_owned()
    };
    has(made("[\"1ms\", \"2ms\"]"), ["2 guests and cells"]);
    let page = fs::read_to_string(tree.0.join("out/quick/tiny.md")).unwrap();
    assert_eq!(made("[\"1ms\", \"2ms\"]"), "");
    let again = fs::read_to_string(tree.0.join("out/quick/tiny.md")).unwrap();
    assert_eq!(page, again);
    has(made("[\"1ms\", \"3ms\"]"), ["1 guests and cells"]);
    // Nothing that a run recorded is left.
    let left = tree.0.join("out/quick-runs/tiny");
    assert!(left.join("result.json").is_file());
    let mut files = walkdir(&left);
    files.retain(|name| name.starts_with("timeline"));
    assert!(files.is_empty(), "{files:?}");
}

/// Returns the names of all files below a folder.
fn walkdir(folder: &Path) -> Vec<String> {
    let mut names = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(walkdir(&path));
        } else {
            names.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    names
}
