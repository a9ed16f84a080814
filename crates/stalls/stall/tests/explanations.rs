// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures that look like one cause and have another explanation, at the sender and at the
//! receiver: what senders of other habits do, and what a capture cannot show.

use std::fmt::Write as _;

use stall::{Cause, Confidence, Connection, Stall};

use crate::script::{Base, analyse, connection, segments};

/// The handshake of a path of 20 ms, captured at the sender and at the receiver.
const AT_SENDER: &str = "0 S SYN\n20 R SYN\n20 S ack\n20 S 0..1448\n40 R ack 1448\n";
const AT_RECEIVER: &str = "0 S SYN\n0 R SYN\n20 S ack\n20 S 0..1448\n20 R ack 1448\n";

fn of(found: &Connection, cause: Cause) -> Option<&Stall> {
    found.stalls.iter().find(|stall| stall.cause == cause)
}

/// A sender without SACK goes back to the first loss and sends everything again, also what the
/// receiver had reported. Nothing overtook anything.
#[test]
fn who_goes_back_and_sends_everything_again_shows_no_overtaking() {
    for (begin, back_ms) in [(AT_SENDER, 20), (AT_RECEIVER, 0)] {
        let mut text = String::from(begin);
        for round in 0..3u32 {
            let (at, first) = (100 + 200 * round, 1448 + round * 11 * 1448);
            let (hole, end) = (first + 1448, first + 11 * 1448);
            let answer = at + back_ms;
            let _ = writeln!(text, "{at} S {first}..{hole}");
            if back_ms > 0 {
                let _ = writeln!(text, "{at} S {hole}..{}", hole + 1448);
            }
            let _ = writeln!(text, "{at} S {}..{end}", hole + 1448);
            let _ = writeln!(text, "{answer} R ack {hole}");
            for _ in 0..3 {
                let _ = writeln!(text, "{answer} R ack {hole} sack {}..{end}", hole + 1448);
            }
            let _ = writeln!(text, "{} S {hole}..{}", at + 21, hole + 1448);
            let _ = writeln!(text, "{} R ack {end}", at + 21 + back_ms);
            for n in 2..10 {
                let from = first + n * 1448;
                let _ = writeln!(text, "{} S {from}..{}", at + 42, from + 1448);
            }
            let _ = writeln!(text, "{} R ack {end}", at + 42 + back_ms);
        }
        let found = connection(&text);
        let wrong = of(&found, Cause::Reordering);
        assert!(wrong.is_none(), "{back_ms} ms: {wrong:#?}");
    }
}

/// The end of the stream answers nothing.
#[test]
fn the_end_of_the_stream_is_no_answer() {
    for back_ms in [20, 0] {
        let found = connection(&format!(
            "
            0    S SYN
            {back_ms} R SYN
            20   S ack
            20   S 0..300
            {}   R ack 300
            3000 S FIN 300..300
            {}   R ack 301 FIN 0..0
            3040 S ack 1
        ",
            20 + back_ms,
            3000 + back_ms,
        ));
        let wrong = of(&found, Cause::ResponseTime);
        assert!(wrong.is_none(), "{wrong:#?}");
    }
}

/// Without the handshake, and with ports that tell nothing, who asks and who answers is not to
/// be seen: the pause may be the one's work or the other's thinking.
#[test]
fn who_answers_is_not_known_without_the_handshake() {
    for back_ms in [20, 0] {
        let mut text = String::new();
        for n in 0..4 {
            let (at, from, answer) = (100 + 2000 * n, n * 300, n * 100);
            let back = at + back_ms;
            let _ = writeln!(text, "{at} S {from}..{}", from + 300);
            let _ = writeln!(text, "{back} R ack {}", from + 300);
            let _ = writeln!(text, "{} R {answer}..{}", back + 900, answer + 100);
            let _ = writeln!(text, "{} S ack {}", at + 920, answer + 100);
        }
        let mut all = segments(&text, Base::default());
        for end in all.iter_mut().flat_map(|s| [&mut s.from, &mut s.to]) {
            end.port = if end.port == 5001 { 50_001 } else { end.port };
        }
        let found = analyse(&all).connections.remove(0);
        for stall in &found.stalls {
            assert_ne!(stall.confidence, Confidence::High, "{found:#?}");
            assert_ne!(stall.cause, Cause::ResponseTime, "{found:#?}");
        }
    }
}

/// Only one side's packets: what answered the SYN is not to be seen, but that data followed is.
#[test]
fn the_setup_is_over_when_data_follows() {
    let found = connection(
        "
        0     S SYN
        1000  S SYN
        3000  S SYN
        3020  S ack
        3020  S 0..1448
        9000  S 1448..2896
        60000 S 2896..4344
    ",
    );
    let setup = of(&found, Cause::ConnectionSetup).unwrap();
    assert_eq!(setup.duration_ns, 3_000_000_000, "{setup:#?}");
    assert_eq!(setup.evidence, [1, 2, 3]);
    assert!(!setup.explanation.contains("no answer"), "{setup:#?}");
}

/// The client had the first answer and said so: that its acknowledgement was lost holds up the
/// server alone, and an answer that came twice afterwards nobody.
#[test]
fn an_answer_that_is_repeated_later_did_not_delay_the_setup() {
    let found = connection(
        "
        0     S SYN
        150   R SYN
        150   S ack
        1200  R SYN
        1200  S ack
        1300  S 0..1448
        1450  R ack 1448
    ",
    );
    assert!(
        of(&found, Cause::ConnectionSetup).is_none(),
        "{:#?}",
        found.stalls
    );
}

/// Copies that a queue in front of the capture held up left before the acknowledgement could
/// reach their sender: none was lost.
#[test]
fn copies_from_a_queue_show_no_loss_of_acknowledgements() {
    let mut text = format!("{AT_RECEIVER}40 S 1448..11584\n40 R ack 11584\n");
    for n in 0..7 {
        let from = 1448 + n * 1448;
        let _ = writeln!(text, "{} S {from}..{}", 110 + n * 10, from + 1448);
        let _ = writeln!(text, "{} R ack 11584", 110 + n * 10);
    }
    text.push_str("190 S 11584..13032\n190 R ack 13032\n");
    let found = connection(&text);
    let wrong = of(&found, Cause::AckLoss);
    assert!(wrong.is_none(), "{wrong:#?}");
}

/// The acknowledgement was lost, and repeated when the segment was. That the sender then had
/// nothing to send for seconds is another matter.
#[test]
fn a_lost_acknowledgement_is_over_when_it_is_repeated() {
    let found = connection(&format!(
        "{AT_RECEIVER}
        40   S 1448..4344
        40   R ack 4344
        440  S 1448..2896
        440  R ack 4344
        4440 S 4344..4444
        4440 R ack 4444
    "
    ));
    let lost = of(&found, Cause::AckLoss).unwrap();
    assert_eq!(lost.duration_ns, 400_000_000, "{lost:#?}");
    // Nothing that the sender echoes tells whether it came later.
    assert_eq!(lost.confidence, Confidence::Medium);
}

/// A probe that nothing answered: packets of the receiver were lost, and one of them may have
/// told of room. At the receiver it would have been seen.
#[test]
fn a_window_is_not_sure_to_be_closed_while_probes_are_lost() {
    for (begin, back_ms, sure) in [(AT_SENDER, 20, false), (AT_RECEIVER, 0, true)] {
        let found = connection(&format!(
            "{begin}
            40   S 1448..2896
            {}   R ack 2896 win 0
            400  S probe
            800  S probe
            5000 R ack 2896 win 20000
            5020 S 2896..4344
            {}   R ack 4344
        ",
            40 + back_ms,
            5020 + back_ms
        ));
        let closed = of(&found, Cause::ReceiverWindowClosed).unwrap();
        assert_eq!(closed.confidence == Confidence::High, sure, "{closed:#?}");
    }
}

/// The window is filled, and the acknowledgement comes when the reader has made room, by chance
/// after a time that fits a timer.
#[test]
fn a_window_that_is_filled_is_no_delayed_acknowledgement() {
    for (begin, back_ms) in [(AT_SENDER, 20), (AT_RECEIVER, 0)] {
        let found = connection(&format!(
            "{begin}
            100 S 1448..2896
            {}  R ack 2896 win 16
            {}  S 2896..4224
            {}  R ack 4224 win 8
            {}  S 4224..5248
            {}  R ack 5248 win 40
            {}  S 5248..6696
            {}  R ack 6696
        ",
            100 + back_ms,
            120,
            120 + back_ms,
            140,
            140 + back_ms + 102,
            140 + 122,
            140 + 122 + back_ms
        ));
        let held = of(&found, Cause::DelayedAck);
        assert!(held.is_none(), "{back_ms} ms: {held:#?}");
        let closed = of(&found, Cause::ReceiverWindowClosed);
        assert!(closed.is_some(), "{back_ms} ms: {:#?}", found.stalls);
    }
}

/// A single segment, and a timer that is shorter than Linux's: a stack without probes does the
/// same.
#[test]
fn the_only_segment_is_repeated_by_any_timer() {
    for (begin, back_ms) in [(AT_SENDER, 20), (AT_RECEIVER, 0)] {
        let found = connection(&format!(
            "{begin}
            60  S 1448..2896
            150 S 1448..2896
            {}  R ack 2896
            200 S 2896..4344
            {}  R ack 4344
        ",
            150 + back_ms,
            200 + back_ms
        ));
        let wrong = of(&found, Cause::TailLossProbe);
        assert!(wrong.is_none(), "{back_ms} ms: {wrong:#?}");
    }
}

/// Two segments were reported, and the answer to the repair tells of eight more that had
/// arrived: enough to repair it at once, if their reports had come through.
#[test]
fn reports_that_were_lost_are_not_too_few_segments() {
    let found = connection(&format!(
        "{AT_SENDER}
        40  S 1448..15928
        60  R ack 1448 sack 2896..5792
        300 S 1448..2896
        320 R ack 15928
        320 S 15928..17376
        340 R ack 17376
    "
    ));
    let wrong = of(&found, Cause::RtoFewDupacks);
    assert!(wrong.is_none(), "{wrong:#?}");
}

/// Of what several acknowledgements in a row told, the sender knows nothing, and its first
/// repeats did not come either: nothing passed in either direction. One acknowledgement that was
/// lost, or a repeat that may be the first one, shows no more than that.
#[test]
fn a_path_is_silent_if_acknowledgements_and_repeats_were_lost() {
    for (segments, again_ms, wanted) in [
        (10, 4000, Cause::SilentPath),
        (1, 4000, Cause::AckLoss),
        (10, 600, Cause::AckLoss),
    ] {
        let mut text = String::from(AT_RECEIVER);
        for n in 1..5 {
            let (at, from) = (20 + n * 20, n * 1448);
            let _ = writeln!(text, "{at} S {from}..{}", from + 1448);
            let _ = writeln!(text, "{at} R ack {}", from + 1448);
        }
        let first = 5 * 1448;
        for n in 0..segments {
            let from = first + n * 1448;
            let _ = writeln!(text, "120 S {from}..{}", from + 1448);
            let _ = writeln!(text, "120 R ack {}", from + 1448);
        }
        let end = first + segments * 1448;
        let again = 120 + again_ms;
        let _ = writeln!(text, "{again} S {first}..{}", first + 1448);
        let _ = writeln!(text, "{again} R ack {end}");
        let _ = writeln!(text, "{} S {end}..{}", again + 20, end + 1448);
        let _ = writeln!(text, "{} R ack {}", again + 20, end + 1448);
        let found = connection(&text);
        assert!(of(&found, wanted).is_some(), "{again_ms} ms: {found:#?}");
        for stall in &found.stalls {
            let is_sure = stall.confidence == Confidence::High;
            assert!(stall.cause == wanted || !is_sure, "{stall:#?}");
        }
    }
}

/// Three timeouts, each twice as long as the one before, take seven times the first, which is a
/// second in many a stack: a hole that is filled later had repairs that were lost before the capture.
#[test]
fn a_hole_that_is_filled_late_had_several_repairs() {
    for (repair_ms, wanted) in [(3200, false), (6200, true)] {
        let mut text = String::from("0 S SYN\n10 R SYN\n20 S ack\n");
        for n in 0..8 {
            let (at, from) = (20 + n * 20, n * 1448);
            let _ = writeln!(text, "{at} S {from}..{}", from + 1448);
            let _ = writeln!(text, "{} R ack {}", at + 10, from + 1448);
        }
        let (at, hole) = (220, 8 * 1448);
        let _ = writeln!(text, "{at} S {}..{}", hole + 1448, hole + 5 * 1448);
        let _ = writeln!(
            text,
            "{} R ack {hole} sack {}..{}",
            at + 10,
            hole + 1448,
            hole + 5 * 1448
        );
        let (again, end) = (at + repair_ms, hole + 5 * 1448);
        let _ = writeln!(text, "{again} S {hole}..{}", hole + 1448);
        let _ = writeln!(text, "{} R ack {end}", again + 10);
        let found = connection(&text);
        let storm = of(&found, Cause::RtoStorm).is_some();
        assert_eq!(storm, wanted, "{found:#?}");
    }
}
