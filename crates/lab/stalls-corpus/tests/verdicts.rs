// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the analyser says about each case, beside the truth: fails for a wrong cause, side or stall of
//! high or medium confidence, and counts everything else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Cursor, Read};
use std::path::Path;

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

impl Mark {
    const fn text(self) -> &'static str {
        match self {
            Mark::Right => "right",
            Mark::Side => "wrong side",
            Mark::Other => "another cause",
            Mark::Cause => "wrong cause",
            Mark::Stall => "wrong stall",
            Mark::Open => "not judged",
        }
    }
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

/// Judges a report by the shortest stall of the truth that it is about and that knows its cause.
fn mark(report: &Report, truths: &[Truth], complete: bool) -> Mark {
    let mut about: Vec<&Truth> = truths.iter().filter(|t| is_about(report, t)).collect();
    about.sort_by(|a, b| (a.span.1 - a.span.0).total_cmp(&(b.span.1 - b.span.0)));
    for truth in &about {
        if truth.causes.contains(&report.cause) {
            let is_side = truth.sides.contains(&report.side);
            return if is_side { Mark::Right } else { Mark::Side };
        }
        if truth.not.contains(&report.cause) {
            return Mark::Cause;
        }
    }
    if !about.is_empty() {
        return Mark::Other;
    }
    if complete { Mark::Stall } else { Mark::Open }
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

/// What the test prints, and what it fails by.
#[derive(Default)]
struct Judged {
    themes: BTreeMap<String, Counts>,
    /// A line for each case.
    cases: String,
    /// A line for each report that is not right, and for each stall that is not reported.
    lines: String,
    /// Cases that are wrong with high or medium confidence, with the causes that are reported.
    wrong: BTreeMap<String, Vec<String>>,
}

impl Judged {
    /// Judges one case.
    fn case(&mut self, folder: &Path) {
        let case = folder.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(folder.join("verdict.toml")).unwrap();
        let table: Table = text.parse().unwrap();
        let truths = truths(&table);
        let complete = table["complete"].as_bool().unwrap();
        let bytes = fs::read(folder.join("capture.pcapng")).unwrap();
        let reports = reports(&bytes, table["client"].as_str().unwrap());
        let theme = table["theme"].as_str().unwrap().to_owned();
        let counts = self.themes.entry(theme).or_default();
        counts.cases += 1;
        let mut said: BTreeMap<String, u32> = BTreeMap::new();
        for report in &reports {
            let mark = mark(report, &truths, complete);
            *counts.marks.entry((mark, report.confidence)).or_default() += 1;
            let confidence = name(report.confidence);
            *said
                .entry(format!("{} {confidence}", mark.text()))
                .or_default() += 1;
            if !matches!(mark, Mark::Right | Mark::Open) {
                let (start, end) = report.span;
                let _ = writeln!(
                    self.lines,
                    "{case}: {} {confidence}: {} ({}) {} {start:.3}-{end:.3} packets {:?}",
                    mark.text(),
                    report.cause,
                    report.side,
                    report.direction,
                    report.evidence
                );
            }
            let is_wrong = matches!(mark, Mark::Side | Mark::Cause | Mark::Stall);
            if is_wrong && report.confidence >= Confidence::Medium {
                let causes = self.wrong.entry(case.clone()).or_default();
                causes.push(report.cause.clone());
            }
        }
        for truth in truths.iter().filter(|t| t.required) {
            counts.stalls += 1;
            let is_it = |r: &Report| is_about(r, truth) && truth.causes.contains(&r.cause);
            if reports.iter().any(is_it) {
                counts.found += 1;
                continue;
            }
            *said.entry("not reported".to_owned()).or_default() += 1;
            let ((start, end), cause) = (truth.span, &truth.causes[0]);
            let _ = writeln!(
                self.lines,
                "{case}: not reported: {cause} {} {start:.3}-{end:.3}",
                truth.direction
            );
        }
        let said: Vec<String> = said.iter().map(|(what, n)| format!("{what} {n}")).collect();
        let said = if said.is_empty() {
            "nothing reported, and nothing to report".to_owned()
        } else {
            said.join(", ")
        };
        let _ = writeln!(self.cases, "{case:64} {said}");
    }

    /// Returns the table of themes.
    fn table(&self) -> String {
        let mut text = format!(
            "{:28} cases stalls  found      right     side    other    cause    stall\n{:50}(high/medium/low of what is reported)\n",
            "theme", ""
        );
        for (theme, counts) in &self.themes {
            text.push_str(&row(theme, counts));
        }
        text
    }
}

/// Judges every case of the folder.
fn judge() -> Judged {
    let entries = fs::read_dir(corpus()).unwrap();
    let mut folders: Vec<_> = entries.map(|f| f.unwrap().path()).collect();
    folders.retain(|f| f.is_dir());
    folders.sort();
    let mut judged = Judged::default();
    folders.iter().for_each(|folder| judged.case(folder));
    judged.wrong.values_mut().for_each(|causes| {
        causes.sort();
        causes.dedup();
    });
    judged
}

/// Of the stalls that have to be reported, at least so many are: what says nothing is never wrong.
const FOUND_LEAST: u32 = 190;

#[test]
fn the_analyser_agrees_with_the_truth() {
    let judged = judge();
    println!("{}\n{}\n{}", judged.cases, judged.lines, judged.table());
    assert_eq!(
        judged.wrong,
        BTreeMap::new(),
        "wrong with high or medium confidence"
    );
    let found: u32 = judged.themes.values().map(|counts| counts.found).sum();
    assert!(found >= FOUND_LEAST, "{found} stalls found");
}
