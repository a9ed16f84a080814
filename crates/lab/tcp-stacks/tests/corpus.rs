// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the analyser says about each case of `tests/stalls-corpus`, beside the truth: fails for a wrong
//! cause, side or stall of high or medium confidence, and counts everything else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Cursor, Read};
use std::path::Path;

use capture::segments::{Segments, Source};
use stall::shards::on_threads;
use stall::{Confidence, Direction, Options};
use tcp_stacks::corpus::{Case, Stall as Truth};
use toml::Value;

/// Most bytes of the text of a case, and of all.
const CASE_BYTES_MAX: usize = 32_000;
const ALL_BYTES_MAX: usize = 2_000_000;

/// Returns the cases by name.
fn cases() -> BTreeMap<String, (Case, usize)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/stalls-corpus");
    let paths = fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|ext| ext == "toml"));
    paths
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap();
            let case = Case::parse(&text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            (name, (case, text.len()))
        })
        .collect()
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
        let report = |stall: &stall::Stall| Report {
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
    let common = report.span.1.min(truth.end_s) - report.span.0.max(truth.start_s);
    let shorter = (report.span.1 - report.span.0).min(truth.end_s - truth.start_s);
    let is_way = truth.direction == "either" || truth.direction == report.direction;
    is_way && common > 0.0 && common >= shorter / 2.0
}

/// Judges a report by the shortest stall of the truth that it is about and that knows its cause.
fn mark(report: &Report, truths: &[Truth], complete: bool) -> Mark {
    let mut about: Vec<&Truth> = truths.iter().filter(|t| is_about(report, t)).collect();
    about.sort_by(|a, b| (a.end_s - a.start_s).total_cmp(&(b.end_s - b.start_s)));
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
    fn case(&mut self, case: &str, truth: &Case) {
        let (truths, complete) = (&truth.stall, truth.complete);
        let reports = reports(
            &truth.capture.pcap(),
            &truth.capture.connections[0].client.to_string(),
        );
        let theme = truth.theme.clone();
        let counts = self.themes.entry(theme).or_default();
        counts.cases += 1;
        let mut said: BTreeMap<String, u32> = BTreeMap::new();
        for report in &reports {
            let mark = mark(report, truths, complete);
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
                let causes = self.wrong.entry(case.to_owned()).or_default();
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
            let (start, end, cause) = (truth.start_s, truth.end_s, &truth.causes[0]);
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

/// Judges every case.
fn judge() -> Judged {
    let mut judged = Judged::default();
    for (name, (case, _)) in &cases() {
        judged.case(name, case);
    }
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

#[test]
fn cases_keep_the_rules_and_can_be_read() {
    let cases = cases();
    for (name, (case, bytes)) in &cases {
        assert!(case.faults().is_empty(), "{name}: {:?}", case.faults());
        assert!(*bytes < CASE_BYTES_MAX, "{name}: {bytes} bytes");
        let pcap = case.capture.pcap();
        let open = || Ok(Box::new(Cursor::new(pcap.as_slice())) as Box<dyn Read>);
        let mut segments = Segments::open(vec![Source::new("case", open)]).unwrap();
        let count = std::iter::from_fn(|| segments.next()).count();
        assert!(segments.damages().is_empty() && count > 0, "{name}");
    }
    let bytes: usize = cases.values().map(|(_, bytes)| bytes).sum();
    assert!(bytes < ALL_BYTES_MAX, "{bytes} bytes");
}

/// The corpus's README counts its cases by theme, and documents quote how many there are.
#[test]
fn cases_are_counted_as_documents_say() {
    let cases = cases();
    let mut themes: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (case, _) in cases.values() {
        let quiet = usize::from(case.stall.is_empty());
        for theme in [case.theme.as_str(), "all"] {
            let (all, without) = themes.entry(theme).or_default();
            (*all, *without) = (*all + 1, *without + quiet);
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let readme = read("tests/stalls-corpus/README.md");
    for (theme, (all, without)) in themes {
        let name = if theme == "all" {
            theme.to_owned()
        } else {
            format!("`{theme}`")
        };
        let row = format!("| {name} | {all} | {without} |");
        assert!(
            readme.contains(&row),
            "tests/stalls-corpus/README.md: {row}"
        );
    }
    let wanted = cases.values().flat_map(|(case, _)| &case.stall);
    let wanted = wanted.filter(|stall| stall.required).count();
    let stalls = read("docs/use/stalls.md");
    for words in [
        format!("has {} small cases", cases.len()),
        format!("of the {wanted} stalls that are to be found"),
    ] {
        assert!(stalls.contains(&words), "docs/use/stalls.md: {words}");
    }
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    let case = |packets: &str| {
        Case::parse(&format!(
            "theme = \"t\"\npoint = \"sender\"\ncomplete = true\nabout = []\n[capture]\n\
             connections = [{{ client = \"192.0.2.1:1\", server = \"192.0.2.2:2\", initial = [1, 2] }}]\n\
             packets = \"\"\"\n{packets}\n\"\"\"\n"
        ))
    };
    case("0.1 client SA 0+0 win 1 mss 1460 scale 7 sackok ts 1,0\n# said\n0.2 server raw 45+19")
        .unwrap();
    for (line, expected) in [
        ("soon client S 0+0", "a time in seconds"),
        ("0.1 router S 0+0", "client|server"),
        ("0.1 client X 0+0", "flags of FSRPAUEC"),
        ("0.1 client S 0", "SEQ+BYTES"),
        ("0.1 client S 0+0 win", "a number"),
        ("0.1 client S 0+0 sack 1-2", "BEGIN:END"),
        ("0.1 client S 0+0 size 1", "iplen0"),
        ("0.1 client S 0+0 on 1", "one of `connections`"),
        ("0.1 client raw 4g", "raw HEX"),
    ] {
        let fault = case(line).unwrap_err();
        assert!(fault.contains(line) && fault.contains(expected), "{fault}");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_results() {
    let pcap = |(case, _): &(Case, usize)| case.capture.pcap();
    let mut captures: Vec<Vec<u8>> = cases().values().map(pcap).collect();
    assert!(captures.len() > 200);
    let results = |captures: &[Vec<u8>], threads| {
        let source = |bytes: &Vec<u8>| {
            let bytes = bytes.clone();
            let open = move || Ok(Box::new(Cursor::new(bytes.clone())) as Box<dyn Read>);
            Source::new("a capture", open)
        };
        let mut segments = Segments::open(captures.iter().map(source).collect()).unwrap();
        let analyser = on_threads(&mut segments, Options::default(), threads);
        format!("{:?}", analyser.finish())
    };
    let compare = |captures: &[Vec<u8>]| {
        let wanted = results(captures, 1);
        for threads in 2..4 {
            assert!(results(captures, threads) == wanted, "{threads} threads");
        }
    };
    compare(&captures);
    // Two subflows of Multipath TCP come last: one thread has all from there on.
    let subflows = "../../stalls/stall/tests/kinds/two-subflows.pcap.gz";
    captures.push(fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(subflows)).unwrap());
    compare(&captures);
}
