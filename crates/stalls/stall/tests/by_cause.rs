// SPDX-License-Identifier: MIT OR Apache-2.0
//! Totals over connections.

use stall::{
    Cause, CauseTotal, Confidence, Connection, Direction, Side, Stall, StallKind, by_cause,
};

use crate::script::{Base, HANDSHAKE, TEN, analyse, segments};

const MS: u64 = 1_000_000;

fn stall(cause: Cause, side: Side, duration_ns: u64) -> Stall {
    Stall {
        direction: Direction::ToServer,
        start_ns: 0,
        duration_ns,
        kind: StallKind::Silence,
        bytes_cost: None,
        cause,
        root: None,
        side,
        confidence: Confidence::Medium,
        evidence: Vec::new(),
        count: 1,
        explanation: String::new(),
        advice: String::new(),
        asked: Default::default(),
        number: None,
    }
}

/// A connection that has these stalls and no others.
fn connection(stalls: Vec<Stall>) -> Connection {
    let whole = segments(&format!("{HANDSHAKE}{TEN}"), Base::default());
    let mut connection = analyse(&whole).connections.pop().unwrap();
    assert!(connection.stalls.is_empty());
    connection.stalls = stalls;
    connection
}

fn total(cause: Cause, side: Side, stalls: u64, connections: u64, time_lost_ns: u64) -> CauseTotal {
    CauseTotal {
        cause,
        side,
        stalls,
        connections,
        time_lost_ns,
    }
}

#[test]
fn a_connection_counts_once_for_each_cause_that_it_has() {
    let tail = |ms| stall(Cause::RtoTail, Side::Network, ms * MS);
    let pause = |ms| stall(Cause::Application, Side::Sender, ms * MS);
    // The causes alternate: a connection is the same one when its cause comes again.
    let connections = [
        connection(vec![tail(200), pause(50), tail(300)]),
        connection(vec![]),
        connection(vec![pause(70), tail(400), pause(30)]),
        connection(vec![pause(1)]),
    ];
    assert_eq!(
        by_cause(&connections),
        [
            total(Cause::RtoTail, Side::Network, 3, 2, 900 * MS),
            total(Cause::Application, Side::Sender, 4, 3, 151 * MS),
        ]
    );
}

#[test]
fn a_cause_on_two_sides_has_two_totals() {
    let lost = |side, ms| stall(Cause::RtoLostRetransmission, side, ms * MS);
    let connections = [
        connection(vec![lost(Side::Sender, 200), lost(Side::Network, 300)]),
        connection(vec![lost(Side::Sender, 200)]),
    ];
    assert_eq!(
        by_cause(&connections),
        [
            total(Cause::RtoLostRetransmission, Side::Sender, 2, 2, 400 * MS),
            total(Cause::RtoLostRetransmission, Side::Network, 1, 1, 300 * MS),
        ]
    );
}

#[test]
fn the_most_time_lost_stands_first_whatever_the_order_of_connections() {
    let one = |cause: Cause, ms| connection(vec![stall(cause, cause.side(), ms * MS)]);
    let mut connections = vec![
        one(Cause::Unknown, 30),
        one(Cause::DelayedAck, 10),
        one(Cause::Policer, 20),
        one(Cause::AckLoss, 20),
    ];
    let causes = |connections: &[Connection]| -> Vec<Cause> {
        let totals = by_cause(connections);
        totals.iter().map(|total| total.cause).collect()
    };
    let expected = [
        Cause::Unknown,
        Cause::Policer,
        Cause::AckLoss,
        Cause::DelayedAck,
    ];
    assert_eq!(causes(&connections), expected);
    connections.reverse();
    assert_eq!(causes(&connections), expected);
}

/// Many alike in a row are one stall, as they are listed.
#[test]
fn stalls_that_are_counted_as_one_are_one() {
    let mut many = stall(Cause::DelayedAck, Side::Receiver, 40 * MS);
    many.take_in(&Stall {
        start_ns: 60 * MS,
        ..many.clone()
    });
    assert_eq!((many.count, many.duration_ns), (2, 100 * MS));
    assert_eq!(
        by_cause(&[connection(vec![many])]),
        [total(Cause::DelayedAck, Side::Receiver, 1, 1, 100 * MS)]
    );
}

#[test]
fn without_stalls_there_is_no_total() {
    assert_eq!(by_cause(&[]), []);
    assert_eq!(by_cause(&[connection(vec![])]), []);
}

/// Sums that no capture has are too long, not short by a wrap.
#[test]
fn times_do_not_wrap() {
    let ages = || stall(Cause::Unknown, Side::Unknown, u64::MAX);
    let totals = by_cause(&[connection(vec![ages(), ages()])]);
    assert_eq!(totals[0].time_lost_ns, u64::MAX);
}
