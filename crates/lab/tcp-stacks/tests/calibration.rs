// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often a verdict of each confidence is right, over connections of all behaviours and
//! stacks, each cut in five ways, captured at one of three points. The connections are those of
//! `cargo xtask calibrate`, with other segment sizes.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use capture::segments::{Segments, Source};
use stall::{Analysis, Cause, Confidence};
use tcp_stacks::acceptable::is_right;
use tcp_stacks::capture_file::Cut;
use tcp_stacks::draw::Kind;
use tcp_stacks::scenario::{Behaviour, Case};
use tcp_stacks::world::{Point, Run};

const SEED: u64 = 20_261_123;
/// Connections of each behaviour in `make test`, and in `make test-all`.
const SOME: u64 = 8;
const ALL: u64 = 30;
/// What is said of so many connections of each behaviour, at least.
const JUDGED_LEAST: u64 = 5000 / ALL;
/// Payload of a full segment: IPv4's least, through IPv6, through tunnels, with and without
/// timestamps, jumbo frames.
const SEGMENT_BYTES: [u16; 6] = [536, 1220, 1400, 1448, 1460, 8948];

/// Right verdicts and all, by confidence.
type Table = BTreeMap<Confidence, (u64, u64)>;

/// Draws a case, and gives its stacks a segment size of their own.
fn draw(number: u64) -> Case {
    let mut case = Case::draw(SEED, number);
    // On one host segments are as large as the device's.
    if case.behaviour != Behaviour::Loopback {
        let round = number / Behaviour::ALL.len() as u64;
        let bytes = SEGMENT_BYTES[(round + number) as usize % SEGMENT_BYTES.len()];
        for kind in &mut case.kinds {
            if let Kind::Scripted(profile) = kind {
                // Buffers of systems with jumbo frames have room for several.
                let has_room = profile.receive_bytes.min(profile.send_bytes) >= 65_535;
                profile.mss = if has_room { bytes } else { bytes.min(1460) };
            }
        }
    }
    case
}

fn analyse(pcap: &[u8]) -> Analysis {
    let open = || Ok(Box::new(Cursor::new(pcap)) as Box<dyn Read>);
    let segments = Segments::open(vec![Source::new("case", open)]).unwrap();
    stall::captures::read(segments, vec![], None, None).analysis
}

/// Judges what is said of one capture, and counts it.
fn judge(
    (case, run): (&Case, &Run),
    (point, cut): (Point, Cut),
    table: &mut Table,
    wrong: &mut Vec<String>,
) {
    if run.packets(point, cut).is_empty() {
        return;
    }
    let (pcap, first_ns) = run.pcap(point, cut);
    for connection in &analyse(&pcap).connections {
        for stall in &connection.stalls {
            if stall.cause == Cause::Unknown {
                continue; // no claim
            }
            let (end, truth) = run.truth_of(point, first_ns, connection, stall);
            let is_right = is_right(&truth, stall.cause, stall.side);
            let sender = case.kinds[end.index()].name();
            let count = table.entry(stall.confidence).or_default();
            *count = (count.0 + u64::from(is_right), count.1 + 1);
            if !is_right && stall.confidence == Confidence::High {
                wrong.push(format!(
                    "{} {:?} {point:?} {} {sender}: {:?} {:?}, in truth {truth:?}: {}",
                    case.number,
                    case.behaviour,
                    cut.name(),
                    stall.cause,
                    stall.side,
                    stall.explanation,
                ));
            }
        }
    }
}

/// Of what is said with high confidence 99 % is right, with medium 85 %, with low 60 %. That the
/// capture does not show a cause is no claim.
#[test]
fn confidence_says_how_often_a_verdict_is_right() {
    let of_each = if testkit::everything() { ALL } else { SOME };
    let (mut table, mut wrong) = (Table::new(), Vec::new());
    for number in 0..of_each * Behaviour::ALL.len() as u64 {
        let case = draw(number);
        let run = case.run();
        for (cut, shift) in Cut::ALL.into_iter().zip(0..) {
            let point = Point::ALL[(number + shift) as usize % Point::ALL.len()];
            judge((&case, &run), (point, cut), &mut table, &mut wrong);
        }
    }
    let judged: u64 = table.values().map(|(_, all)| all).sum();
    let text = format!("{judged} judged: {table:?}\n{}", wrong.join("\n"));
    println!("{text}");
    assert!(judged >= JUDGED_LEAST * of_each, "{text}");
    for (confidence, percent) in [
        (Confidence::High, 99),
        (Confidence::Medium, 85),
        (Confidence::Low, 60),
    ] {
        let (right, all) = table.get(&confidence).copied().unwrap_or_default();
        assert!(
            all > 0 && right * 100 >= all * percent,
            "{confidence:?}: {text}"
        );
    }
}
