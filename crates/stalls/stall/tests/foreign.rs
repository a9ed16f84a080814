// SPDX-License-Identifier: MIT OR Apache-2.0
//! What captures of others taught: a script for each thing that is so, and for each that only
//! looks like it.

use std::fmt::Write;

use stall::{Cause, Confidence, Side, Stall};

use crate::script::{AT_RECEIVER, Base, HANDSHAKE, TEN, analyse, connection, segments};

fn longest(script: &str) -> Stall {
    let found = connection(script);
    let longest = found.stalls.iter().max_by_key(|stall| stall.duration_ns);
    longest.unwrap_or_else(|| panic!("{found:#?}")).clone()
}

const REQUEST: &str = "
    0   S SYN
    20  R SYN
    20  S ack
    20  S 0..200
    40  R ack 200
    40  S 200..1648
";

#[test]
fn a_large_segment_that_the_answer_acknowledges_came_through() {
    let repeats = "260 S 200..1648\n700 S 200..1648\n";
    let through = longest(&format!(
        "{REQUEST}{repeats}1580 S 200..1648\n1600 R ack 1648\n"
    ));
    assert_ne!(through.cause, Cause::PmtuBlackHole, "{through:#?}");
    let hole = longest(&format!(
        "{REQUEST}{repeats}1580 S 200..736\n1600 R ack 736\n"
    ));
    assert_eq!(hole.cause, Cause::PmtuBlackHole, "{hole:#?}");
}

#[test]
fn acknowledgements_were_lost_if_the_sender_never_echoes_them() {
    // The repeat does not know of 9160; the sender goes on with what answered the repeat.
    let lost = "
        460  S 4344..5792 ts 460 9120
        460  R ack 5792 ts 9460 160
        500  S 5792..7240 ts 500 9460
        500  R ack 7240 ts 9500 500
    ";
    let stall = longest(&format!("{AT_RECEIVER}{lost}"));
    assert_eq!((stall.cause, stall.side), (Cause::AckLoss, Side::Network));
    assert_eq!(stall.confidence, Confidence::High);
    // It goes on with the acknowledgement that had been on its way for long.
    let late = lost.replace("ts 500 9460", "ts 500 9160");
    let stall = longest(&format!("{AT_RECEIVER}{late}"));
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::DelaySpike, Side::Network),
        "{stall:#?}"
    );
    // It had the acknowledgement, and repeats all the same.
    let known = lost.replace("ts 460 9120", "ts 460 9160");
    let stall = longest(&format!("{AT_RECEIVER}{known}"));
    assert!(stall.cause != Cause::AckLoss, "{stall:#?}");
    assert_eq!(stall.confidence, Confidence::Low);
}

#[test]
fn what_left_no_acknowledgement_at_the_receiver_was_not_acknowledged() {
    let stall = longest(&format!(
        "{AT_RECEIVER}
        200  S 5792..7240 ts 200 9160
        460  S 5792..7240 ts 460 9160
        460  R ack 7240 sack 5792..7240 ts 9460 460
        500  S 7240..8688 ts 500 9460
        500  R ack 8688 ts 9500 500
    "
    ));
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::DelayedAck, Side::Receiver),
        "{stall:#?}"
    );
}

/// On one host, packets of the two directions pass each other: an acknowledgement behind data that
/// was sent before it has an old number.
#[test]
fn an_acknowledgement_below_the_window_was_not_lost_on_the_path() {
    let script = |number: &str| {
        format!(
            "
        0    S SYN
        0    R SYN
        40   S ack
        40   S 0..1448
        40   R ack 1448
        80   S 1448..2896
        80   R 0..1000
        80   {number}
        480  S 1448..2896
        480  R ack 2896
        520  S 2896..4344
        520  R ack 4344
    "
        )
    };
    let stall = longest(&script("R 0..0 ack 2896"));
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::AckLoss, Side::Unknown),
        "{stall:#?}"
    );
    assert_eq!(stall.confidence, Confidence::Low);
    let stall = longest(&script("R 1000..1000 ack 2896"));
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::AckLoss, Side::Network),
        "{stall:#?}"
    );
}

#[test]
fn a_display_filter_that_took_the_acknowledgements_away_stops_nobody() {
    // Ten requests of a segment, each with an answer 1.5 s later, and nothing else.
    let mut text = String::new();
    for n in 0..10u32 {
        let (at, sent, got) = (1000 + n * 2000, n * 1448, n * 100);
        let _ = writeln!(text, "{at} S {sent}..{} ack {got}", sent + 1448);
        let _ = writeln!(
            text,
            "{} R {got}..{} ack {}",
            at + 1500,
            got + 100,
            sent + 1448
        );
    }
    let found = connection(&text);
    let by_acks = |stall: &&Stall| !matches!(stall.cause, Cause::ResponseTime);
    assert_eq!(found.stalls.iter().find(by_acks), None);
    let notes = found.notes.join("\n");
    assert!(notes.contains("as through a display filter"), "{notes}");
}

/// Nobody sent what lies between: the capture dropped it.
#[test]
fn a_hole_that_no_repair_fills_is_the_captures_own() {
    let script = |repair: &str| {
        let more: String = (0..12u32)
            .map(|n| {
                let (from, at) = (5792 + n * 1448, 200 + n * 40);
                format!(
                    "{at} S {from}..{}\n{at} R ack {}\n",
                    from + 1448,
                    from + 1448
                )
            })
            .collect();
        let begin = AT_RECEIVER.replace(" ts ", " #");
        format!("{begin}{more}1000 S 24616..26064\n1000 R {repair}\n")
    };
    let found = connection(&script("ack 26064"));
    let sure = |stall: &&Stall| stall.confidence > Confidence::Low;
    assert_eq!(found.stalls.iter().find(sure), None);
    let repaired = "ack 23168 sack 24616..26064\n1040 S 23168..24616\n1040 R ack 26064";
    let found = connection(&script(repaired));
    let tail = found.stalls.iter().find(|stall| stall.cause.is_loss());
    assert!(tail.is_some(), "{found:#?}");
}

/// A client that took three seconds to complete the handshake is not three seconds away.
#[test]
fn a_slow_handshake_hides_no_silence() {
    let mut text = "
        0    S SYN
        20   R SYN
        3020 S ack
        3020 S 0..1448
        3040 R ack 1448
    "
    .to_owned();
    for n in 1..8u32 {
        let (from, at) = (n * 1448, 3020 + n * 40);
        let _ = writeln!(
            text,
            "{at} S {from}..{}\n{} R ack {}",
            from + 1448,
            at + 20,
            from + 1448
        );
    }
    text.push_str("5300 S 11584..13032\n5320 R ack 13032\n");
    let stall = longest(&text);
    assert_eq!(stall.cause, Cause::Application, "{stall:#?}");
    assert_eq!(stall.duration_ns, 1_980_000_000, "{stall:#?}");
}

#[test]
fn data_beyond_the_first_window_shows_that_the_sender_is_near() {
    // The client took 0.9 s for its acknowledgement, and answers within 10 ms afterwards.
    let mut text = "
        0    S SYN
        20   R SYN
        920  S ack
    "
    .to_owned();
    // Each flight is twice as large as the one before, and leaves 10 ms after its acknowledgement.
    for (n, flight) in [10u32, 20, 40, 80].into_iter().enumerate() {
        let (at, first) = (920 + n * 30, (flight - 10) * 1448);
        for segment in 0..flight {
            let from = first + segment * 1448;
            let _ = writeln!(text, "{at} S {from}..{}", from + 1448);
        }
        let _ = writeln!(text, "{} R ack {}", at + 20, first + flight * 1448);
    }
    text.push_str("2230 S 217200..218648\n2250 R ack 218648\n");
    let found = connection(&text);
    let pause = found
        .stalls
        .iter()
        .find(|stall| stall.duration_ns > 1_000_000_000);
    assert_eq!(
        pause.map(|stall| stall.cause),
        Some(Cause::Application),
        "{found:#?}"
    );
}

#[test]
fn a_client_that_thinks_between_large_requests_is_no_slow_application() {
    let large = |at: u32, from: u32| {
        format!(
            "{at} S {from}..{}\n{} R ack {}\n",
            from + 8688,
            at + 20,
            from + 8688
        )
    };
    let asked = format!(
        "{HANDSHAKE}{}60 R 0..300\n80 S ack 300\n{}",
        large(20, 0),
        large(2000, 8688)
    );
    assert_eq!(connection(&asked).stalls, []);
    let upload = format!("{HANDSHAKE}{}{}", large(20, 0), large(2000, 8688));
    assert_eq!(longest(&upload).cause, Cause::Application);
}

#[test]
fn one_garbled_acknowledgement_is_no_gigabyte() {
    let garbled = format!(
        "{HANDSHAKE}{TEN}
        40   S 14480..15928
        50   R ack 900000000
        60   R ack 15928
        60   S 15928..17376
        80   R ack 17376
        500  S 17376..18824
        520  R ack 18824
    "
    );
    let found = connection(&garbled);
    assert_eq!(found.flows[0].unseen_bytes, 0);
    let said = found.stalls.iter().map(|stall| &stall.explanation);
    assert!(
        said.clone().all(|text| !text.contains("000000")),
        "{found:#?}"
    );
    assert_eq!(longest(&garbled).cause, Cause::Application);
}

#[test]
fn data_that_came_late_costs_nothing_without_a_needless_repair() {
    let mut text = format!("{HANDSHAKE}{TEN}");
    for n in 0..12u32 {
        let (at, first) = (40 + n * 26, 14_480 + n * 4 * 1448);
        let (a, b, end) = (first + 1448, first + 2 * 1448, first + 4 * 1448);
        let _ = writeln!(
            text,
            "{at} S {first}..{a}\n{at} S {a}..{b}\n{at} S {b}..{end}"
        );
        let _ = writeln!(
            text,
            "{} R ack {a} sack {b}..{end}\n{} R ack {end}",
            at + 20,
            at + 21
        );
    }
    let found = connection(&text);
    let reordering = found.stalls.iter().find(|s| s.cause == Cause::Reordering);
    assert_eq!(reordering, None);
}

#[test]
fn a_constant_identification_makes_no_copy() {
    let text = |id: &str| {
        let script = format!(
            "{HANDSHAKE}{TEN}
            40  S 14480..15928 {id} 5
            41  S 15928..17376 {id} 6
            290 S 14480..15928 {id} 7
            310 R ack 17376
        "
        );
        let same = |line: &str| match line.split_once(" id ") {
            Some((begin, _)) => format!("{begin} id 5\n"),
            None => format!("{line}\n"),
        };
        match id {
            "same" => script.replace("same", "id").lines().map(same).collect(),
            _ => script,
        }
    };
    for id in ["id", "same"] {
        let stall = longest(&text(id));
        assert_eq!(stall.duration_ns, 269_000_000, "{stall:#?}");
        assert!(
            stall.evidence.len() > 2,
            "{id}: the repeat is evidence: {stall:#?}"
        );
    }
}

/// A connection that begins with data, as far as the capture goes.
#[test]
fn a_connection_lasts_from_its_first_packet_on() {
    let found = connection("100 S 0..1448\n120 R ack 1448\n1100 S 1448..2896\n");
    assert_eq!((found.start_ns, found.duration_ns), (0, 1_000_000_000));
    let found = connection("100 S SYN\n120 R SYN\n1100 S ack\n");
    assert_eq!((found.start_ns, found.duration_ns), (0, 1_000_000_000));
}

/// IP identifications that count the connection's packets tell what the sender sent and the capture
/// lacks.
#[test]
fn identifications_tell_a_silent_path_from_a_sender_that_paused() {
    let script = |last: u32| {
        let mut text = String::new();
        let mut ids = [92, 394];
        for line in AT_RECEIVER.lines().filter(|line| !line.is_empty()) {
            let id = &mut ids[usize::from(line.contains(" R "))];
            *id += 1;
            let _ = writeln!(text, "{line} id {id}");
        }
        for n in 0..40u32 {
            let (from, at) = (5792 + n * 1448, 200 + n * 40);
            let (ms, end) = (1000 + at, from + 1448);
            let _ = writeln!(text, "{ms} S {from}..{end} ts {at} 9160 id {}", 100 + n);
            let _ = writeln!(
                text,
                "{ms} R ack {end} ts {} {at} id {}",
                9000 + at,
                400 + n
            );
        }
        let _ = writeln!(
            text,
            "4900 S 63712..65160 ts 3900 10760 id {last}\n4900 R ack 65160"
        );
        longest(&text)
    };
    let silent = script(100 + 40 + 24);
    assert_eq!(
        (silent.cause, silent.side),
        (Cause::SilentPath, Side::Network),
        "{silent:#?}"
    );
    let paused = script(100 + 40);
    assert_eq!(paused.cause, Cause::Application, "{paused:#?}");
}

/// Each side sends by its own clock; the one's message is not the other's answer.
#[test]
fn heartbeats_are_no_late_answers() {
    let mut text =
        "0 S SYN\n20 R SYN\n20 S ack\n20 S 0..300\n40 R ack 300\n45 R 0..250\n45 S ack 250\n"
            .to_owned();
    for n in 0..6u32 {
        let (own, at) = (300 + n * 90, 30_000 * (n + 1));
        let _ = writeln!(
            text,
            "{at} S {own}..{}\n{} R ack {}",
            own + 90,
            at + 20,
            own + 90
        );
        let (theirs, at) = (250 + n * 80, 30_000 * (n + 1) + 11_000);
        let _ = writeln!(
            text,
            "{at} R {theirs}..{}\n{at} S ack {}",
            theirs + 80,
            theirs + 80
        );
    }
    assert_eq!(connection(&text).stalls, []);
}

/// A port pair that is used again with the same number: what has ended is over.
#[test]
fn a_new_connection_with_the_old_number_is_no_repeated_syn() {
    let once = |at: u32| {
        format!(
            "{at} S SYN\n{} R SYN\n{} S ack\n{} S 0..10\n{} R ack 10\n{} S 10..10 FIN\n{} R ack 11\n",
            at + 20,
            at + 20,
            at + 20,
            at + 40,
            at + 40,
            at + 60
        )
    };
    let text = format!("{}{}", once(0), once(20_000));
    let all = analyse(&segments(&text, Base::default())).connections;
    assert_eq!(all.len(), 2, "{all:#?}");
    assert!(
        all.iter().all(|connection| connection.stalls.is_empty()),
        "{all:#?}"
    );
}

/// A server that says good-bye after a time of rest did not stop.
#[test]
fn the_last_word_before_the_end_is_no_late_data() {
    let end = |last: &str| {
        format!(
            "{HANDSHAKE}20 S 0..300\n40 R ack 300\n41 R 0..4344\n41 S ack 4344\n5000 R {last}\n5000 S ack 4375\n"
        )
    };
    assert_eq!(connection(&end("4344..4375 FIN")).stalls, []);
}

/// One byte of what was sent before asks for nothing but a sign of life.
#[test]
fn a_keep_alive_is_no_request() {
    let text = "
        0      S 99..100
        20     R ack 100
        16000  R 0..600
        16000  S ack 600
    ";
    let by_server = |stall: &&Stall| stall.cause == Cause::ResponseTime;
    assert_eq!(connection(text).stalls.iter().find(by_server), None);
}

/// Both copies of the only segment came late: each is answered.
#[test]
fn two_answers_to_one_repeat_show_that_both_arrived() {
    let stall = |second: &str| {
        longest(&format!(
            "{HANDSHAKE}{TEN}
            400  S 14480..15928
            1500 S 14480..15928
            1830 R ack 15928
            {second}
            1831 S 15928..17376
            1851 R ack 17376
        "
        ))
    };
    assert_eq!(stall("1830 R ack 15928").cause, Cause::DelaySpike);
    assert_ne!(stall("").cause, Cause::DelaySpike);
}
