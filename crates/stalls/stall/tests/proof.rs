// SPDX-License-Identifier: MIT OR Apache-2.0
//! High confidence means that no other explanation fits the packets. Here another does.

use capture::segment::{Segment, Timestamps};
use stall::{Analysis, Cause, Confidence, Connection, Side, Stall};

use crate::script::{Base, HANDSHAKE, TEN, after_ten, analyse, segments};

fn longest(connection: &Connection) -> &Stall {
    let longest = connection.stalls.iter().max_by_key(|s| s.duration_ns);
    longest.unwrap_or_else(|| panic!("{connection:#?}"))
}

/// Timestamps of a clock of 1 ms. Acknowledgements echo what `echo` gives for their number.
fn timestamped(script: &str, echo: impl Fn(u64) -> Option<u32>) -> Analysis {
    let mut all = segments(&format!("{HANDSHAKE}{TEN}{script}"), Base::default());
    let now = |segment: &Segment| {
        ((segment.time_ns - Base::default().start_ns) / 1_000_000) as u32 + 1000
    };
    for segment in &mut all {
        let value = now(segment);
        let echo = echo(segment.number).map_or(value - 20, |ms| ms + 1000);
        segment.timestamps = Some(Timestamps {
            value,
            echo: Some(echo),
        });
    }
    analyse(&all)
}

/// The end of the stream is not acknowledged: all data was.
#[test]
fn an_unanswered_fin_is_no_stall() {
    let found = after_ten(
        "
        60    S 14480..14480 FIN
        280   S 14480..14480 FIN
        720   S 14480..14480 FIN
        1600  S 14480..14480 FIN
        3400  S 14480..14480 FIN
    ",
    );
    assert!(found.stalls.is_empty(), "{found:#?}");
}

/// Whether the host or the path is gone is not to be seen, and the copies are counted.
#[test]
fn a_peer_that_is_gone_is_no_sick_network() {
    for data in ["14480..15928", "14480..18824"] {
        let script = format!(
            "
            40    S {data}
            262   S 14480..15928
            710   S 14480..15928
            1600  S 14480..15928
            3400  S 14480..15928
            7000  S 14480..15928
            9000  S RST
        "
        );
        let found = after_ten(&script);
        let stall = longest(&found);
        assert_eq!(
            (stall.cause, stall.side),
            (Cause::SilentPath, Side::Unknown)
        );
        assert!(stall.confidence < Confidence::High, "{stall:#?}");
        assert!(stall.explanation.contains("5 times more"), "{stall:#?}");
        assert!(!stall.explanation.contains("twice"), "{stall:#?}");
    }
}

/// One segment to a host that never says anything again.
#[test]
fn one_repeat_to_a_mute_peer_is_no_lost_retransmission() {
    let found = after_ten("40 S 14480..14580\n262 S 14480..14580\n710 S 14480..14580");
    let stall = longest(&found);
    assert_eq!(
        (stall.cause, stall.side),
        (Cause::SilentPath, Side::Unknown)
    );
}

/// Only the sender's packets were captured.
#[test]
fn one_direction_proves_nothing() {
    let script = "
        0    S 0..14480
        20   S 14480..28960
        250  S 14480..15928
        700  S 14480..15928
        1600 S 14480..15928
        1700 S 28960..43440
    ";
    let found = &analyse(&segments(script, Base::default())).connections[0];
    for stall in &found.stalls {
        assert_eq!(
            (stall.cause, stall.confidence),
            (Cause::Unknown, Confidence::Low),
            "{stall:#?}"
        );
    }
    assert!(!found.stalls.is_empty());
}

/// Three timeouts of one segment while others arrived: copies or their acknowledgements were
/// lost. Nothing says that each took twice as long as the one before.
#[test]
fn intervals_are_reported_as_they_were() {
    let found = after_ten(
        "
        40   S 14480..28960
        60   R ack 14480 sack 15928..28960
        60   S 14480..15928
        290  S 14480..15928
        750  S 14480..15928
        1660 S 14480..15928
        1680 R ack 28960
    ",
    );
    let stall = longest(&found);
    assert_eq!((stall.cause, stall.side), (Cause::RtoStorm, Side::Network));
    assert!(stall.confidence < Confidence::High, "{stall:#?}");
    assert!(stall.explanation.contains("4 times more"), "{stall:#?}");
    assert!(stall.explanation.contains("910 ms later"), "{stall:#?}");
}

/// A receiver may acknowledge each third segment.
#[test]
fn one_acknowledgement_of_three_segments_is_no_loss_of_others() {
    let mut text = String::from(HANDSHAKE);
    for n in 0..30u32 {
        let (at, from) = (20 + 100 * n, n * 4344);
        text += &format!("{at} S {from}..{}\n", from + 4344);
        text += &format!("{} R ack {}\n", at + 80, from + 4344);
    }
    let found = &analyse(&segments(&text, Base::default())).connections[0];
    for stall in &found.stalls {
        assert_ne!(stall.cause, Cause::AckLoss, "{stall:#?}");
    }
}

/// The sender went on 120 ms after the acknowledgement: it had not waited for it.
#[test]
fn an_acknowledgement_that_nobody_waited_for_is_not_held_back() {
    let found = after_ten(
        "
        40  S 14480..15928
        100 R ack 15928
        220 S 15928..17376
        240 R ack 17376
    ",
    );
    for stall in &found.stalls {
        assert_ne!(stall.cause, Cause::DelayedAck, "{stall:#?}");
    }
}

const REPAIRED_TWICE: &str = "
    40  S 14480..15928
    40  S 15928..17376
    40  S 17376..18824
    40  S 18824..20272
    60  R ack 14480 sack 15928..20272
    61  S 14480..15928
    290 S 14480..15928
    330 R ack 20272
";

/// The answer echoes the first repair: that arrived, and what was late is its
/// acknowledgement (RFC 3522).
#[test]
fn an_echo_of_the_repair_shows_that_it_was_not_lost() {
    let answer = 17;
    let analysis = timestamped(REPAIRED_TWICE, |n| (n == answer).then_some(61));
    let stall = longest(&analysis.connections[0]);
    assert_ne!(stall.cause, Cause::RtoLostRetransmission, "{stall:#?}");
    assert!(stall.confidence < Confidence::High, "{stall:#?}");
    // The answer echoes the second: the first cannot have arrived.
    let analysis = timestamped(REPAIRED_TWICE, |n| (n == answer).then_some(290));
    let stall = longest(&analysis.connections[0]);
    assert_eq!(stall.cause, Cause::RtoLostRetransmission, "{stall:#?}");
    assert_eq!(stall.confidence, Confidence::High, "{stall:#?}");
    // Without timestamps nothing tells the two apart.
    let found = after_ten(REPAIRED_TWICE);
    assert_eq!(longest(&found).confidence, Confidence::Medium);
}

/// The client goes on sooner after the acknowledgement than that can have reached it.
#[test]
fn what_was_sent_before_the_acknowledgement_came_did_not_wait_for_it() {
    let text = "
        0    S SYN
        0    R SYN
        90   S ack
        90   S 0..1448
        90   R ack 1448
        180  S 1448..1528
        380  R ack 1528
        400  S 1528..1551
        400  R ack 1551
    ";
    let found = &analyse(&segments(text, Base::default())).connections[0];
    for stall in &found.stalls {
        assert_ne!(stall.cause, Cause::DelayedAck, "{stall:#?}");
    }
}

/// The first of two segments in one copy: SACK had told of the second.
#[test]
fn a_tail_is_not_lost_unseen_where_sack_reported_it() {
    let found = after_ten(
        "
        40  S 14480..15928
        40  S 15928..17376
        60  R ack 14480 sack 15928..17376
        300 S 14480..17376
        320 R ack 17376
    ",
    );
    let stall = longest(&found);
    assert_eq!(stall.cause, Cause::RtoFewDupacks, "{stall:#?}");
}

/// The peer asked for more meanwhile: the path was not silent.
#[test]
fn a_path_that_brings_requests_is_not_silent() {
    let script = "
        0    S SYN
        0    R SYN
        20   S ack
        20   S 0..14480
        20   R ack 14480
        30   S 14480..28960
        30   R ack 28960
        500  R 0..100
        900  S 14480..15928
        900  R ack 28960
        920  S ack 100 28960..43440
        920  R ack 43440
    ";
    let found = &analyse(&segments(script, Base::default())).connections[0];
    for stall in &found.stalls {
        assert_ne!(stall.cause, Cause::SilentPath, "{stall:#?}");
    }
}

/// A copy that follows its original at once answers nothing: the network or the capture
/// made it, also where the identification tells nothing.
#[test]
fn a_copy_at_once_is_no_retransmission() {
    let found = after_ten(
        "
        40     S 14480..15928
        40.01  S 14480..15928
        40.02  S 15928..17376
        40.03  S 15928..17376
        60     R ack 17376
    ",
    );
    assert_eq!(found.flows[0].retransmissions.total(), 0, "{found:#?}");
    assert!(
        found.notes.iter().any(|n| n.contains("twice")),
        "{found:#?}"
    );
}
