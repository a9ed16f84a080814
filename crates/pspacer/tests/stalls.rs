// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer stalls`, run as people run it.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::any_capture;
use crate::common::capture::Capture;
use crate::common::{Folder, text};
use testkit::{has, has_none};

fn stalls(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pspacer"));
    command.arg("stalls").args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let out = stalls(&[arguments, &["--json"]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Connection 1 stops for half a second, connection 2 never.
fn two_transfers() -> Capture {
    let mut capture = Capture::new();
    let end = capture.transfer(1_000_000, 5001, 40, Some(20));
    capture.transfer(end + 1000, 5002, 20, None);
    capture
}

#[test]
fn a_verdict_for_each_connection_and_the_worst_first() {
    let folder = Folder::new("stalls-text");
    let file = folder.file("a.pcap", &two_transfers().0);
    let out = stalls(&[&file]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert_eq!(text(&out.stderr), "");
    let shown = text(&out.stdout);
    has(&shown, ["2 connections; 1 stalled, 1 stall"]);
    let first = shown.find("#1  10.1.1.1:5001 → 10.1.2.1:80").unwrap();
    assert!(first < shown.find("#2  10.1.1.1:5002").unwrap());
    has(
        &shown,
        [
            "receiver window closed: the receiver's side",
            "→ ",
            "packets ",
        ],
    );
    let widest = shown.lines().skip(1).map(|l| l.chars().count()).max();
    assert!(widest <= Some(100), "{shown}");
}

/// What a verdict follows from is printed by the number that the list gives the stall.
#[test]
fn a_verdict_is_explained() {
    let folder = Folder::new("stalls-explain");
    let file = folder.file("a.pcap", &two_transfers().0);
    let list = text(&stalls(&[&file]).stdout);
    assert!(list.contains("\n  1 at "), "{list}");
    let stall = &json(&[&file])["connections"][0]["stalls"][0];
    assert_eq!(stall["number"], 1);
    let left = stall["asked"]["left"].as_array().unwrap();
    assert!(left.contains(&stall["cause"]), "{stall}");
    assert!(
        stall["asked"]["failed"]
            .as_array()
            .unwrap()
            .contains(&"room".into())
    );
    let out = stalls(&[&file, "--explain", "1"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let shown = text(&out.stdout);
    has(
        &shown,
        [
            "Stall 1: receiver window closed",
            "could not be asked",
            "the receiver's window had room for what came next",
            "needs not: took for closed",
        ],
    );
    let out = stalls(&[&file, "--explain", "2"]);
    assert!(!out.status.success());
    let said = text(&out.stderr);
    has(&said, ["--explain 2: expected the number of a stall"]);
}

/// A quantity is written in one way, wherever on the screen it stands.
#[test]
fn the_verdict_and_the_facts_have_the_same_units() {
    let folder = Folder::new("stalls-units");
    for rounds in [1, 40, 400] {
        let mut capture = Capture::new();
        capture.transfer(1_000_000, 5001, rounds, None);
        let shown = text(&stalls(&[&folder.file("a.pcap", &capture.0)]).stdout);
        let moved = |line: &str| {
            let (before, _) = line.split_once(" to the server").unwrap();
            let words: Vec<&str> = before.split_whitespace().rev().take(2).collect();
            (words[1].to_owned(), words[0].to_owned())
        };
        let lines: Vec<_> = shown
            .lines()
            .filter(|l| l.contains("to the server"))
            .collect();
        assert_eq!(moved(lines[0]), moved(lines[1]), "{shown}");
        // And none has four digits before its unit.
        assert!(
            moved(lines[0]).0.parse::<f64>().unwrap() < 1000.0,
            "{shown}"
        );
    }
}

#[test]
fn json_has_what_the_text_has() {
    let folder = Folder::new("stalls-json");
    let file = folder.file("a.pcap", &two_transfers().0);
    let found = json(&[&file]);
    assert_eq!(found["format"], "pspacer-stalls-2");
    let connections = found["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 2);
    assert!(connections[0]["verdict"].as_str().unwrap().len() > 20);
    assert_eq!(connections[1]["stalls"].as_array().unwrap().len(), 0);
    let stall = &connections[0]["stalls"][0];
    assert_eq!(stall["cause"], "receiver-window-closed");
    // From the last data before it, 20 rounds after the handshake.
    let start_s = stall["start_s"].as_f64().unwrap();
    assert!((0.2..0.23).contains(&start_s), "{start_s}");
    let duration_s = stall["duration_s"].as_f64().unwrap();
    assert!((0.48..0.52).contains(&duration_s), "{duration_s}");
    assert_eq!(stall["side"], "receiver");
    assert!(["low", "medium", "high"].contains(&stall["confidence"].as_str().unwrap()));
    // The closed window is packet 3 + 20 * 15 + 1.
    let evidence: Vec<_> = stall["evidence"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_u64)
        .collect();
    assert!(evidence.contains(&304), "{evidence:?}");
    assert!(evidence.is_sorted());
}

/// Connections 1 and 3 stop for half a second each, connection 2 never; connection 4 sends
/// its SYN at 0, 1 and 3 s, and nobody answers.
fn four_connections() -> Capture {
    let mut capture = two_transfers();
    let end = capture.transfer(3_000_000, 5003, 40, Some(20));
    for after_us in [0, 1_000_000, 3_000_000] {
        capture.segment(end + 1000 + after_us, 5004, true, 0, 0, 60_000, 0);
    }
    capture
}

/// The rows of `by_cause` without the time lost, and the times.
fn by_cause(found: &Value) -> (Vec<Value>, Vec<f64>) {
    let rows = found["by_cause"].as_array().unwrap().iter().cloned();
    rows.map(|mut row| {
        let lost = row.as_object_mut().unwrap().remove("time_lost_s");
        (row, lost.unwrap().as_f64().unwrap())
    })
    .unzip()
}

#[test]
fn causes_are_summed_up_over_all_connections() {
    let folder = Folder::new("stalls-by-cause");
    let file = folder.file("a.pcap", &four_connections().0);
    let found = json(&[&file]);
    let (rows, lost_s) = by_cause(&found);
    let row = |cause: &str, side: &str, stalls: u64, connections: u64| {
        serde_json::json!({
            "cause": cause, "side": side, "stalls": stalls, "connections": connections
        })
    };
    // The most time lost first, not the most stalls.
    assert_eq!(
        rows,
        [
            row("connection-setup", "unknown", 1, 1),
            row("receiver-window-closed", "receiver", 2, 2),
        ]
    );
    assert!((2.99..3.01).contains(&lost_s[0]), "{lost_s:?}");
    assert!((0.96..1.04).contains(&lost_s[1]), "{lost_s:?}");
    // They are the sums of what is listed.
    let listed_s = |cause: &str| -> f64 {
        let connections = found["connections"].as_array().unwrap().iter();
        let stalls = connections.flat_map(|c| c["stalls"].as_array().unwrap());
        let of = stalls.filter(|s| s["cause"] == cause);
        of.map(|s| s["duration_s"].as_f64().unwrap()).sum()
    };
    for (row, lost_s) in rows.iter().zip(&lost_s) {
        let listed_s = listed_s(row["cause"].as_str().unwrap());
        assert!((listed_s - lost_s).abs() < 1e-9, "{listed_s} {lost_s}");
    }

    let shown = text(&stalls(&[&file]).stdout);
    let (_, summary) = shown.split_once("\nBy cause\n").unwrap();
    let words: Vec<_> = summary
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(words.len(), 5, "it ends the text: {shown}");
    assert_eq!(words[0], "cause side stalls connections time lost");
    assert_eq!(words[1], "s");
    for (line, row, lost_s) in [
        (&words[3], "connection setup unknown 1 1", lost_s[0]),
        (&words[4], "receiver window closed receiver 2 2", lost_s[1]),
    ] {
        assert_eq!(line, &format!("{row} {lost_s:.3}"), "{shown}");
    }
}

#[test]
fn the_sum_is_of_the_stalls_that_are_asked_for() {
    let folder = Folder::new("stalls-by-cause-choice");
    let file = folder.file("a.pcap", &four_connections().0);
    let causes = |arguments: &[&str]| -> Vec<(String, u64)> {
        let (rows, _) = by_cause(&json(&[&[file.as_str()], arguments].concat()));
        let count = |row: &Value| row["stalls"].as_u64().unwrap();
        rows.iter()
            .map(|row| (row["cause"].as_str().unwrap().to_owned(), count(row)))
            .collect()
    };
    let closed = |stalls| vec![("receiver-window-closed".to_owned(), stalls)];
    assert_eq!(causes(&["--flow", "3"]), closed(1));
    assert_eq!(causes(&["--flow", "1", "--flow", "3"]), closed(2));
    assert_eq!(
        causes(&["--min-duration", "1s"]),
        [("connection-setup".to_owned(), 1)]
    );
    // Without a stall there is nothing to sum up.
    assert_eq!(causes(&["--flow", "2"]), []);
    let none = text(&stalls(&[&file, "--flow", "2"]).stdout);
    has_none(&none, ["By cause"]);
}

/// The sentence of each connection, the totals and the list have the same stalls: without a
/// choice one server did not answer for 3 s, and two windows were closed for half a second.
#[test]
fn shorter_stalls_are_left_out_of_the_sentence_too() {
    let folder = Folder::new("stalls-min-duration");
    let file = folder.file("a.pcap", &four_connections().0);
    let shown = |least: &str| text(&stalls(&[&file, "--all", "--min-duration", least]).stdout);
    let setup = "Never carried data: 3 SYNs in 3000 ms";
    let all = shown("100ms");
    assert!(all.contains("4 connections; 3 stalled, 3 stalls"), "{all}");
    assert!(
        all.contains("; stopped once") && all.contains(setup),
        "{all}"
    );
    let long = shown("1s");
    has(&long, ["4 connections; 1 stalled, 1 stall"]);
    assert!(
        !long.contains("; stopped") && long.contains(setup),
        "{long}"
    );
    let never = "; never stopped for 1000 ms or longer";
    has(&long, [never]);
    let none = shown("10s");
    has(&none, ["4 connections; 0 stalled, 0 stalls"]);
    has_none(&none, ["; stopped", "3 SYNs", "; slow", "By cause"]);
}

/// The text lists the ten worst connections; the sum has all.
#[test]
fn connections_that_are_not_listed_are_summed_up_too() {
    let folder = Folder::new("stalls-by-cause-many");
    let mut capture = Capture::new();
    let mut start_us = 1_000_000;
    for port in 5001..=5012 {
        start_us = capture.transfer(start_us, port, 40, Some(20)) + 1000;
    }
    let file = folder.file("a.pcap", &capture.0);
    let shown = text(&stalls(&[&file]).stdout);
    has(&shown, ["2 more connections, 2 of them stalled"]);
    let row = shown.lines().last().unwrap();
    let words: Vec<_> = row.split_whitespace().collect();
    assert_eq!(words[3..6], ["receiver", "12", "12"], "{shown}");
}

#[test]
fn what_is_asked_for_is_shown() {
    let folder = Folder::new("stalls-choice");
    let file = folder.file("a.pcap", &two_transfers().0);
    let numbers = |arguments: &[&str]| -> Vec<u64> {
        let found = json(&[&[file.as_str()], arguments].concat());
        let connections = found["connections"].as_array().unwrap();
        connections
            .iter()
            .filter_map(|c| c["number"].as_u64())
            .collect()
    };
    assert_eq!(numbers(&["--connection", "2"]), [2]);
    assert_eq!(numbers(&["--connection", ":5001"]), [1]);
    assert_eq!(numbers(&["--connection", "10.1.2.1:80 10.1.1.1:5002"]), [2]);
    assert_eq!(numbers(&["--connection", "1", "--connection", "2"]), [1, 2]);
    let none = stalls(&[&file, "--connection", "10.9.9.9"]);
    assert_eq!(none.status.code(), Some(1));
    has(text(&none.stderr), ["no connection matches"]);
    let wrong = stalls(&[&file, "--connection", "0"]);
    assert_eq!(wrong.status.code(), Some(2));

    let stalls = |arguments: &[&str]| {
        let found = json(&[&[file.as_str()], arguments].concat());
        found["connections"][0]["stalls"].as_array().unwrap().len()
    };
    assert_eq!(stalls(&["--min-duration", "400ms"]), 1);
    assert_eq!(stalls(&["--min-duration", "1s"]), 0);
}

#[test]
fn exit_codes_are_for_scripts() {
    let folder = Folder::new("stalls-exit");
    let file = folder.file("a.pcap", &two_transfers().0);
    assert_eq!(stalls(&[&file, "--exit-code"]).status.code(), Some(3));
    let clean = stalls(&[&file, "--exit-code", "--connection", "2"]);
    assert_eq!(clean.status.code(), Some(0));
}

#[test]
fn a_rotated_capture_is_one_capture() {
    let folder = Folder::new("stalls-rotated");
    let whole = two_transfers().0;
    let at_once = json(&[&folder.file("whole.pcap", &whole)]);
    // Cut between two packets, the later file named first.
    let mut cut = 24;
    while cut < whole.len() / 2 {
        let length: [u8; 4] = whole[cut + 8..cut + 12].try_into().unwrap();
        cut += 16 + u32::from_le_bytes(length) as usize;
    }
    let later = folder.file("b.pcap", &[&whole[..24], &whole[cut..]].concat());
    let earlier = folder.file("a.pcap", &whole[..cut]);
    assert_eq!(
        json(&[&later, &earlier])["connections"],
        at_once["connections"]
    );
    let both = stalls(&[&later, "-"]);
    has(text(&both.stderr), ["standard input is read once"]);
}

#[test]
fn standard_input_is_a_file_too() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pspacer"))
        .args(["stalls", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(&two_transfers().0)
        .unwrap();
    let out = child.wait_with_output().unwrap();
    let found: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(found["connections"].as_array().unwrap().len(), 2);
    let report = stalls(&["-", "--report", "x.html"]);
    has(text(&report.stderr), ["reads the capture twice"]);
}

#[test]
fn the_page_draws_the_worst_connection() {
    let folder = Folder::new("stalls-page");
    let file = folder.file("a<b>.pcap", &two_transfers().0);
    let page = folder.0.join("out.html");
    let out = stalls(&[
        &file,
        "--report",
        page.to_str().unwrap(),
        "--interval",
        "50ms",
    ]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains("a&lt;b&gt;.pcap") && !html.contains("<b>"));
    has(
        &html,
        ["sequence number, kB", "band f1", "receiver window closed"],
    );
    has_none(&html, ["NaN", "http"]);
}

#[test]
fn damage_is_reported_with_its_place() {
    let folder = Folder::new("stalls-damage");
    let whole = two_transfers().0;
    let cut = folder.file("cut.pcap", &whole[..whole.len() - 5]);
    let out = stalls(&[&cut]);
    assert!(out.status.success());
    let note = text(&out.stderr);
    has(&note, ["cut.pcap: only the first", "at byte"]);
    for (name, bytes, expected) in [
        ("text", &b"hello, world"[..], "expected a capture"),
        ("empty", b"", "it is empty"),
        ("header", &whole[..24], "no TCP segment among 0 packets"),
        ("half", &whole[..30], "ends inside the record at byte 24"),
    ] {
        let file = folder.file(name, bytes);
        let out = stalls(&[&file]);
        assert_eq!(out.status.code(), Some(1), "{name}");
        let error = text(&out.stderr);
        assert!(
            error.contains(expected) && error.lines().count() == 1,
            "{error}"
        );
    }
    // Nothing but packets of a link type that is not read: SLIP.
    let mut foreign = whole.clone();
    foreign[20] = 8;
    let out = stalls(&[&folder.file("slip", &foreign)]);
    assert_eq!(out.status.code(), Some(1));
    let error = text(&out.stderr);
    let expected = "left out: 8 (SLIP); expected Ethernet (1), IP (101)";
    has(&error, ["no TCP segment among", expected]);
    let none = stalls(&["/nowhere.pcap"]);
    has(text(&none.stderr), ["/nowhere.pcap: cannot read at byte 0"]);
}

#[test]
fn the_corpus_of_the_fuzzer_is_read_without_panic() {
    for (name, bytes) in testkit::corpus("stalls", 10) {
        println!("{name}");
        any_capture::replay(&bytes);
    }
}
