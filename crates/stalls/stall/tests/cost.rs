// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time grows with the segments, whatever they say. Steps are counted, not seconds.

use capture::segment::Segment;
use stall::{Analyser, Options};

use crate::script;
use crate::script::{Base, HANDSHAKE, segments};

/// Segments under way in each of these.
const SENT: u32 = 20_000;
/// Of each, in bytes.
const SIZE: u32 = 1000;
/// Steps that a segment may take in the mean.
const STEPS_MOST: u64 = 300;

/// The handshake and `SENT` segments, then what `line` says of each of them.
fn transfer(line: impl Fn(u32) -> String) -> Vec<Segment> {
    let mut text = HANDSHAKE.to_owned();
    for number in 0..SENT {
        let start = number * SIZE;
        text += &format!("50 S {start}..{}\n", start + SIZE);
    }
    for number in 0..SENT {
        text += &line(number);
    }
    segments(&text, Base::default())
}

fn check(all: &[Segment], options: Options) {
    let mut analyser = Analyser::new(options);
    for segment in all {
        analyser.segment(segment);
    }
    let steps = analyser.steps() / all.len() as u64;
    assert!(steps <= STEPS_MOST, "{steps} steps for each segment");
}

/// A place in the middle of a segment, another one each time, all over the window.
fn middle(number: u32) -> u32 {
    let scattered = number.wrapping_mul(7919) % SENT;
    scattered * SIZE + 300
}

#[test]
fn blocks_that_split_segments() {
    let all = transfer(|number| {
        let [a, b, c] = [0, 1, 2].map(|more| middle(3 * number + more));
        let blocks = format!("{a}..{} {b}..{} {c}..{}", a + 100, b + 100, c + 100);
        format!("60 R ack 0 sack {blocks}\n")
    });
    check(&all, Options::default());
}

#[test]
fn acknowledgements_below_many_blocks() {
    let half = SENT / 2;
    let all = transfer(|number| match number {
        _ if number < half => {
            let start = 2 * number * SIZE;
            format!("60 R ack 0 sack {}..{}\n", start + SIZE, start + 2 * SIZE)
        }
        _ => format!("70 R ack {}\n", 2 * (number - half) * SIZE),
    });
    check(&all, Options::default());
}

#[test]
fn repeats_below_many_blocks() {
    let half = SENT / 2;
    let all = transfer(|number| match number {
        _ if number < half => {
            let start = 2 * number * SIZE;
            format!("60 R ack 0 sack {}..{}\n", start + SIZE, start + 2 * SIZE)
        }
        _ => format!("70 S 0..{}\n", SIZE),
    });
    let few = Options {
        reported_most: 64,
        ..Options::default()
    };
    check(&all, few);
}

#[test]
fn repeats_of_everything() {
    let all = transfer(|_| format!("70 S 0..{}\n", SENT * SIZE));
    let few = Options {
        repeated_most: 64,
        ..Options::default()
    };
    check(&all, few);
}

#[test]
fn repeats_that_split_segments() {
    let all = transfer(|number| {
        let start = middle(number);
        format!("70 S {start}..{}\n", start + 100)
    });
    check(&all, Options::default());
}

/// Beyond what is remembered, reports and repeats are counted, and said.
#[test]
fn what_is_not_remembered_is_said() {
    let options = Options {
        reported_most: 4,
        repeated_most: 4,
        ..Options::default()
    };
    let mut text = HANDSHAKE.to_owned();
    for number in 0..20u32 {
        text += &format!("50 S {}..{}\n", number * 1000, number * 1000 + 1000);
    }
    // Six ranges that do not touch; a second report of the fourth is no more.
    for number in [1, 3, 5, 7, 9, 11, 7u32] {
        text += &format!(
            "60 R ack 0 sack {}..{}\n",
            number * 1000,
            number * 1000 + 1000
        );
    }
    // Ten segments in one.
    text += "80 S 0..10000\n90 R ack 20000\n";
    let analysis = script::analyse_with(&segments(&text, Base::default()), options);
    let notes = analysis.connections[0].notes.join("\n");
    assert!(notes.contains("2 SACK blocks from the server"), "{notes}");
    assert!(notes.contains("1 retransmissions to the server"), "{notes}");
}
