// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits before the first data and between requests, and idle time that is no stall.

use stall::{Cause, Confidence, Connection, Direction, Side, Stall, StallKind};

use crate::script::connection;

/// What was waited for: whose data, why, how long and how sure it is.
fn waits(connection: &Connection) -> Vec<(Direction, Cause, u64, Confidence)> {
    let of = |stall: &Stall| {
        let ms = stall.duration_ns / 1_000_000;
        (stall.direction, stall.cause, ms, stall.confidence)
    };
    assert!(
        connection.stalls.iter().all(|s| s.kind == StallKind::Wait),
        "{connection:#?}"
    );
    connection.stalls.iter().map(of).collect()
}

/// As the client's capture has it, 20 ms from the server and back.
#[test]
fn waits_before_the_first_data_are_reported() {
    let found = connection(
        "
        0     S SYN
        880   R SYN
        880   S ack
        2230  S 0..300
        2250  R ack 300
        3230  R 0..1448
        3230  S ack 1448
        3231  R 1448..2896
        3231  S ack 2896
        4300  S 300..600
        4320  R ack 600
        4340  R 2896..4344
        4340  S ack 4344
    ",
    );
    assert_eq!(
        waits(&found),
        [
            (
                Direction::ToClient,
                Cause::ConnectionSetup,
                880,
                Confidence::High
            ),
            (
                Direction::ToServer,
                Cause::Application,
                1350,
                Confidence::Low
            ),
            // Without the way of 20 ms that the acknowledgement shows.
            (
                Direction::ToClient,
                Cause::ResponseTime,
                980,
                Confidence::Medium
            ),
        ],
        "{found:#?}"
    );
    assert!(found.verdict.contains("waited"), "{}", found.verdict);
    // Most data went to the client; what its picture shows is in the sentence as well.
    assert!(
        !found.verdict.contains("data to the server"),
        "{}",
        found.verdict
    );
    assert!(!found.verdict.contains("stopped once"), "{}", found.verdict);
}

/// The sentence tells also of the direction that has less data, if it was held up longer.
#[test]
fn the_sentence_tells_of_the_direction_that_is_drawn() {
    let found = connection(
        "
        0    S SYN
        20   R SYN
        20   S ack
        3000 S 0..300
        3020 R ack 300
        3021 R 0..1448
        3021 S ack 1448
    ",
    );
    let text = "data to the server waited once for 2980 ms";
    assert!(found.verdict.contains(text), "{}", found.verdict);
}

/// The server's own capture: nothing else can have taken the time.
#[test]
fn a_server_that_answers_late_is_sure_at_the_server() {
    let found = connection(
        "
        0    S SYN
        0    R SYN
        20   S ack
        20   S 0..300
        60   R ack 300
        90   R 0..1448
        110  S ack 1448
        2000 S 300..600
        2040 R ack 600
        2700 R 1448..2896
        2720 S ack 2896
    ",
    );
    assert_eq!(
        waits(&found),
        [(
            Direction::ToClient,
            Cause::ResponseTime,
            700,
            Confidence::High
        )],
        "{found:#?}"
    );
    let stall = &found.stalls[0];
    assert_eq!(stall.side, Side::Sender);
    // The request, its acknowledgement's answer.
    assert_eq!(stall.evidence, [8, 10]);
    // Between the first answer and the second request nobody had anything to do.
    assert_eq!(found.flows[0].idle.count, 1, "{found:#?}");
    assert!(found.flows[0].idle.duration_ns > 1_900_000_000);
}

/// Pauses between requests, small messages now and then, and a control connection of
/// which one direction rests: nobody stalls.
#[test]
fn idle_is_not_stalled() {
    let idle = [
        // A download in parts, each asked for by the client when it likes.
        "
        20   S 0..300
        40   R ack 300 0..14480
        40   S ack 14480
        3000 S 300..600
        3020 R ack 600 14480..28960
        3020 S ack 28960
        9000 S 600..900
        9020 R ack 900 28960..43440
        9020 S ack 43440
        ",
        // Messages of a control connection.
        "
        20   S 0..37
        40   R ack 37 0..1
        40   S ack 1
        60   S 37..150
        80   R ack 150
        3084 S 150..151
        3104 R ack 151 1..320
        3104 S ack 320
        ",
        // A log, a line at a time.
        "
        20   S 0..90
        40   R ack 90
        1020 S 90..180
        1040 R ack 180
        2020 S 180..270
        2040 R ack 270
        ",
    ];
    for script in idle {
        let text = format!("0 S SYN\n20 R SYN\n20 S ack\n{script}");
        let found = connection(&text);
        assert!(found.stalls.is_empty(), "{found:#?}");
        let count: u64 = found.flows.iter().map(|flow| flow.idle.count).sum();
        assert!(count > 0, "{found:#?}");
        assert!(found.verdict.contains("never stopped"), "{}", found.verdict);
    }
}

/// The client's next request acknowledges the answer 63 s later: the sender never sent it
/// again, so it had been acknowledged, and the capture lacks that.
#[test]
fn an_idle_client_is_no_loss_of_acknowledgements() {
    let found = connection(
        "
        0     S SYN
        20    R SYN
        20    S ack
        20    S 0..300
        41    R ack 300 0..14480
        42    R 14480..28960
        63000 S ack 28960 300..600
        63020 R ack 600 28960..30408
        63020 S ack 30408
    ",
    );
    assert!(found.stalls.is_empty(), "{found:#?}");
    assert_eq!(found.flows[1].idle.count, 1);
}

/// Without the SYN the size of a segment is not known: a message of 90 bytes is none.
#[test]
fn messages_are_no_transfer_without_the_syn() {
    let found = connection(
        "
        20   S 0..90
        40   R ack 90
        1020 S 90..180
        1040 R ack 180
        2020 S 180..270
        2040 R ack 270
    ",
    );
    assert!(found.stalls.is_empty(), "{found:#?}");
}

/// A keep-alive repeats nothing, whatever it carries.
#[test]
fn keepalives_are_no_retransmissions() {
    let found = connection(
        "
        0     S SYN
        20    R SYN
        20    S ack
        20    S 0..300
        40    R ack 300
        10000 S 299..300
        10020 R ack 300
        20000 S 299..300
        20020 R ack 300
        30000 S 300..600
        30020 R ack 600
    ",
    );
    assert_eq!(found.flows[0].retransmissions.total(), 0);
    assert!(found.stalls.is_empty(), "{found:#?}");
    // Nor where only one direction was captured.
    let found = connection("0 S 0..300\n10000 S 299..300\n20000 S 299..300\n30000 S 300..600");
    assert_eq!(found.flows[0].retransmissions.total(), 0, "{found:#?}");
}
