// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command as users call it: errors and their messages, help, completions.

use crate::common::{Folder, pspacer, refused, root, text, well};
use testkit::has;

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
        // Some experiments only compare runs of scenarios in other folders.
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
        2,
        &["5.4", "6.12", "--kernel"],
    );
    let kernel = |value| ["lab", "run", "busy-host", "--kernel", value];
    refused(&kernel("6.13"), 2, &["6.13", "6.12"]);
    refused(&kernel(""), 2, &["6.12"]);
    refused(
        &["lab", "run", "busy-host", "--set", "rate"],
        2,
        &["--set", "KEY=VALUE"],
    );
    refused(
        &["predict", "x.json", "--cell", "routers"],
        2,
        &["--cell", "KEY=VALUE"],
    );
    for args in [
        &["predict", "--beta", "0.1", "--period", "0s"][..],
        &["predict", "--beta", "1.5"],
        &["predict", "--beta", "x"],
        &["predict", "--beta", "0.1", "--level", "1"],
        &["ping", "127.0.0.1", "--period", "0ms"],
        &["measure", "x.pcap", "--interval", "0s"],
        &["measure", "x.pcap", "--mtu", "0"],
        &["watch", "--duration", "never"],
    ] {
        refused(args, 2, &["error: ", "expected"]);
    }
    refused(&["completions", "basic"], 2, &["basic", "bash", "fish"]);
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

/// Returns the first words of the lines below each heading of a help text.
fn groups(help: &str) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = vec![];
    for line in help.lines() {
        let word = line.split_whitespace().next();
        if let Some(heading) = line.strip_suffix(':').filter(|h| !h.starts_with(' ')) {
            groups.push((heading.to_owned(), vec![]));
        } else if let (true, Some(word), Some((_, words))) = (
            line.starts_with("  ") && !line.starts_with("   ")
                || line.trim_start().starts_with('-'),
            word,
            groups.last_mut(),
        ) {
            words.push(word.trim_end_matches(',').to_owned());
        }
    }
    groups
}

#[test]
fn help_has_the_subcommands_and_options_by_heading() {
    let help = |args: &[&str]| {
        let out = pspacer(args);
        assert!(out.status.success(), "{args:?}");
        groups(&text(&out.stdout))
    };
    let top = help(&["--help"]);
    let of = |name: &str| -> &[String] {
        let found = top.iter().find(|(heading, _)| heading == name);
        found.map_or(&[], |(_, words)| words)
    };
    assert_eq!(of("Scenarios"), ["lab", "sim", "experiments"]);
    assert_eq!(of("Captures"), ["measure", "stalls"]);
    let host = ["plan", "apply", "save", "restore", "remove", "import"];
    assert_eq!(of("Host"), host);
    let live = ["watch", "ping", "reflect", "router", "send-stream"];
    assert_eq!(of("Live"), live);
    assert_eq!(of("Others"), ["predict", "completions", "help"]);
    // Subcommands that write or filter have the same options for it.
    for (verb, outputs) in [
        (&["lab", "run"][..], &["--out", "--json"][..]),
        (&["sim", "run"], &["--out", "--json"]),
        (&["sim", "sweep"], &["--out"]),
        (&["sim", "merge"], &["--out"]),
        (&["experiments"], &["--out", "--json"]),
        (&["measure"], &["--out", "--json"]),
        (&["stalls"], &["--json", "--report"]),
        (&["plan"], &["--json"]),
        (&["apply"], &[]),
        (&["restore"], &[]),
        (&["watch"], &["--out", "--json"]),
        (&["ping"], &["--json", "--plot"]),
        (&["reflect"], &["--json"]),
        (&["router"], &["--json"]),
        (&["predict"], &["--json", "--plot"]),
    ] {
        let found = help(&[verb, &["--help"]].concat());
        let output = found.iter().find(|(heading, _)| heading == "Output");
        let (_, words) = output.unwrap_or_else(|| panic!("{verb:?}: {found:?}"));
        for word in outputs.iter().chain(&["--quiet", "--color"]) {
            assert!(
                words.iter().any(|w| w == word) || *word == "--quiet",
                "{verb:?} {word}: {words:?}"
            );
        }
        // Every option stands below a heading.
        let others = found.iter().find(|(heading, _)| heading == "Options");
        let lone: Vec<_> = others.iter().flat_map(|(_, words)| words).collect();
        assert!(
            lone.iter()
                .all(|w| ["-h", "-V", "-q"].contains(&w.as_str())),
            "{verb:?}: {lone:?}"
        );
    }
}

/// Scripts that use older names of options still work.
#[test]
fn old_names_of_options_are_understood() {
    for args in [
        &["measure", "--report", "x", "gone.pcap"][..],
        &["stalls", "--connection", "1", "gone.pcap"],
        &["experiments", "--results", "x", "--only", "no-such"],
    ] {
        refused(args, 1, &[]);
    }
}

#[test]
fn completions_are_made_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let script = well(&["completions", shell]);
        has(&script, ["stalls", "min-duration", "predict"]);
    }
    let out = pspacer(&["completions", "bash"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pspacer");
    std::fs::write(&path, out.stdout).unwrap();
    let asked = ". \"$0\"; COMP_WORDS=(pspacer lab run --kernel 6); COMP_CWORD=4; \
                 _pspacer pspacer 6 --kernel; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = std::process::Command::new("bash");
    let out = bash.arg("-c").arg(asked).arg(&path).output().unwrap();
    let shown = text(&out.stdout);
    assert_eq!(
        shown.lines().collect::<Vec<_>>(),
        ["6.1", "6.12"],
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
}

#[test]
fn the_manual_page_has_every_exit_status() {
    let page = std::fs::read_to_string(root().join("docs/man/pspacer.1")).unwrap();
    let (_, behind) = page.split_once("\n.SH EXIT STATUS\n").unwrap();
    let (section, _) = behind.split_once("\n.SH ").unwrap();
    let terms: Vec<&str> = section
        .split(".TP\n")
        .skip(1)
        .filter_map(|t| t.lines().next())
        .collect();
    assert_eq!(
        terms,
        ["0", "1", "2", "3", "141"].map(|n| format!("\\fB{n}\\fR")),
        "{section}"
    );
}
