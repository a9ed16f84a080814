// SPDX-License-Identifier: MIT OR Apache-2.0
//! Closed and small windows, and senders that probe them in each way in use.

#![allow(clippy::unwrap_used, clippy::panic)]

mod script;

use script::{Base, HANDSHAKE, TEN, analyse, segments};
use stall::{Cause, Confidence, Connection, Side};

fn connection(script: &str) -> Connection {
    let text = format!("{HANDSHAKE}{TEN}{script}");
    let mut all = analyse(&segments(&text, Base::default())).connections;
    assert_eq!(all.len(), 1, "{text}");
    all.pop().unwrap()
}

/// Solaris and BSD probe with the next byte of the stream, again and again.
#[test]
fn probes_with_a_byte_are_no_retransmissions() {
    let connection = connection(
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
    assert_eq!(connection.stops.len(), 1, "{connection:#?}");
    let stop = &connection.stops[0];
    assert_eq!(
        (stop.cause, stop.side, stop.confidence),
        (
            Cause::ReceiverWindowClosed,
            Side::Receiver,
            Confidence::High
        )
    );
    assert_eq!(stop.duration_ns, 4_940_000_000);
    assert!(stop.explanation.contains("4 times"), "{stop:?}");
}

/// A receiver may take the byte of a probe and stay closed.
#[test]
fn bytes_of_probes_may_be_taken_one_by_one() {
    let connection = connection(
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
    assert_eq!(connection.stops.len(), 1, "{connection:#?}");
    let stop = &connection.stops[0];
    assert_eq!(
        (stop.cause, stop.confidence),
        (Cause::ReceiverWindowClosed, Confidence::High)
    );
    assert_eq!(stop.duration_ns, 2_540_000_000);
}
