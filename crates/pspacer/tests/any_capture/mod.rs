// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as a capture, through reading and analysis. `fuzz/targets/stalls.rs`
//! calls this, and a test replays its corpus.

use std::io::{self, Cursor, Read};

use capture::annotate::{Comments, annotate};
use capture::choice::Choice;
use capture::segment::Segment;
use capture::segments::following::{Following, Next};
use capture::segments::{Segments, Source};
use stall::follow::{Follower, Limits};
use stall::two_ends::{Trace, TwoEnds};
use stall::{Analyser, Analysis, Options};

/// Reads and analyses `bytes` alone and merged with themselves. What must hold
/// of any file is asserted.
pub fn replay(bytes: &[u8]) {
    let Some((alone, segments)) = analyse(bytes, 1, None) else {
        return;
    };
    check(&alone, segments);
    let again = analyse(bytes, 1, Some(0)).map(|(again, _)| again.connections.len());
    assert_eq!(Some(alone.connections.len()), again);
    if let Some((twice, segments)) = analyse(bytes, 2, None) {
        check(&twice, segments);
    }
    let read = segments_of(bytes);
    copied(bytes, &read);
    followed(bytes, &read);
    paired(&read);
}

fn segments_of(bytes: &[u8]) -> Vec<Segment> {
    let source = Source::new("any", || Ok(Box::new(bytes) as Box<dyn Read + '_>));
    let mut all = Vec::new();
    if let Ok(mut segments) = Segments::open(vec![source]) {
        while let Some(segment) = segments.next() {
            all.push(segment);
        }
    }
    all
}

/// A copy with comments has the same segments.
fn copied(bytes: &[u8], read: &[Segment]) {
    let comment = || vec!["pspacer stall=1.1".to_owned(), String::new()];
    let commented = read.iter().step_by(3).map(|s| (s.number, comment()));
    let comments = Comments {
        by_packet: commented.collect(),
        mark: "pspacer stall=",
    };
    let mut out = Cursor::new(Vec::new());
    if annotate(bytes, &mut out, &comments).is_ok() {
        assert!(
            segments_of(out.get_ref()) == read,
            "the copy has the same segments"
        );
    }
}

/// Gives some bytes at a time, and between that there is nothing yet.
struct Piecewise(Cursor<Vec<u8>>, bool);

impl Read for Piecewise {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let most = buffer.len().min(97);
        self.0.read(&mut buffer[..most])
    }
}

/// What comes in pieces is what the file has, unless it is packed.
fn followed(bytes: &[u8], read: &[Segment]) {
    let owned = Cursor::new(bytes.to_vec());
    let mut following = Following::new(Choice::default());
    following.begin("any", Box::new(Piecewise(owned, false)));
    let limits = Limits {
        connections_most: 3,
        silent_ns: 1_000_000_000,
    };
    let mut follower = Follower::new(Options::default(), limits);
    let mut found = Vec::new();
    loop {
        match following.next() {
            Next::Segment(segment) => {
                follower.segment(&segment);
                assert!(follower.connections() <= 3);
                found.push(segment);
            }
            Next::Waiting => follower.settle(),
            Next::End => break,
        }
        follower.reports().for_each(drop);
    }
    follower.finish();
    let is_packed =
        bytes.starts_with(&[0x1f, 0x8b]) || bytes.get(1..4) == Some(&[0xb5, 0x2f, 0xfd]);
    let is_skippable = bytes.get(1..4) == Some(&[0x2a, 0x4d, 0x18]);
    assert!(
        is_packed || is_skippable || found == read,
        "the same segments in pieces"
    );
}

/// Any capture is put together with itself.
fn paired(read: &[Segment]) {
    let mut trace = Trace::default();
    for segment in read {
        assert_eq!(trace.push(segment), Ok(()));
    }
    if let Ok(ends) = TwoEnds::of(&trace, &trace) {
        assert!(
            ends.paths
                .iter()
                .all(|path| path.arrived + path.lost <= path.sent)
        );
    }
}

/// The analysis, and the number of the last packet.
fn analyse(bytes: &[u8], files: usize, history_of: Option<usize>) -> Option<(Analysis, u64)> {
    let source = |_| Source::new("any", || Ok(Box::new(bytes) as Box<dyn Read + '_>));
    let mut segments = Segments::open((0..files).map(source).collect()).ok()?;
    let mut analyser = Analyser::new(Options {
        history_of,
        ..Options::default()
    });
    let mut last = 0;
    while let Some(segment) = segments.next() {
        assert!(segment.number > last, "numbers go up");
        last = segment.number;
        let _ = segments.encapsulations().name(segment.encapsulation);
        analyser.segment(&segment);
    }
    let counts = segments.counts();
    assert!(last <= counts.packets);
    let others = counts.not_tcp + counts.unknown_link + counts.timeless + counts.cut;
    let others = others + counts.no_interface + counts.encrypted;
    let all = counts.segments + others + counts.malformed + counts.later_fragments;
    assert_eq!(all, counts.packets, "every packet is counted once");
    Some((analyser.finish(), last))
}

fn check(analysis: &Analysis, last: u64) {
    for connection in &analysis.connections {
        assert!(!connection.verdict.is_empty());
        for stall in &connection.stalls {
            assert!(stall.evidence.is_sorted());
            assert!(
                stall
                    .evidence
                    .iter()
                    .all(|packet| (1..=last).contains(packet))
            );
        }
    }
}
