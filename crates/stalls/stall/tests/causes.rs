// SPDX-License-Identifier: MIT OR Apache-2.0
//! One script for each cause, as a capture at the sender has it.

use stall::{Cause, Confidence, Side, Stall};

use crate::script::{Base, HANDSHAKE, TEN, after_ten, analyse, segments};

/// Its longest stop.
fn stall(script: &str) -> Stall {
    let connection = after_ten(script);
    let longest = connection
        .stalls
        .iter()
        .max_by_key(|stall| stall.duration_ns);
    longest.unwrap_or_else(|| panic!("{connection:#?}")).clone()
}

#[test]
fn nothing_to_send() {
    let stall = stall("500 S 14480..15928");
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::Application, Side::Sender)
    );
    assert_eq!(stall.confidence, Confidence::High);
    assert_eq!(stall.start_ns, 40_000_000);
    assert_eq!(stall.duration_ns, 460_000_000);
    // The acknowledgement before the pause, and the data after.
    assert_eq!(stall.evidence, [9, 10]);
}

/// A pause between messages is one of many, but not the one that is far longer.
#[test]
fn a_long_pause_is_not_lost_among_short_ones() {
    let mut text = String::new();
    let mut at = 40;
    for n in 0..20u32 {
        at += if n == 10 { 2000 } else { 100 };
        let (from, to) = (14_480 + n * 1448, 14_480 + (n + 1) * 1448);
        text += &format!("{at} S {from}..{to}\n{} R ack {to}\n", at + 20);
    }
    let stalls = after_ten(&text).stalls;
    let pauses: Vec<_> = stalls.iter().map(|s| (s.count, s.duration_ns)).collect();
    assert_eq!(pauses.len(), 3, "{stalls:#?}");
    assert_eq!(pauses[1], (1, 1_980_000_000));
    assert_eq!((pauses[0].0, pauses[2].0), (10, 9));
    assert!(stalls.iter().all(|stall| stall.cause == Cause::Application));
}

#[test]
fn the_other_application_was_to_go_on() {
    let stall = stall(
        "
        495 R 0..200
        500 S 14480..15928
    ",
    );
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::WaitingForPeer, Side::Receiver)
    );
    assert!(stall.evidence.contains(&10), "{:?}", stall.evidence);
}

#[test]
fn the_window_closed() {
    let stall = stall(
        "
        40  S 14480..15928
        60  R ack 15928 win 0
        260 S probe
        280 R ack 15928 win 0
        900 R ack 15928 win 20000
        900 S 15928..17376
    ",
    );
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::ReceiverWindowClosed, Side::Receiver)
    );
    assert_eq!(stall.confidence, Confidence::High);
    assert_eq!(stall.duration_ns, 840_000_000);
}

#[test]
fn a_probe_reported_the_open_window() {
    let stall = stall(
        "
        40  S 14480..15928
        60  R ack 15928 win 0
        260 S probe
        280 R ack 15928 win 20000
        280 S 15928..17376
    ",
    );
    // Whether the receiver told of it is not to be seen from here.
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::ZeroWindowProbe, Side::Unknown)
    );
}

/// Where an acknowledgement leaves at once: at the receiver, 20 ms from the sender
/// and back. Timestamps tick each millisecond.
fn at_the_receiver(script: &str) -> Stall {
    const BEGIN: &str = "
        0   S SYN
        0   R SYN
        20  S ack
        20  S 0..14480
        20  R ack 14480
    ";
    let mut segments = segments(&format!("{BEGIN}{script}"), Base::default());
    for segment in &mut segments {
        let value = (segment.time_ns / 1_000_000) as u32;
        segment.timestamps = Some(capture::segment::Timestamps {
            value,
            echo: Some(value),
        });
    }
    let all = analyse(&segments).connections;
    let stalls = all.iter().flat_map(|connection| &connection.stalls);
    let longest = stalls.max_by_key(|stall| stall.duration_ns);
    longest.unwrap_or_else(|| panic!("{all:#?}")).clone()
}

#[test]
fn what_says_that_the_window_is_open_was_lost() {
    let stall = at_the_receiver(
        "
        40  S 14480..15928
        40  R ack 15928 win 0
        300 R ack 15928 win 20000
        480 S probe
        480 R ack 15928 win 20000
        500 S 15928..17376
        500 R ack 17376
    ",
    );
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::ZeroWindowProbe, Side::Network)
    );
}

#[test]
fn a_window_with_room_for_less_than_a_segment_is_closed() {
    let stall = stall(
        "
        40  S 14480..15928
        60  R ack 15928 win 7    # 896 bytes
        300 S 15928..16824
        320 R ack 16824 win 20000
    ",
    );
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::ReceiverWindowClosed, Side::Receiver)
    );
}

/// Both of the tail, and the probe that would have told of it, were lost before the
/// capture: the timer was set anew by the probe, 40 ms after the last data.
#[test]
fn a_timer_that_a_lost_probe_set_anew_is_not_a_pause() {
    let stall = at_the_receiver(
        "
        330 S 14480..15916
        330 R ack 15916
        350 S 15916..17352
        350 R ack 17352
    ",
    );
    assert_eq!(stall.cause, Cause::RtoTail, "{stall:#?}");
    assert_eq!(stall.confidence, Confidence::Low);
}

/// After timeouts of which nothing came here, a sender goes on with a single
/// segment, stamped when it is sent: as a program that paused may.
#[test]
fn one_segment_after_a_silence_tells_little_at_the_receiver() {
    let alone = at_the_receiver(
        "
        1900 S 14480..15916
        1900 R ack 15916
        1920 S 15916..18788
        1920 R ack 18788
    ",
    );
    assert_eq!(alone.confidence, Confidence::Low, "{alone:#?}");
    let burst = at_the_receiver(
        "
        1900 S 14480..15916
        1900 R ack 15916
        1901 S 15916..18788
        1901 R ack 18788
    ",
    );
    assert_eq!(
        (burst.cause, burst.side),
        (Cause::Application, Side::Sender)
    );
    assert_eq!(burst.confidence, Confidence::Medium);
}

#[test]
fn the_tail_was_lost() {
    let stall = stall(
        "
        40  S 14480..15928
        40  S 15928..17376
        260 S 14480..15928
        280 R ack 15928
        280 S 15928..17376
        300 R ack 17376
    ",
    );
    assert_eq!((stall.cause, stall.side), (Cause::RtoTail, Side::Network));
    assert_eq!(stall.duration_ns, 240_000_000);
    assert!(stall.evidence.contains(&12), "{:?}", stall.evidence);
}

#[test]
fn a_probe_repaired_the_tail() {
    let connection = after_ten(
        "
        40  S 14480..15928
        40  S 15928..17376
        82  S 15928..17376
        102 R ack 17376 sack 15928..17376
    ",
    );
    assert_eq!(connection.flows[0].retransmissions.probe, 1);
    assert_eq!(connection.flows[0].retransmissions.timeout, 0);
}

/// What was not sent yet is the probe then, and no data is sent twice before it.
#[test]
fn new_data_probed_the_tail() {
    let stall = stall(
        "
        40  S 14480..15928
        40  S 15928..17376
        100 S 17376..18192
        120 R ack 14480 sack 17376..18192
        120 S 14480..15928
        120 S 15928..17376
        140 R ack 15928 sack 17376..18192
        140 R ack 18192
    ",
    );
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::TailLossProbe, Side::Network),
        "{stall:#?}"
    );
    assert_eq!(stall.duration_ns, 80_000_000);
}

#[test]
fn too_few_were_behind_the_loss() {
    let stall = stall(
        "
        40  S 14480..15928
        40  S 15928..17376
        40  S 17376..18824
        60  R ack 14480 sack 15928..17376
        60  R ack 14480 sack 15928..18824
        282 S 14480..15928
        302 R ack 18824
    ",
    );
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::RtoFewDupacks, Side::Network)
    );
}

/// Three needless repairs, and more that a sender who has learnt to wait does not make:
/// what was passed over arrives by itself.
#[test]
fn what_was_passed_over_arrived_unaided() {
    let round = |at: u64, first: u32, repaired: bool| {
        let end = first + 4 * 1448;
        let (a, b) = (first + 1448, first + 2 * 1448);
        let mut text = format!("{at} S {first}..{a}\n{at} S {a}..{b}\n{at} S {b}..{end}\n");
        text += &format!("{} R ack {a} sack {b}..{end}\n", at + 20);
        if repaired {
            text += &format!("{} S {a}..{b}\n", at + 20);
        }
        text + &format!("{} R ack {end}\n", at + 25)
    };
    let rounds = (0..12u32).map(|n| {
        let at = 40 + u64::from(n) * 26;
        round(at, 14_480 + n * 4 * 1448, n < 3)
    });
    let found = after_ten(&rounds.collect::<String>());
    let reordering = found.stalls.iter().find(|s| s.cause == Cause::Reordering);
    assert!(reordering.is_some(), "{found:#?}");
}

#[test]
fn a_retransmission_was_lost() {
    let script = "
        40  S 14480..15928
        40  S 15928..17376
        40  S 17376..18824
        40  S 18824..20272
        60  R ack 14480 sack 15928..17376
        60  R ack 14480 sack 15928..18824
        60  R ack 14480 sack 15928..20272
        60  S 14480..15928
        282 S 14480..15928
        302 R ack 20272
    ";
    let stall = stall(script);
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::RtoLostRetransmission, Side::Network)
    );
    let counts = after_ten(script).flows[0].retransmissions;
    assert_eq!(
        (counts.fast, counts.timeout, counts.of_lost_retransmission),
        (1, 1, 1)
    );
}

#[test]
fn a_sender_that_could_have_known_is_to_blame_with_care() {
    let stall = stall(
        "
        40  S 14480..15928
        40  S 15928..17376
        40  S 17376..18824
        40  S 18824..20272
        60  R ack 14480 sack 15928..17376
        60  R ack 14480 sack 15928..18824
        60  R ack 14480 sack 15928..20272
        60  S 14480..15928
        70  S 20272..21720
        90  R ack 14480 sack 15928..21720
        320 S 14480..15928
        340 R ack 21720
    ",
    );
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::RtoLostRetransmission, Side::Sender)
    );
    assert_eq!(stall.confidence, Confidence::Medium);
}

const SILENCE: &str = "
    40   S 14480..28960
    260  S 14480..15928
    700  S 14480..15928
    1580 S 14480..15928
    3340 S 14480..15928
";

/// Who is gone, the host or the path, is not to be seen if nothing comes back.
#[test]
fn nothing_ever_came_back() {
    let stall = stall(SILENCE);
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::SilentPath, Side::Unknown)
    );
    assert_eq!(stall.confidence, Confidence::Medium);
    assert!(stall.explanation.contains("4 times more"), "{stall:#?}");
}

/// What came back lacks all that was sent before the last copy.
#[test]
fn the_path_fell_silent() {
    let stall = stall(&format!("{SILENCE}3360 R ack 15928"));
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::SilentPath, Side::Network)
    );
    assert_eq!(stall.confidence, Confidence::Medium);
}

#[test]
fn an_acknowledgement_was_held_back() {
    let stall = stall(
        "
        40  S 14480..15928
        100 R ack 15928
        100 S 15928..17376
        160 R ack 17376
        160 S 17376..18824
        180 R ack 18824
    ",
    );
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::DelayedAck, Side::Receiver)
    );
    assert_eq!(stall.count, 2);
}

/// Of two packets of one moment the capture may have the later first.
#[test]
fn data_that_an_acknowledgement_let_go_may_be_captured_before_it() {
    let stall = stall(
        "
        40  S 14480..15928
        110 S 15928..17376
        110 R ack 15928
        110 S 17376..18824
        130 R ack 18824
    ",
    );
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::DelayedAck, Side::Receiver)
    );
}

#[test]
fn what_was_repaired_had_arrived() {
    let stall = stall(
        "
        40  S 14480..15928
        40  S 15928..17376
        40  S 17376..18824
        260 S 14480..15928
        280 R ack 18824 sack 14480..15928
        280 S 18824..20272
    ",
    );
    assert_eq!((stall.cause, stall.side), (Cause::AckLoss, Side::Network));
}

#[test]
fn nobody_answered() {
    let text = "
        0    S SYN
        1000 S SYN
        3000 S SYN
    ";
    let all = analyse(&segments(text, Base::default())).connections;
    let stall = &all[0].stalls[0];
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::ConnectionSetup, Side::Unknown)
    );
    assert_eq!(stall.evidence, [1, 2, 3]);
    assert!(all[0].verdict.starts_with("Never carried data"));
}

#[test]
fn a_capture_that_lost_packets_is_believed_less() {
    // 14480..20272 was acknowledged and is not there.
    let connection = after_ten(
        "
        60  R ack 20272
        500 S 20272..21720
    ",
    );
    assert_eq!(connection.flows[0].unseen_bytes, 5792);
    let stall = &connection.stalls[0];
    assert!(stall.confidence < Confidence::High, "{stall:?}");
    assert!(
        connection
            .notes
            .iter()
            .any(|note| note.contains("never captured"))
    );
}

#[test]
fn without_a_syn_the_window_is_judged_only_where_it_is_closed() {
    let script = format!("{TEN} 500 S 14480..15928");
    let all = analyse(&segments(&script, Base::default())).connections;
    assert!(all[0].flows[0].window_bytes.is_none());
    assert!(
        all[0]
            .notes
            .iter()
            .any(|note| note.contains("window scale"))
    );
    assert_eq!(all[0].flows[0].bytes, 15_928);
}

#[test]
fn data_of_the_server_is_judged_as_well() {
    let text = "
        0   S SYN
        20  R SYN
        20  S ack
        20  S 0..100
        40  R 0..1448
        40  S ack 1448
        600 R 1448..2896
        600 S ack 2896
    ";
    let all = analyse(&segments(text, Base::default())).connections;
    let stall = &all[0].stalls[0];
    assert_eq!(stall.direction, stall::Direction::ToClient);
    assert_eq!(stall.cause, Cause::Application);
}

#[test]
fn json_has_what_is_promised() {
    let text = format!("{HANDSHAKE}{TEN}500 S 14480..15928");
    let analysis = analyse(&segments(&text, Base::default()));
    let json = serde_json::to_value(&analysis).unwrap();
    let stall = &json["connections"][0]["stalls"][0];
    assert!(json["connections"][0]["verdict"].is_string());
    assert_eq!(stall["start_s"], 0.04);
    assert_eq!(stall["duration_s"], 0.46);
    assert_eq!(stall["cause"], "application");
    assert_eq!(stall["confidence"], "high");
    assert_eq!(stall["evidence"], serde_json::json!([9, 10]));
}
