// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output and standard error of every subcommand: closed pipes, a full
//! disk, one sentence for an error, colours, width and quiet.

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};

use crate::common::capture::Capture;
use crate::common::{Folder, pspacer, refused, root, text};
use testkit::{has, has_none};

/// Exit status that a shell reports for a program that SIGPIPE ended.
const CLOSED_PIPE: i32 = 141;

/// A scenario with a part that is not modelled, so the command prints a note.
const NOTED: [&str; 3] = ["pspacer-single-rate", "--set", "rate=500mbit"];

/// Calls of the subcommands that print something within a second, without special rights.
struct Calls {
    folder: Folder,
    capture: String,
    config: String,
    /// A port at which nobody answers.
    port: String,
}

impl Calls {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let mut capture = Capture::new();
        capture.transfer(1_000_000, 5001, 40, Some(20));
        let capture = folder.file("a.pcap", &capture.0);
        let config = "period = \"10ms\"\n[[device]]\nname = \"lo\"\nbudget = \"70mbit\"\n\
                      [[route]]\nto = \"10.3.0.0/24\"\ndevice = \"lo\"\nvia = \"10.1.0.1\"\n";
        let config = folder.file("router.toml", config.as_bytes());
        let held = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = held.local_addr().unwrap().port().to_string();
        Self {
            folder,
            capture,
            config,
            port,
        }
    }

    fn all(&self) -> Vec<Vec<String>> {
        let out = |name: &str| self.folder.0.join(name).display().to_string();
        let (run, sweep) = (out("run"), out("sweep"));
        let [scenario, set, value] = NOTED;
        let simulated = [set, value];
        let ping = ["ping", "127.0.0.1", "--port", &self.port];
        let calls = [
            vec!["lab", "list"],
            vec!["lab", "list", "--json"],
            [&["sim", "run", scenario, "--out", &run], &simulated[..]].concat(),
            [&["sim", "sweep", scenario, "--out", &sweep], &simulated[..]].concat(),
            vec!["measure", &self.capture],
            vec!["measure", &self.capture, "--json"],
            vec!["stalls", &self.capture],
            vec!["stalls", &self.capture, "--json"],
            vec!["predict", "--beta", "0.1"],
            vec!["predict", "--beta", "0.1", "--json"],
            [&ping[..], &["--count", "2", "--wait", "1ms"]].concat(),
            [&ping[..], &["--count", "2", "--wait", "1ms", "--json"]].concat(),
            vec!["router", "--check", &self.config],
            vec!["completions", "bash"],
        ];
        let owned = |call: Vec<&str>| call.into_iter().map(str::to_owned).collect();
        calls.into_iter().map(owned).collect()
    }
}

fn run(call: &[String], stdout: Stdio, stderr: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pspacer"));
    command.args(call).current_dir(root());
    let command = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    command.spawn().unwrap().wait_with_output().unwrap()
}

/// Returns a pipe whose reader has gone.
fn closed() -> Stdio {
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(ours);
    Stdio::from(OwnedFd::from(theirs))
}

fn full() -> Stdio {
    File::options()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let calls = Calls::new("streams-closed");
    for call in calls.all() {
        let out = run(&call, closed(), Stdio::piped());
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(CLOSED_PIPE), "{call:?}: {said}");
        assert!(!said.contains("cannot write"), "{call:?}: {said}");
        assert!(!said.contains("panicked"), "{call:?}: {said}");
    }
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    let calls = Calls::new("streams-full");
    for call in calls.all() {
        let out = run(&call, full(), Stdio::piped());
        let said = text(&out.stderr);
        let status = if call[0] == "ping" { 2 } else { 1 };
        assert_eq!(out.status.code(), Some(status), "{call:?}: {said}");
        let wanted = "pspacer: cannot write to standard output: No space left on device";
        assert_eq!(said.matches(wanted).count(), 1, "{call:?}: {said}");
        assert!(!said.contains("panicked"), "{call:?}: {said}");
    }
}

#[test]
fn notes_that_nobody_reads_change_nothing() {
    let calls = Calls::new("streams-notes");
    let noted: Vec<String> = [
        "sim", "run", NOTED[0], NOTED[1], NOTED[2], "--json", "--out",
    ]
    .map(str::to_owned)
    .into();
    for (name, stderr) in [("closed", closed()), ("full", full())] {
        let out = calls.folder.0.join(name).display().to_string();
        let out = run(&[noted.clone(), vec![out]].concat(), Stdio::piped(), stderr);
        assert_eq!(out.status.code(), Some(0), "{name}");
        let _: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    }
}

#[test]
fn a_missing_file_is_reported_once() {
    let calls = Calls::new("streams-missing");
    let gone = calls.folder.0.join("gone").display().to_string();
    for args in [
        &["measure", &gone][..],
        &["stalls", &gone],
        &["predict", &gone],
        &["router", &gone],
        &["lab", "run", &format!("{gone}.toml")],
        &["sim", "merge", &gone, "--out", &format!("{gone}-too")],
        &[
            "stalls",
            &calls.capture,
            "--report",
            &format!("{gone}/x.html"),
        ],
        &[
            "predict",
            "--beta",
            "0.1",
            "--plot",
            &format!("{gone}/x.svg"),
        ],
        &["measure", &calls.folder.0.display().to_string()],
        &["stalls", &calls.folder.0.display().to_string()],
    ] {
        let said = refused(args, 1, &[]);
        assert_eq!(
            said.matches("(os error").count().max(1),
            1,
            "{args:?}: {said}"
        );
        assert!(
            said.contains("gone") || said.contains("streams-missing"),
            "{args:?}: {said}"
        );
    }
}

#[test]
fn colours_are_for_terminals_or_who_asks_for_them() {
    let calls = Calls::new("streams-colour");
    let file = calls.capture.as_str();
    let coloured = |args: &[&str], no_color: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pspacer"));
        command.args(args).env("NO_COLOR", no_color);
        let out = command.output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
        text(&out.stdout).contains('\x1b')
    };
    for verb in ["measure", "stalls"] {
        assert!(!coloured(&[verb, file], ""));
        assert!(coloured(&[verb, file, "--color", "always"], ""));
        assert!(coloured(&["--color=always", verb, file], "1"));
        assert!(!coloured(&[verb, file, "--color", "never"], ""));
    }
    refused(&["stalls", file, "--color", "sometimes"], 2, &["always"]);
}

/// Returns the lines that a terminal of this many columns gets.
fn on_a_terminal(columns: u32, call: &str) -> Vec<String> {
    let pspacer = env!("CARGO_BIN_EXE_pspacer");
    let line = format!("stty rows 24 cols {columns}; exec '{pspacer}' {call}");
    let out = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env_remove("COLUMNS")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", text(&out.stdout));
    text(&out.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn text_is_as_wide_as_the_terminal() {
    let calls = Calls::new("streams-width");
    let widest = |columns| {
        let lines = on_a_terminal(columns, &format!("stalls '{}'", calls.capture));
        // The first line names the file, and may be longer.
        lines
            .iter()
            .skip(1)
            .map(|l| l.trim_end().chars().count())
            .max()
    };
    assert!(widest(60) <= Some(60), "{:?}", widest(60));
    assert!(widest(60) > Some(50), "{:?}", widest(60));
    assert!(widest(90) > widest(60), "{:?}", widest(90));
}

#[test]
fn quiet_is_without_notes() {
    let calls = Calls::new("streams-quiet");
    let out = calls.folder.0.join("run").display().to_string();
    let args = ["sim", "run", NOTED[0], NOTED[1], NOTED[2], "--out", &out];
    let noted = pspacer(&args);
    has(text(&noted.stderr), ["not modelled"]);
    let quiet = pspacer(&[&args[..], &["--quiet"]].concat());
    assert_eq!(
        (quiet.status.code(), text(&quiet.stderr)),
        (Some(0), String::new())
    );
    has_none(text(&quiet.stdout), ["Report:"]);
    // -q still prints errors.
    let wrong = pspacer(&["lab", "run", "no-such", "-q"]);
    has(text(&wrong.stderr), ["no-such"]);
}
