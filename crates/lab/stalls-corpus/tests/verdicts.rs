// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the analyser says about each case, beside the truth: fails for a wrong cause or a wrong
//! stall of high confidence that `known.toml` does not list, and counts everything else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Cursor, Read};

use capture::segments::{Segments, Source};
use stall::{Confidence, Direction, Stall};
use toml::{Table, Value};

use crate::committed::corpus;

/// A stall of the truth.
struct Truth {
    direction: String,
    span: (f64, f64),
    required: bool,
    causes: Vec<String>,
    sides: Vec<String>,
    not: Vec<String>,
}

/// What one reported stall is beside the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Right,
    /// The cause is right, its side is not.
    Side,
    /// Neither among the right causes nor among the wrong ones.
    Other,
    /// The cause is among the wrong ones.
    Cause,
    /// Nothing stalled there.
    Stall,
    /// Nothing is known there.
    Open,
}

/// Returns a list of strings of a table.
fn strings(table: &Table, key: &str) -> Vec<String> {
    let list = table.get(key).and_then(Value::as_array);
    let all = list.into_iter().flatten().filter_map(Value::as_str);
    all.map(str::to_owned).collect()
}

fn truths(table: &Table) -> Vec<Truth> {
    let list = table.get("stall").and_then(Value::as_array);
    let tables = list.into_iter().flatten().filter_map(Value::as_table);
    let number = |t: &Table, key: &str| t[key].as_float().unwrap();
    let truth = |t: &Table| Truth {
        direction: t["direction"].as_str().unwrap().to_owned(),
        span: (number(t, "start_s"), number(t, "end_s")),
        required: t.get("required").is_none_or(|r| r.as_bool().unwrap()),
        causes: strings(t, "causes"),
        sides: strings(t, "sides"),
        not: strings(t, "not"),
    };
    tables.map(truth).collect()
}

/// A reported stall with its direction by the truth's client.
struct Report {
    direction: &'static str,
    span: (f64, f64),
    cause: String,
    side: String,
    confidence: Confidence,
    evidence: Vec<u64>,
}

/// Returns the name that a value has in JSON and TOML.
fn name(value: impl serde::Serialize) -> String {
    Value::try_from(value).unwrap().as_str().unwrap().to_owned()
}

fn reports(bytes: &[u8], client: &str) -> Vec<Report> {
    let open = || Ok(Box::new(Cursor::new(bytes)) as Box<dyn Read>);
    let segments = Segments::open(vec![Source::new("case", open)]).unwrap();
    let results = stall::captures::read(segments, vec!["case".to_owned()], None, None);
    let mut all = Vec::new();
    for connection in results.analysis.connections {
        let swapped = connection.server.to_string() == client;
        let report = |stall: &Stall| Report {
            direction: if (stall.direction == Direction::ToServer) == swapped {
                "server-to-client"
            } else {
                "client-to-server"
            },
            span: (
                stall.start_ns as f64 / 1e9,
                (stall.start_ns + stall.duration_ns) as f64 / 1e9,
            ),
            cause: name(stall.cause),
            side: name(stall.side),
            confidence: stall.confidence,
            evidence: stall.evidence.clone(),
        };
        all.extend(connection.stalls.iter().map(report));
    }
    all
}

/// Returns whether a report is about a stall of the truth: half of the shorter one is common.
fn is_about(report: &Report, truth: &Truth) -> bool {
    let common = report.span.1.min(truth.span.1) - report.span.0.max(truth.span.0);
    let shorter = (report.span.1 - report.span.0).min(truth.span.1 - truth.span.0);
    let is_way = truth.direction == "either" || truth.direction == report.direction;
    is_way && common > 0.0 && common >= shorter / 2.0
}

fn mark(report: &Report, truths: &[Truth], complete: bool) -> Mark {
    let about = || truths.iter().filter(|t| is_about(report, t));
    if let Some(right) = about().find(|t| t.causes.contains(&report.cause)) {
        let is_side = right.sides.contains(&report.side);
        return if is_side { Mark::Right } else { Mark::Side };
    }
    if about().any(|t| t.not.contains(&report.cause)) {
        return Mark::Cause;
    }
    match (about().next(), complete) {
        (Some(_), _) => Mark::Other,
        (None, true) => Mark::Stall,
        (None, false) => Mark::Open,
    }
}

/// Counts of a theme.
#[derive(Default)]
struct Counts {
    cases: u32,
    stalls: u32,
    found: u32,
    marks: BTreeMap<(Mark, Confidence), u32>,
}

fn row(theme: &str, counts: &Counts) -> String {
    let of = |mark: Mark| {
        let all = [Confidence::High, Confidence::Medium, Confidence::Low];
        let count = |c: &Confidence| counts.marks.get(&(mark, *c)).copied().unwrap_or(0);
        all.iter()
            .map(|c| count(c).to_string())
            .collect::<Vec<_>>()
            .join("/")
    };
    let [right, side, other, cause, stall] = [
        Mark::Right,
        Mark::Side,
        Mark::Other,
        Mark::Cause,
        Mark::Stall,
    ]
    .map(of);
    let (cases, stalls, found) = (counts.cases, counts.stalls, counts.found);
    format!(
        "{theme:28} {cases:5} {stalls:6} {found:6}  {right:>9} {side:>8} {other:>8} {cause:>8} {stall:>8}\n"
    )
}

/// Judges every case; returns the table, a line for each report that is not right, and the cases
/// that are wrong with high confidence with what is reported.
fn judge() -> (String, String, BTreeMap<String, Vec<String>>) {
    let mut themes: BTreeMap<String, Counts> = BTreeMap::new();
    let mut lines = String::new();
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut folders: Vec<_> = fs::read_dir(corpus())
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    folders.retain(|f| f.is_dir());
    folders.sort();
    for folder in folders {
        let case = folder.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(folder.join("verdict.toml")).unwrap();
        let table: Table = text.parse().unwrap();
        let truths = truths(&table);
        let complete = table["complete"].as_bool().unwrap();
        let bytes = fs::read(folder.join("capture.pcapng")).unwrap();
        let reports = reports(&bytes, table["client"].as_str().unwrap());
        let counts = themes
            .entry(table["theme"].as_str().unwrap().to_owned())
            .or_default();
        counts.cases += 1;
        let mut marks = Vec::new();
        for report in &reports {
            let mark = mark(report, &truths, complete);
            marks.push(mark);
            *counts.marks.entry((mark, report.confidence)).or_default() += 1;
            let confidence = name(report.confidence);
            if !matches!(mark, Mark::Right | Mark::Open) {
                let (start, end) = report.span;
                let _ = writeln!(
                    lines,
                    "{case}: {mark:?} {confidence} {} ({}) {} {start:.3}-{end:.3} packets {:?}",
                    report.cause, report.side, report.direction, report.evidence
                );
            }
            if matches!(mark, Mark::Cause | Mark::Stall) && report.confidence == Confidence::High {
                wrong
                    .entry(case.clone())
                    .or_default()
                    .push(report.cause.clone());
            }
        }
        for truth in truths.iter().filter(|t| t.required) {
            counts.stalls += 1;
            let about = |r: &&Report| is_about(r, truth) && truth.causes.contains(&r.cause);
            if reports.iter().any(|r| about(&r)) {
                counts.found += 1;
            } else {
                let (start, end) = truth.span;
                let _ = writeln!(
                    lines,
                    "{case}: not reported: {} {} {start:.3}-{end:.3}",
                    truth.causes[0], truth.direction
                );
            }
        }
    }
    let mut text = format!(
        "{:28} cases stalls  found      right     side    other    cause    stall\n{:50}(high/medium/low of what is reported)\n",
        "theme", ""
    );
    for (theme, counts) in &themes {
        text.push_str(&row(theme, counts));
    }
    (text, lines, wrong)
}

/// Returns the cases that are known to be wrong, with what is reported.
fn known() -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(corpus().join("known.toml")).unwrap();
    let table: Table = text.parse().unwrap();
    let list = table.get("case").and_then(Value::as_array);
    let tables = list.into_iter().flatten().filter_map(Value::as_table);
    tables
        .map(|t| {
            (
                t["name"].as_str().unwrap().to_owned(),
                strings(t, "reported"),
            )
        })
        .collect()
}

#[test]
fn the_analyser_agrees_with_the_truth() {
    let (table, lines, mut wrong) = judge();
    println!("{table}\n{lines}");
    wrong.values_mut().for_each(|causes| {
        causes.sort();
        causes.dedup();
    });
    assert_eq!(wrong, known(), "wrong with high confidence, and known.toml");
}
