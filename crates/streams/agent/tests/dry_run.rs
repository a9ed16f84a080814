// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--dry-run` says what it would change, and ends.

use agent::{AgentArgs, Io, run};
use clap::Parser;
use manager::access::Access;

use crate::service::{agents, manager};

#[derive(Parser)]
struct Words {
    #[command(flatten)]
    args: AgentArgs,
}

/// Runs an agent of the node `a` with the loopback device; returns what it printed, and how it ended.
fn dry_run(managers: &str, more: &[&str]) -> (String, String, Result<(), String>) {
    let words = ["agent", "--node=a", "--port=s=lo", "--dry-run", "--manager"];
    let words = words.iter().chain([&managers]).chain(more);
    let args = Words::parse_from(words).args;
    let (mut out, mut warned) = (Vec::new(), String::new());
    let mut warn = |line: &str| warned.push_str(line);
    let mut io = Io {
        out: &mut out,
        note: &mut warn,
    };
    let ran = run(&args, &mut io).map_err(|error| format!("{error:#}"));
    (String::from_utf8(out).unwrap(), warned, ran)
}

#[test]
fn a_dry_run_says_the_changes_and_makes_none() {
    let url = manager(Access::Open);
    for more in [&[][..], &["--json"]] {
        let first = dry_run(&url, more);
        assert_eq!((first.1.as_str(), &first.2), ("", &Ok(())));
        let lines = first.0.lines().count();
        assert!(lines >= 2 && first.0.contains("lo: "), "{}", first.0);
        // Nothing has changed.
        assert_eq!(dry_run(&url, more), first);
    }
    // Without one of the managers nothing is said of changes.
    let away = "http://127.0.0.1:9";
    let (out, _, ran) = dry_run(&format!("{url},{away}"), &[]);
    assert_eq!(out, "");
    let said = ran.unwrap_err();
    assert!(
        said.contains("manager http://127.0.0.1:9 does not answer"),
        "{said}"
    );
}

#[test]
fn a_port_that_cannot_be_set_is_named() {
    let url = manager(Access::Open);
    let words = ["--port=s=no-such-device"];
    let args = ["agent", "--node=a", "--dry-run", "--manager", &url];
    let args = Words::parse_from(args.iter().chain(&words)).args;
    let (mut out, mut warned) = (Vec::new(), String::new());
    let mut warn = |line: &str| warned.push_str(line);
    let mut io = Io {
        out: &mut out,
        note: &mut warn,
    };
    let said = run(&args, &mut io).unwrap_err().to_string();
    assert_eq!(said, "1 of 1 ports cannot be set");
    assert!(warned.contains("no-such-device"), "{warned}");
}

#[test]
fn a_token_of_the_node_is_enough() {
    let url = manager(agents());
    let folder = tempfile::tempdir().unwrap();
    let ask = |token: &str| {
        let file = folder.path().join("token");
        std::fs::write(&file, token).unwrap();
        let file = format!("--token-file={}", file.display());
        dry_run(&url, &[&file]).2
    };
    assert_eq!(ask("of-a"), Ok(()));
    for (token, expected) in [
        ("of-b", "nothing to say of the host \"a\", expected \"b\""),
        ("talks", "a talker may not do this"),
        ("nobody", "not known to this manager"),
    ] {
        let said = ask(token).unwrap_err();
        assert!(said.contains(expected), "{said}");
    }
}
