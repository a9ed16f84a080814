// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command as people call it: what it refuses, and how it says so.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{Folder, pspacer, root};

/// Refused with this exit status, one sentence on standard error that has all
/// of `words`, and nothing on standard output.
fn refused(args: &[&str], status: i32, words: &[&str]) {
    let out = pspacer(args);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(status), "{args:?}: {said}");
    assert!(out.stdout.is_empty(), "{args:?}");
    for word in words {
        assert!(
            said.contains(word),
            "{args:?}: expected {word:?} in: {said}"
        );
    }
    if status == 1 {
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    }
}

#[test]
fn list_names_every_experiment() {
    let out = pspacer(&["lab", "list", "--json"]);
    assert!(out.status.success());
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&out.stdout).unwrap();
    for folder in std::fs::read_dir(root().join("experiments")).unwrap() {
        let folder = folder.unwrap().path();
        let within = |r: &serde_json::Value| {
            root().join(r["file"].as_str().unwrap()).parent() == Some(folder.as_path())
        };
        // Some compare runs of scenarios that are in other folders.
        let paper = std::fs::read_to_string(folder.join("paper.toml")).unwrap();
        let compares = paper.contains("\n[[both]]") || paper.contains("\n[both]");
        assert!(
            rows.iter().any(within) || compares,
            "{}: no scenario listed",
            folder.display()
        );
    }
}

#[test]
fn unknown_scenarios_and_wrong_options_are_refused() {
    refused(
        &["lab", "run", "no-such"],
        1,
        &["no-such", "busy-host", "there are"],
    );
    refused(
        &["lab", "run", "busy-host", "--kernel", "5.4"],
        1,
        &["5.4", "6.12"],
    );
    refused(
        &["lab", "run", "busy-host", "--set", "rate"],
        1,
        &["--set", "KEY=VALUE"],
    );
    refused(
        &["lab", "run", "busy-host", "--set", "speed=1"],
        1,
        &["speed"],
    );
    refused(
        &["lab", "run", "busy-host", "--set", "rate=fast"],
        1,
        &["fast"],
    );
    refused(&["lab", "run"], 2, &["SCENARIO"]);
    refused(&["lab", "fly"], 2, &["fly"]);
    refused(&["measure", "/nonexistent.pcap"], 1, &["/nonexistent.pcap"]);
}

#[test]
fn wrong_scenarios_name_file_line_and_key() {
    let folder = Folder::new("command-scenarios");
    let dir = &folder.0;
    let good = std::fs::read_to_string(root().join("experiments/busy-host/scenario.toml")).unwrap();
    let cases = [
        (
            "key.toml",
            good.replace("sink = true", "sinc = true"),
            &["sinc", "sink"][..],
        ),
        (
            "unit.toml",
            good.replace("rate = \"1gbit\"", "rate = \"1furlong\""),
            &["1furlong"],
        ),
        (
            "host.toml",
            good.replace("from = \"tx\"", "from = \"ty\""),
            &["\"ty\"", "tx"],
        ),
        (
            "window.toml",
            good.replace("window = \"steady\"", "window = \"calm\""),
            &["calm", "steady"],
        ),
        ("toml.toml", good.replace("[sweep]", "[sweep"), &[]),
    ];
    for (name, text, words) in cases {
        let path = dir.join(name);
        std::fs::write(&path, &text).unwrap();
        let line_of = |what: &str| text.lines().position(|l| l.contains(what)).map(|i| i + 1);
        let line = words.first().and_then(|w| line_of(w));
        let line = line.map(|l| format!(":{l}")).unwrap_or_default();
        let expected: Vec<&str> = words.iter().copied().chain([name, line.as_str()]).collect();
        refused(&["lab", "run", &path.display().to_string()], 1, &expected);
    }
}

#[test]
fn a_folder_with_somebodys_files_is_not_emptied() {
    let folder = Folder::new("command-out");
    let dir = &folder.0;
    std::fs::write(dir.join("thesis.txt"), "years of work").unwrap();
    refused(
        &[
            "lab",
            "run",
            "busy-host",
            "--quick",
            "--out",
            &dir.display().to_string(),
        ],
        1,
        &["--out", "not results of ours"],
    );
    assert!(dir.join("thesis.txt").is_file());
}

#[test]
fn the_manual_page_is_current() {
    let out = pspacer(&["man"]);
    assert!(out.status.success());
    let kept = std::fs::read(root().join("docs/man/pspacer.1")).unwrap();
    assert!(
        out.stdout == kept,
        "docs/man/pspacer.1 is not what the command says: run `pspacer man > docs/man/pspacer.1`"
    );
}
