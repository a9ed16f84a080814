// SPDX-License-Identifier: MIT OR Apache-2.0
//! Closed and small windows, and senders that probe them in each way in use.

use stall::{Cause, Confidence, Side};

use crate::script::{Base, after_ten, analyse, segments};

/// Solaris and BSD probe with the next byte of the stream, again and again.
#[test]
fn probes_with_a_byte_are_no_retransmissions() {
    let connection = after_ten(
        "
        40   S 14480..15928
        60   R ack 15928 win 0
        360  S 15928..15929
        380  R ack 15928 win 0
        780  S 15928..15929
        800  R ack 15928 win 0
        1600 S 15928..15929
        1620 R ack 15928 win 0
        3300 S 15928..15929
        3320 R ack 15928 win 0
        5000 R ack 15928 win 20000
        5000 S 15928..15929
        5020 R ack 15929 win 20000
        5020 S 15929..17376
        5040 R ack 17376
    ",
    );
    let flow = &connection.flows[0];
    assert_eq!(flow.retransmissions.total(), 0, "{connection:#?}");
    assert_eq!(flow.duplicate_acks, 0);
    assert_eq!(flow.unseen_bytes, 0);
    assert_eq!(flow.bytes, 17_376);
    assert_eq!(connection.stalls.len(), 1, "{connection:#?}");
    let stall = &connection.stalls[0];
    assert_eq!(
        (stall.cause, stall.side, stall.confidence),
        (
            Cause::ReceiverWindowClosed,
            Side::Receiver,
            Confidence::High
        )
    );
    assert_eq!(stall.duration_ns, 4_940_000_000);
    assert!(stall.explanation.contains("4 times"), "{stall:?}");
}

/// A receiver may take the byte of a probe and stay closed.
#[test]
fn bytes_of_probes_may_be_taken_one_by_one() {
    let connection = after_ten(
        "
        40   S 14480..15928
        60   R ack 15928 win 0
        360  S 15928..15929
        380  R ack 15929 win 0
        780  S 15929..15930
        800  R ack 15930 win 0
        1600 S 15930..15931
        1620 R ack 15930 win 0
        2600 R ack 15930 win 20000
        2600 S 15930..17376
        2620 R ack 17376
    ",
    );
    assert_eq!(connection.flows[0].retransmissions.total(), 0);
    assert_eq!(connection.stalls.len(), 1, "{connection:#?}");
    let stall = &connection.stalls[0];
    assert_eq!(
        (stall.cause, stall.confidence),
        (Cause::ReceiverWindowClosed, Confidence::High)
    );
    assert_eq!(stall.duration_ns, 2_540_000_000);
}

/// Loopback has segments of 64 KB: a window that is smaller holds up nobody who sends a
/// few bytes.
#[test]
fn room_is_compared_with_what_there_was_to_send() {
    // Room for 12,800 bytes, and one segment of 10,000 after each pause.
    let script = "
        0   S SYN
        1   R SYN
        1   S ack
        1   S 0..70000
        2   R ack 70000 win 100
        500 S 70000..80000
        501 R ack 80000 win 100
        900 S 80000..90000
        901 R ack 90000 win 100
    ";
    let mut all = segments(script, Base::default());
    for segment in &mut all {
        segment.mss = segment.mss.map(|_| 65_483);
    }
    let connection = &analyse(&all).connections[0];
    for stall in &connection.stalls {
        assert_ne!(stall.side, Side::Receiver, "{stall:#?}");
    }
}

/// Less than a segment, but not nothing: who has a full segment waits.
#[test]
fn windows_below_a_segment_hold_up_full_segments() {
    for units in [5, 10] {
        let stalls = after_ten(&format!(
            "
            40   S 14480..15928
            60   R ack 15928 win {units}
            400  R ack 15928 win 500
            400  S 15928..17376
            420  R ack 17376
        "
        ))
        .stalls;
        assert_eq!(stalls.len(), 1, "{stalls:#?}");
        let stall = &stalls[0];
        assert_eq!(
            (stall.cause, stall.side, stall.confidence),
            (
                Cause::ReceiverWindowClosed,
                Side::Receiver,
                Confidence::High
            ),
            "{stall:#?}"
        );
        // The room before the update, not behind it.
        let room = format!("{} bytes", units * 128);
        assert!(stall.explanation.contains(&room), "{stall:#?}");
    }
    // What comes next would have fitted all the time.
    let stalls = after_ten(
        "
        40   S 14480..15928
        60   R ack 15928 win 10
        400  R ack 15928 win 500
        400  S 15928..16128
        420  R ack 16128
        900  S 16128..17576
        920  R ack 17576
    ",
    )
    .stalls;
    for stall in &stalls {
        assert_eq!(stall.cause, Cause::Application, "{stalls:#?}");
    }
}

/// A closed window, and a timeout of what was under way when it closed: the report says
/// what most of the time went to.
#[test]
fn a_closed_window_is_named_also_where_a_timeout_met_it() {
    let stalls = after_ten(
        "
        40   S 14480..15928
        60   R ack 15928 win 22
        60   S 15928..17376
        60   S 17376..18744
        300  S 15928..17376
        320  R ack 18744 win 0
        620  S probe
        640  R ack 18744 win 0
        2600 R ack 18744 win 500
        2600 S 18744..20192
        2620 R ack 20192
    ",
    )
    .stalls;
    let longest = stalls.iter().max_by_key(|s| s.duration_ns).unwrap();
    assert_eq!(longest.cause, Cause::ReceiverWindowClosed, "{stalls:#?}");
}

/// A closed window that nobody probes may hold up nobody.
#[test]
fn a_window_that_stays_closed_at_the_end_is_not_sure_to_matter() {
    let stalls = after_ten(
        "
        40   S 14480..15928
        60   R ack 15928 win 0
        9000 R ack 15928 win 0
    ",
    )
    .stalls;
    for stall in &stalls {
        assert_eq!(stall.confidence, Confidence::Low, "{stalls:#?}");
    }
}
