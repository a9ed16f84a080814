// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds a transfer down in every round trip, and so has no round trip
//! without it to be compared with.

use std::fmt::Write as _;

use stall::{Cause, Confidence, Side, Stall};

use crate::script::{Base, analyse, connection, segments};

fn stalls(script: &str) -> Vec<Stall> {
    connection(script).stalls
}

/// Messages of 300 bytes over a way of a millisecond, as a capture at the sender has
/// them, each let go by the acknowledgement of the one before.
fn one_by_one(answers_ms: f64, messages: u32) -> String {
    let mut text = String::from("0 S SYN\n1 R SYN\n1 S ack\n1 S 0..300\n2 R ack 300\n");
    let mut now_ms = 10.0;
    for message in 1..=messages {
        let (from, to) = (message * 300, (message + 1) * 300);
        let _ = writeln!(text, "{now_ms} S {from}..{to}");
        now_ms += answers_ms;
        let _ = writeln!(text, "{now_ms} R ack {to}");
    }
    text
}

#[test]
fn an_acknowledgement_that_is_always_held_back_is_no_long_way() {
    // A receiver's timer and the way; the way alone, which has grown.
    for (answers_ms, is_held) in [(41.0, true), (45.0, true), (71.0, false), (25.0, false)] {
        let stalls = stalls(&one_by_one(answers_ms, 60));
        let held = stalls
            .iter()
            .filter(|stall| stall.cause == Cause::DelayedAck);
        let waits: u64 = held.clone().map(|stall| stall.count).sum();
        if is_held {
            let longest = held.max_by_key(|stall| stall.duration_ns).unwrap();
            assert_eq!(longest.side, Side::Receiver);
            assert_eq!(longest.confidence, Confidence::High);
            // The last one let nothing go.
            assert!(longest.count >= 58, "{answers_ms} ms: {stalls:#?}");
        } else {
            assert!(waits < 8, "{answers_ms} ms: {stalls:#?}");
        }
    }
}

#[test]
fn a_full_segment_sent_meanwhile_does_not_make_a_held_acknowledgement_a_pause() {
    let mut text = one_by_one(41.0, 20);
    // Nagle's rule lets a full segment go, and the receiver's timer ends just then.
    text.push_str(
        "
        830  S 6300..6600
        870  S 6600..8048
        871  R ack 6600
        871  S 8048..8100
        872  R ack 8100
    ",
    );
    for stall in stalls(&text) {
        assert_eq!(stall.cause, Cause::DelayedAck, "{stall:#?}");
    }
}

/// As a capture at the receiver has it, 20 ms from the sender and back: each 5 ms
/// the program reads five segments and the window's edge moves by as many; what
/// fills it comes 20 ms later. `unused` segments of the window are never used.
fn paced_into_a_window(unused: u32) -> String {
    const SEGMENT: u32 = 1408; // 11 units of the window
    let mut text = format!(
        "0 S SYN\n0 R SYN\n20 S ack\n20 S 0..{}\n20 R ack {} win {}\n",
        5 * SEGMENT,
        5 * SEGMENT,
        11 * (20 + unused),
    );
    for arrival in 0..1000 {
        let (period, in_period) = (arrival / 5, arrival % 5);
        let (from, to) = ((5 + arrival) * SEGMENT, (6 + arrival) * SEGMENT);
        let at_ms = 40 + 5 * period + in_period;
        let edge = 30 + 5 * period + unused;
        let room = 11 * (edge - (6 + arrival));
        let _ = writeln!(
            text,
            "{at_ms} S {from}..{to}\n{at_ms} R ack {to} win {room}"
        );
    }
    text
}

#[test]
fn a_window_is_full_by_what_the_sender_knew_of_it() {
    for (unused, is_full) in [(0, true), (4, false), (40, false)] {
        let stalls = stalls(&paced_into_a_window(unused));
        let Some(stall) = stalls.first() else {
            assert!(!is_full, "{unused} segments unused: nothing was found");
            continue;
        };
        assert!(is_full, "{unused} segments unused: {stalls:#?}");
        assert_eq!(stall.cause, Cause::ReceiverWindowSmall);
        assert_eq!(stall.side, Side::Receiver);
        assert_eq!(stall.confidence, Confidence::Medium);
        assert!(stall.duration_ns > 800_000_000, "{stalls:#?}");
    }
}

/// As a capture at the sender has it, 20 ms from the receiver: 20 segments at a time, far below
/// the window, each `period_ms`, or as soon as those before are acknowledged.
fn piece_by_piece(period_ms: Option<f64>) -> String {
    const SEGMENT: u32 = 1448;
    const PIECE: u32 = 20 * SEGMENT;
    let mut text = String::from("0 S SYN\n20 R SYN\n20 S ack\n");
    for piece in 0..60 {
        let at_ms = 20.0 + f64::from(piece) * period_ms.unwrap_or(20.3);
        for n in 0..20 {
            let from = piece * PIECE + n * SEGMENT;
            let _ = writeln!(text, "{at_ms} S {from}..{}", from + SEGMENT);
        }
        for n in 1..=10 {
            let (ms, to) = (at_ms + 20.0 + 0.03 * f64::from(n), 2 * n * SEGMENT);
            let _ = writeln!(text, "{ms} R ack {}", piece * PIECE + to);
        }
    }
    let mut lines: Vec<&str> = text.lines().collect();
    let time = |line: &str| line.split(' ').next().unwrap().parse::<f64>().unwrap();
    lines.sort_by(|a, b| time(a).total_cmp(&time(b)));
    lines.join("\n")
}

#[test]
fn who_sends_by_the_clock_is_not_held_by_a_buffer() {
    let held = stalls(&piece_by_piece(None));
    assert_eq!(held.len(), 1, "{held:#?}");
    assert_eq!(
        (held[0].cause, held[0].side),
        (Cause::SendBuffer, Side::Sender)
    );
    for period_ms in [13.0, 17.0] {
        let stalls = stalls(&piece_by_piece(Some(period_ms)));
        assert!(stalls.is_empty(), "each {period_ms} ms: {stalls:#?}");
    }
    // Nor where options are cut off, and with them the window's scale.
    let mut cut = segments(&piece_by_piece(Some(13.0)), Base::default());
    for syn in &mut cut[..2] {
        (syn.window_scale, syn.options_cut) = (None, true);
    }
    let all = analyse(&cut).connections;
    assert!(all[0].stalls.is_empty(), "{all:#?}");
}
