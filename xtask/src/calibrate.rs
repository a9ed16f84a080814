// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask calibrate`: how often the verdicts of `pspacer stalls` are right, by confidence,
//! over connections whose truth is known.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Cursor, Read};
use std::path::PathBuf;
use std::thread;

use anyhow::{Context, Result, anyhow, bail, ensure};
use capture::segments::{Segments, Source};
use clap::Args;
use serde_json::json;
use stall::{Analysis, Cause, Confidence};
use tcp_stacks::acceptable::{TABLE, is_right};
use tcp_stacks::capture_file::Cut;
use tcp_stacks::ground_truth::{End, Fate, Hold, Pause, Why};
use tcp_stacks::scenario::Case;
use tcp_stacks::world::{Point, Run};

use crate::judgement::{self, Judgement};

/// Arguments of `cargo xtask calibrate`.
#[derive(Debug, Args)]
pub struct Calibrate {
    /// Makes other connections
    #[arg(long, default_value_t = 20_261_123)]
    seed: u64,
    /// Connections that are made; each is captured at three points and cut in five ways
    #[arg(long, default_value_t = 900)]
    connections: u64,
    /// Print JSON: every judgement
    #[arg(long)]
    json: bool,
    /// Print the table of right answers and stop
    #[arg(long)]
    table: bool,
    /// Print the truth and the verdicts of one capture, NUMBER:POINT:CUT, and stop
    #[arg(long, value_name = "CASE")]
    show: Option<String>,
    /// Write one capture, NUMBER:POINT:CUT, as pcap and stop
    #[arg(long, num_args = 2, value_names = ["CASE", "OUT.pcap"])]
    write: Option<Vec<String>>,
}

/// A truth of some length that no verdict speaks of.
type Missed = BTreeMap<String, (u64, u64)>;

/// Runs the command.
pub fn main(args: &Calibrate) -> Result<()> {
    if args.table {
        print!("{}", rows());
        return Ok(());
    }
    if let Some(name) = &args.show {
        let (number, point, cut) = parse(name)?;
        print!("{}", show(args.seed, number, point, cut)?);
        return Ok(());
    }
    if let Some([name, path]) = args.write.as_deref() {
        let (number, point, cut) = parse(name)?;
        let (pcap, _) = Case::draw(args.seed, number).run().pcap(point, cut);
        let path = PathBuf::from(path);
        return fs::write(&path, pcap).with_context(|| format!("{}: write", path.display()));
    }
    let (all, missed) = judge_all(args)?;
    if args.json {
        let counts = judgement::by(&all, |_| ()).remove(&()).unwrap_or_default();
        let value = json!({ "seed": args.seed, "connections": args.connections,
            "counts": counts, "judgements": all });
        println!("{value}");
        return Ok(());
    }
    print!("{}", page(args, &all, &missed));
    Ok(())
}

/// Reads NUMBER:POINT:CUT.
fn parse(name: &str) -> Result<(u64, Point, Cut)> {
    let expected = || {
        anyhow!(
            "case \"{name}\": expected NUMBER:POINT:CUT, POINT client, middle or server, CUT {}",
            Cut::ALL.map(Cut::name).join(", ")
        )
    };
    let mut parts = name.split(':');
    let number = parts
        .next()
        .and_then(|n| n.parse().ok())
        .ok_or_else(expected)?;
    let point = parts.next().unwrap_or("middle");
    let point = Point::ALL
        .into_iter()
        .find(|p| point_name(*p) == point)
        .ok_or_else(expected)?;
    let cut = parts.next().unwrap_or("whole");
    let cut = Cut::ALL
        .into_iter()
        .find(|c| c.name() == cut)
        .ok_or_else(expected)?;
    ensure!(parts.next().is_none(), expected());
    Ok((number, point, cut))
}

fn point_name(point: Point) -> String {
    format!("{point:?}").to_lowercase()
}

/// Returns the table of right answers as Markdown.
fn rows() -> String {
    let mut text =
        String::from("| truth | right causes | right sides | reason |\n|---|---|---|---|\n");
    for row in TABLE {
        let (mechanism, causes, sides, reason) = (row.mechanism, row.causes, row.sides, row.reason);
        let _ = writeln!(
            text,
            "| {mechanism:?} | {causes:?} | {sides:?} | {reason} |"
        );
    }
    text
}

/// Analyses a capture as `pspacer stalls` does.
fn analyse(pcap: &[u8]) -> Result<Option<Analysis>> {
    if pcap.len() <= 24 {
        return Ok(None);
    }
    let open = || Ok(Box::new(Cursor::new(pcap)) as Box<dyn Read>);
    let segments = Segments::open(vec![Source::new("case", open)])?;
    Ok(Some(
        stall::captures::read(segments, vec!["case".to_owned()], None, None).analysis,
    ))
}

/// Judges every capture of one connection.
fn judge(seed: u64, number: u64, missed: &mut Missed) -> Result<Vec<Judgement>> {
    let case = Case::draw(seed, number);
    let run = case.run();
    let mut all = Vec::new();
    for point in Point::ALL {
        for cut in Cut::ALL {
            let (pcap, first_ns) = run.pcap(point, cut);
            let Some(analysis) = analyse(&pcap)? else {
                continue;
            };
            let mut found = judge_one(&case, &run, point, cut, first_ns, &analysis);
            if cut == Cut::Whole {
                note_missed(&run, &found, missed);
            }
            all.append(&mut found);
        }
    }
    Ok(all)
}

fn judge_one(
    case: &Case,
    run: &Run,
    point: Point,
    cut: Cut,
    first_ns: u64,
    analysis: &Analysis,
) -> Vec<Judgement> {
    let mut all = Vec::new();
    for connection in &analysis.connections {
        for stop in &connection.stalls {
            let (end, truth) = run.truth_of(point, first_ns, connection, stop);
            let start_ns = first_ns + stop.start_ns;
            let right =
                (stop.cause != Cause::Unknown).then(|| is_right(&truth, stop.cause, stop.side));
            let place = match (point, end) {
                (Point::Middle, _) => "middle",
                (Point::Client, End::Client) | (Point::Server, End::Server) => "sender",
                _ => "receiver",
            };
            let stacks = [
                case.kinds[end.index()].name(),
                case.kinds[end.other().index()].name(),
            ];
            all.push(Judgement {
                case: case.number,
                behaviour: format!("{:?}", case.behaviour),
                stacks,
                point: point_name(point),
                place,
                cut: cut.name(),
                start_s: start_ns as f64 / 1e9,
                duration_s: stop.duration_ns as f64 / 1e9,
                kind: stop.kind,
                cause: stop.cause,
                side: stop.side,
                confidence: stop.confidence,
                truth: truth.iter().map(|m| format!("{m:?}")).collect(),
                right,
                evidence: stop.evidence.clone(),
            });
        }
    }
    all
}

/// Shortest truth that a person would miss in a report.
const MISSED_LEAST_NS: u64 = 500_000_000;

/// Counts the true holds of a whole capture that no verdict overlaps: `(all, missed)`.
fn note_missed(run: &Run, found: &[Judgement], missed: &mut Missed) {
    for direction in &run.truth {
        for interval in &direction.timeline {
            let is_idle = match interval.hold {
                Hold::Moving => true,
                Hold::Paused(pause) => pause.is_idle() || pause == Pause::AwaitPeer,
                _ => false,
            };
            if is_idle || interval.end_ns - interval.start_ns < MISSED_LEAST_NS {
                continue;
            }
            let (start_s, end_s) = (interval.start_ns as f64 / 1e9, interval.end_ns as f64 / 1e9);
            let is_found = found
                .iter()
                .any(|j| j.start_s < end_s && j.start_s + j.duration_s > start_s);
            let entry = missed.entry(format!("{:?}", interval.hold)).or_default();
            entry.0 += 1;
            entry.1 += u64::from(!is_found);
        }
    }
}

/// Judges all connections on as many threads as there are processors; the order does not depend
/// on them.
fn judge_all(args: &Calibrate) -> Result<(Vec<Judgement>, Missed)> {
    let threads = thread::available_parallelism().map_or(1, usize::from) as u64;
    let parts = thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|part| {
                scope.spawn(move || -> Result<(Vec<Judgement>, Missed)> {
                    let (mut all, mut missed) = (Vec::new(), Missed::new());
                    for number in (part..args.connections).step_by(threads as usize) {
                        all.append(&mut judge(args.seed, number, &mut missed)?);
                    }
                    Ok((all, missed))
                })
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join())
            .collect::<Vec<_>>()
    });
    let (mut all, mut missed) = (Vec::new(), Missed::new());
    for part in parts {
        let Ok(part) = part else {
            bail!("a thread panicked")
        };
        let (mut judged, counts) = part?;
        all.append(&mut judged);
        for (hold, (whole, lost)) in counts {
            let entry = missed.entry(hold).or_default();
            *entry = (entry.0 + whole, entry.1 + lost);
        }
    }
    // Each thread has its numbers in order: a stable sort makes one order of them.
    all.sort_by_key(|j| j.case);
    Ok((all, missed))
}

/// Returns everything that the run tells, as Markdown.
fn page(args: &Calibrate, all: &[Judgement], missed: &Missed) -> String {
    let mut text = String::new();
    let judged = all.iter().filter(|j| j.right.is_some()).count();
    let _ = writeln!(
        text,
        "Seed {}, {} connections: {} stalls reported, {judged} judged.\n\n## Confidence\n{}",
        args.seed,
        args.connections,
        all.len(),
        judgement::summary(all)
    );
    let whole: Vec<Judgement> = all.iter().filter(|j| j.cut == "whole").cloned().collect();
    let _ = writeln!(
        text,
        "## Confidence, whole captures\n{}",
        judgement::summary(&whole)
    );
    let distinct = judgement::distinct(&whole);
    let _ = writeln!(
        text,
        "## Confidence, whole captures, each verdict once for a capture and truth\n{}",
        judgement::summary(&distinct)
    );
    let part = |text: &mut String, head: &str, key: &dyn Fn(&Judgement) -> String| {
        let table = judgement::table(head, &judgement::by(all, key));
        let _ = writeln!(text, "## By {head}\n{table}");
    };
    part(&mut text, "place", &|j| j.place.to_owned());
    part(&mut text, "cut", &|j| j.cut.to_owned());
    part(&mut text, "stack of the sender", &|j| {
        j.stacks[0].to_owned()
    });
    part(&mut text, "stack of the receiver", &|j| {
        j.stacks[1].to_owned()
    });
    part(&mut text, "behaviour", &|j| j.behaviour.clone());
    part(&mut text, "verdict", &|j| format!("{:?}", j.cause));
    let _ = writeln!(text, "## Truth and verdict\n{}", judgement::confusion(all));
    let _ = writeln!(
        text,
        "## True holds of half a second or more in whole captures\n| hold | all | not reported |\n|---|---|---|"
    );
    for (hold, (whole, lost)) in missed {
        let _ = writeln!(text, "| {hold} | {whole} | {lost} |");
    }
    let _ = writeln!(
        text,
        "\n## Wrong with high confidence (--seed {})",
        args.seed
    );
    text.push_str(&judgement::wrong(all, Confidence::High));
    text
}

/// Returns the truth and the verdicts of one capture.
fn show(seed: u64, number: u64, point: Point, cut: Cut) -> Result<String> {
    let case = Case::draw(seed, number);
    let run = case.run();
    let mut text = format!("{case:#?}\n");
    for end in [End::Client, End::Server] {
        let _ = writeln!(
            text,
            "\ndata of the {end:?} ({}):",
            case.kinds[end.index()].name()
        );
        for interval in &run.truth[end.index()].timeline {
            let long_ns = interval.end_ns - interval.start_ns;
            let (hold, above, missing) = (interval.hold, interval.above, interval.missing);
            let (start_s, long_s) = (interval.start_ns as f64 / 1e9, long_ns as f64 / 1e9);
            if long_ns >= 10_000_000 {
                let _ = writeln!(
                    text,
                    "{start_s:10.6} {long_s:9.6} {hold:?} limit {:?} missing {missing} above {above}",
                    interval.limit
                );
            }
        }
        for sent in &run.truth[end.index()].sent {
            let plain = sent.why == Why::New || sent.why == Why::Ack;
            let arrives = matches!(sent.fate, Fate::Arrives(_));
            if !plain || !arrives {
                let (why, begin, last) = (sent.why, sent.begin, sent.end);
                let time_s = sent.time_ns as f64 / 1e9;
                let _ = writeln!(
                    text,
                    "{time_s:10.6} {why:?} {begin}..{last} {:?}",
                    sent.fate
                );
            }
        }
    }
    let (pcap, first_ns) = run.pcap(point, cut);
    let Some(analysis) = analyse(&pcap)? else {
        return Ok(text);
    };
    for connection in &analysis.connections {
        let _ = writeln!(text, "\n{}", connection.verdict);
        for stop in &connection.stalls {
            let _ = writeln!(
                text,
                "{:10.6} {:9.6} {:?} {:?} {:?} {:?} {:?} x{}: {} {:?}",
                (first_ns + stop.start_ns) as f64 / 1e9,
                stop.duration_ns as f64 / 1e9,
                stop.direction,
                stop.kind,
                stop.cause,
                stop.side,
                stop.confidence,
                stop.count,
                stop.explanation,
                stop.evidence
            );
        }
    }
    for judgement in judge_one(&case, &run, point, cut, first_ns, &analysis) {
        let _ = writeln!(
            text,
            "{:?} is {:?}: truth {:?}",
            judgement.cause, judgement.right, judgement.truth
        );
    }
    Ok(text)
}
