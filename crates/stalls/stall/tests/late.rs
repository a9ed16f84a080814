// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers that come late, and what only looks like it.

use std::fmt::Write as _;

use stall::{Cause, Confidence, Side, Stall};

use crate::script::{Base, HANDSHAKE, TEN, analyse, connection, segments};

fn stalls(script: &str) -> Vec<Stall> {
    connection(script).stalls
}

/// Sent at 40 ms are ten segments, and into the silence one more, to probe; then all is
/// answered in `steps`.
fn all_late(steps: &[u32]) -> Vec<Stall> {
    let mut text = format!("{HANDSHAKE}{TEN}40 S 14480..28960\n100 S 28960..30408\n");
    for end in steps {
        let _ = writeln!(text, "240 R ack {end}");
    }
    text.push_str("241 S 30408..44888\n261 R ack 44888\n");
    stalls(&text)
}

#[test]
fn a_probe_into_a_silence_does_not_tell_that_all_had_arrived() {
    let one_by_one: Vec<u32> = (1..=11).map(|n| 14_480 + n * 1448).collect();
    let stalls = all_late(&one_by_one);
    assert_eq!(stalls.len(), 1, "{stalls:#?}");
    let stall = &stalls[0];
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::DelaySpike, Side::Network)
    );
    assert_eq!(stall.duration_ns, 200_000_000);

    let stalls = all_late(&[30_408]);
    assert_eq!(stalls.len(), 1, "{stalls:#?}");
    assert_eq!(stalls[0].cause, Cause::AckLoss);
    assert!(stalls[0].confidence <= Confidence::Medium);
}

/// A program that writes twice and waits for its answer, 30 ms away, and a receiver whose
/// timer ends after 44 to 50 ms, as where the kernel's clock ticks each 10 ms. `at_ms`: of the
/// capture, from the sender.
fn write_write_read(at_ms: f64) -> Vec<Stall> {
    const WAY_MS: f64 = 15.0;
    let back_ms = 2.0 * (WAY_MS - at_ms);
    let mut text = format!(
        "0 S SYN\n{back_ms} R SYN\n{} S ack\n",
        back_ms + 2.0 * at_ms
    );
    let mut now_ms = 40.0 + at_ms;
    for n in 0..20 {
        let (first, second) = (n * 200, n * 200 + 100);
        let _ = writeln!(text, "{now_ms} S {first}..{second}");
        now_ms += f64::from(44 + n % 6) + back_ms;
        let _ = writeln!(text, "{now_ms} R ack {second}");
        now_ms += 2.0 * at_ms;
        let _ = writeln!(text, "{now_ms} S {second}..{}", first + 200);
        now_ms += back_ms;
        let _ = writeln!(text, "{now_ms} R ack {}", first + 200);
        let _ = writeln!(text, "{now_ms} R {}..{}", n * 10, n * 10 + 10);
        now_ms += 2.0 * at_ms;
    }
    let mut segments = segments(&text, Base::default());
    let start_ns = segments[0].time_ns;
    for segment in &mut segments {
        // Both clocks tick each millisecond, and what is echoed is on its way as long as it was.
        let passed_ms = (segment.time_ns - start_ns) as f64 / 1e6;
        let is_sender = segment.to.port == 5001;
        let (own_ms, other_ms) = if is_sender {
            (passed_ms - at_ms, passed_ms - 2.0 * at_ms)
        } else {
            (passed_ms - back_ms / 2.0, passed_ms - back_ms)
        };
        segment.timestamps = Some(capture::segment::Timestamps {
            value: (1000.0 + own_ms) as u32,
            echo: Some((1000.0 + other_ms) as u32),
        });
    }
    let mut all = analyse(&segments).connections;
    all.pop().unwrap().stalls
}

#[test]
fn an_acknowledgement_that_is_held_back_is_seen_from_everywhere() {
    for at_ms in [0.0, 8.0, 15.0] {
        let stalls = write_write_read(at_ms);
        let held = stalls
            .iter()
            .filter(|stall| stall.cause == Cause::DelayedAck);
        let waits: u64 = held.clone().map(|stall| stall.count).sum();
        assert!(waits >= 18, "captured {at_ms} ms away: {stalls:#?}");
        for stall in held {
            assert_eq!(stall.side, Side::Receiver);
        }
    }
}

/// A repair of the last but one of a flight takes a round trip, which is no silence.
#[test]
fn what_a_repair_takes_is_no_late_answer_near_the_receiver() {
    let mut text = String::from("0 S SYN\n0 R SYN\n20 S ack\n20 S 0..1448\n20 R ack 1448\n");
    for n in 0..8u32 {
        let (at, first) = (40 + n * 60, 1448 + n * 4 * 1448);
        let (a, b) = (first + 2 * 1448, first + 3 * 1448);
        let end = first + 4 * 1448;
        let _ = write!(
            text,
            "{at} S {first}..{a}\n{at} R ack {a}\n{at} S {b}..{end}\n{at} R ack {a} sack {b}..{end}\n\
             {} S {a}..{b}\n{} R ack {end}\n",
            at + 21,
            at + 21
        );
    }
    let stalls = stalls(&text);
    assert!(stalls.is_empty(), "{stalls:#?}");
}

/// Held up for 500 ms: the sender's timer ends twice, and each of its repeats is reported
/// as one too many. No timestamps tell.
#[test]
fn repeats_that_were_all_needless_are_no_silent_path() {
    let mut text = format!("{HANDSHAKE}{TEN}40 S 14480..28960\n");
    text.push_str("270 S 14480..15928\n480 S 14480..15928\n");
    for n in 1..=10 {
        let _ = writeln!(text, "560 R ack {}", 14_480 + n * 1448);
    }
    text.push_str(
        "
        560 R ack 28960 sack 14480..15928
        561 R ack 28960 sack 14480..15928
        562 S 28960..43440
        582 R ack 43440
    ",
    );
    let stalls = stalls(&text);
    assert_eq!(stalls.len(), 1, "{stalls:#?}");
    let stall = &stalls[0];
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::DelaySpike, Side::Network)
    );
}

/// Nobody reports what came twice; that the rest is acknowledged before its repair can
/// have arrived tells as much.
#[test]
fn answers_that_come_before_the_repair_are_late_ones() {
    let mut text = format!("{HANDSHAKE}{TEN}40 S 14480..28960\n270 S 14480..15928\n");
    for n in 1..=10 {
        let (end, next) = (14_480 + n * 1448, 14_480 + (n + 1) * 1448);
        let _ = writeln!(text, "280 R ack {end}");
        if n < 10 {
            let _ = writeln!(text, "281 S {end}..{next}");
        }
    }
    text.push_str("310 S 28960..43440\n330 R ack 43440\n");
    let stalls = stalls(&text);
    assert_eq!(stalls.len(), 1, "{stalls:#?}");
    let stall = &stalls[0];
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::DelaySpike, Side::Network)
    );
    assert_eq!(stall.confidence, Confidence::Medium);
}

/// The last of the window is acknowledged late, and closed is what it says.
#[test]
fn a_window_filled_to_its_edge_is_not_the_end_of_what_was_to_send() {
    let stalls = stalls(&format!(
        "{HANDSHAKE}{TEN}
        40  S 14480..15928
        60  R ack 15928 win 11
        60  S 15928..17336
        120 R ack 17336 win 0
        600 R ack 17336 win 20000
        600 S 17336..20232
        620 R ack 20232
    "
    ));
    for stall in &stalls {
        assert_eq!(stall.side, Side::Receiver, "{stalls:#?}");
    }
    assert!(!stalls.is_empty());
}

/// At the receiver, 100 ms from the sender and back: a flight is lost on its way. The sender's
/// timer sends the first again, two new ones tell of the hole, and slow start
/// repairs the rest.
#[test]
fn slow_start_after_an_unseen_timeout_is_not_pinned() {
    const SEGMENT: u32 = 1448;
    let mut text = String::from("0 S SYN\n0 R SYN\n100 S ack\n");
    let mut next = 0;
    for n in 0..4800 {
        let at = 100.0 + 0.25 * f64::from(n);
        let _ = writeln!(text, "{at} S {next}..{}", next + SEGMENT);
        next += SEGMENT;
        let _ = writeln!(text, "{at} R ack {next}");
    }
    let head = next + SEGMENT;
    let (far, end) = (head + 400 * SEGMENT, head + 402 * SEGMENT);
    let _ = write!(
        text,
        "1700 S {next}..{head}\n1700 R ack {head}\n\
         1701 S {far}..{end}\n1701 R ack {head} sack {far}..{end}\n"
    );
    let mut repaired = head;
    for round in 1..6 {
        let at = 1702 + 101 * round;
        for _ in 0..1 << round {
            repaired += SEGMENT;
            let from = repaired - SEGMENT;
            let _ = writeln!(text, "{at} S {from}..{repaired}");
            let _ = writeln!(text, "{at} R ack {repaired} sack {far}..{end}");
        }
    }
    let stalls = stalls(&text);
    let pinned = stalls.iter().find(|s| s.cause == Cause::RecoveryCwndPinned);
    assert!(pinned.is_none(), "{stalls:#?}");
}
