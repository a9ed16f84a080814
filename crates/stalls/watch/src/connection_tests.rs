// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readings of a connection, one after the other, and the stalls that follow from them.

use super::*;
use crate::records::Limits;

const MSS: u32 = 1000;

/// Makes the reading at `at_ms`: an acknowledgement of one segment, with ten under way and a
/// round trip of 20 ms.
pub(crate) fn ack(at_ms: u64) -> Reading {
    let una = u32::try_from(at_ms).unwrap_or(0) * 100;
    Reading {
        time_ns: at_ms * MS,
        cookie: 1,
        lost: 0,
        moment: Moment::Ack,
        peer_data_ns: 0,
        una,
        nxt: una + 10 * MSS,
        high_seq: una,
        ack: una + MSS,
        segment: (0, 0),
        window_bytes: 100_000,
        cwnd: 10,
        ssthresh: 100,
        packets_out: 10,
        sacked_out: 0,
        lost_out: 0,
        retrans_out: 0,
        reordering: 3,
        sack: (0, 0),
        srtt_ns: 20 * MS,
        rto_ns: 220 * MS,
        mss_bytes: MSS,
        delivered: una / MSS,
        dsacks: 0,
        limits: Limits {
            busy_ns: at_ms * MS,
            window_ns: 0,
            buffer_ns: 0,
        },
        ca_state: CaState::Open,
        tcp_state: TcpState::Connected,
        backoff: 0,
        window_probes: 0,
        tail_probe: false,
    }
}

/// Makes a later reading of the same connection, without anything new.
pub(crate) fn later(before: &Reading, at_ms: u64, moment: Moment) -> Reading {
    let mut reading = *before;
    reading.time_ns = at_ms * MS;
    reading.limits.busy_ns = reading.time_ns;
    reading.moment = moment;
    if before.advances() {
        reading.una = before.ack;
        reading.delivered += 1;
    }
    reading.ack = reading.una;
    reading
}

/// Makes a connection with an acknowledgement each 10 ms, up to 1 s.
fn flowing() -> (Connection, Reading) {
    let mut connection = Connection::new(&ack(0), None, 0);
    for n in 1..=100 {
        assert_eq!(connection.reading(&ack(n * 10)), []);
    }
    (connection, ack(1000))
}

fn causes(stalls: &[Stall]) -> Vec<(Cause, u64, u64)> {
    stalls
        .iter()
        .map(|stall| (stall.cause, stall.start_ns / MS, stall.duration_ns / MS))
        .collect()
}

/// Lets the connection go on as usual after a pause.
fn goes_on(connection: &mut Connection, from: &Reading, at_ms: u64) -> Vec<Stall> {
    let mut found = Vec::new();
    let mut reading = *from;
    for n in 0..10 {
        reading = later(&reading, at_ms + n * 10, Moment::Ack);
        reading.ack = reading.una + MSS;
        reading.nxt += MSS;
        reading.ca_state = CaState::Open;
        found.extend(connection.reading(&reading));
    }
    found
}

#[test]
fn a_steady_flow_has_no_stall() {
    let (mut connection, last) = flowing();
    assert_eq!(connection.rate_bps(1000 * MS), 800_000);
    assert_eq!(connection.acked_bytes(), 101 * u64::from(MSS));
    assert_eq!(connection.status(1001 * MS), Status::Flowing);
    assert_eq!(goes_on(&mut connection, &last, 1010), []);
    assert_eq!(connection.finish(1110 * MS), []);
}

#[test]
fn syn_and_fin_are_no_bytes() {
    let mut syn = ack(0);
    (syn.moment, syn.tcp_state) = (Moment::State, TcpState::SynSent);
    (syn.ack, syn.nxt) = (syn.una, syn.una + 1);
    let mut connection = Connection::new(&syn, None, 0);
    let mut answered = later(&syn, 20, Moment::State);
    answered.tcp_state = TcpState::Connected;
    (answered.una, answered.ack) = (1, 1);
    connection.reading(&answered);
    assert_eq!(connection.acked_bytes(), 0);
    let mut data = later(&answered, 40, Moment::Ack);
    (data.ack, data.nxt) = (1 + MSS, 1 + MSS);
    connection.reading(&data);
    assert_eq!(connection.acked_bytes(), u64::from(MSS));
    // All was acknowledged before the application closed: nothing is taken off.
    let mut closing = later(&data, 50, Moment::State);
    closing.tcp_state = TcpState::Finishing;
    connection.reading(&closing);
    assert_eq!(connection.acked_bytes(), u64::from(MSS));
    let mut fin = later(&closing, 70, Moment::Ack);
    (fin.ack, fin.nxt) = (2 + MSS, 2 + MSS);
    connection.reading(&fin);
    assert_eq!(connection.acked_bytes(), u64::from(MSS));
    connection.reading(&later(&fin, 80, Moment::End));
    assert_eq!(connection.acked_bytes(), u64::from(MSS));
}

#[test]
fn the_timer_repairs_a_lost_tail() {
    let (mut connection, last) = flowing();
    let mut timeout = later(&last, 1240, Moment::CaState);
    timeout.ca_state = CaState::Loss;
    assert_eq!(connection.reading(&timeout), []);
    let mut resent = later(&timeout, 1240, Moment::Retransmit);
    resent.segment = (resent.una, resent.una + MSS);
    assert_eq!(connection.reading(&resent), []);
    let Status::Stalled { for_ns, cause } = connection.status(1250 * MS) else {
        panic!("{:?}", connection.status(1250 * MS));
    };
    assert_eq!((for_ns, cause), (250 * MS, Cause::RtoTail));
    let mut answer = later(&resent, 1260, Moment::Ack);
    answer.ack = answer.una + 3 * MSS;
    assert_eq!(
        connection.reading(&answer),
        [],
        "not before what follows is known"
    );
    let found = goes_on(&mut connection, &answer, 1270);
    assert_eq!(causes(&found), [(Cause::RtoTail, 1000, 260)]);
    let stall = &found[0];
    assert_eq!(stall.bytes_cost, Some(26_000), "100 bytes a millisecond");
    assert_eq!(stall.evidence, [101, 102, 103, 104]);
    assert_eq!(connection.retransmissions, 1);
    assert_eq!(connection.stalls, found);
}

#[test]
fn a_lost_retransmission_is_named() {
    let (mut connection, last) = flowing();
    let mut fast = later(&last, 1010, Moment::Retransmit);
    fast.ca_state = CaState::Recovery;
    fast.segment = (fast.una, fast.una + MSS);
    fast.sacked_out = 9;
    connection.reading(&fast);
    let mut timeout = later(&fast, 1250, Moment::CaState);
    timeout.ca_state = CaState::Loss;
    connection.reading(&timeout);
    let mut answer = later(&timeout, 1270, Moment::Ack);
    answer.ack = answer.nxt;
    connection.reading(&answer);
    let found = goes_on(&mut connection, &answer, 1290);
    assert_eq!(causes(&found), [(Cause::RtoLostRetransmission, 1000, 270)]);
}

#[test]
fn a_sack_ends_a_pause_without_an_advance() {
    let (mut connection, last) = flowing();
    let mut timeout = later(&last, 1240, Moment::CaState);
    timeout.ca_state = CaState::Loss;
    connection.reading(&timeout);
    let mut again = later(&timeout, 1700, Moment::CaState);
    connection.reading(&again);
    again = later(&again, 1720, Moment::Ack);
    connection.reading(&again);
    let mut reported = later(&again, 1725, Moment::Ack);
    reported.delivered += 1;
    reported.sacked_out = 1;
    reported.ack = reported.una + MSS;
    connection.reading(&reported);
    let found = goes_on(&mut connection, &reported, 1760);
    assert_eq!(causes(&found), [(Cause::SilentPath, 1000, 720)]);
}

#[test]
fn a_closed_window_is_named_while_it_is_closed() {
    let (mut connection, last) = flowing();
    let mut closing = later(&last, 1010, Moment::Ack);
    closing.ack = closing.nxt;
    connection.reading(&closing);
    let mut probed = later(&closing, 1300, Moment::Ack);
    probed.packets_out = 0;
    probed.window_bytes = 0;
    probed.limits.window_ns = 280 * MS;
    connection.reading(&probed);
    let Status::Stalled { cause, .. } = connection.status(1400 * MS) else {
        panic!("{:?}", connection.status(1400 * MS));
    };
    assert_eq!(cause, Cause::ReceiverWindowClosed);
    let unfinished = connection.clone().finish(1500 * MS);
    assert_eq!(
        causes(&unfinished),
        [(Cause::ReceiverWindowClosed, 1010, 490)]
    );
    let mut opened = later(&probed, 1900, Moment::Ack);
    opened.limits.window_ns = 870 * MS;
    connection.reading(&opened);
    let mut sent = later(&opened, 1920, Moment::Ack);
    sent.window_bytes = 100_000;
    sent.nxt += MSS;
    sent.ack = sent.nxt;
    sent.packets_out = 1;
    connection.reading(&sent);
    let found = goes_on(&mut connection, &sent, 1950);
    assert_eq!(causes(&found), [(Cause::ReceiverWindowClosed, 1010, 910)]);
}

#[test]
fn a_pause_of_the_application_and_one_for_the_peer() {
    for (peer_ms, cause) in [(0, Cause::Application), (1690, Cause::WaitingForPeer)] {
        let (mut connection, last) = flowing();
        let mut all = later(&last, 1010, Moment::Ack);
        all.ack = all.nxt;
        connection.reading(&all);
        assert_eq!(connection.status(1500 * MS), Status::Idle);
        // A window update during the pause changes nothing.
        let mut update = later(&all, 1300, Moment::Ack);
        update.packets_out = 0;
        update.limits.busy_ns = 1010 * MS;
        connection.reading(&update);
        // The segment was sent at 1700 ms and acknowledged at 1720 ms.
        let mut next = later(&update, 1720, Moment::Ack);
        next.peer_data_ns = peer_ms * MS;
        next.nxt += MSS;
        next.ack = next.nxt;
        next.packets_out = 1;
        next.limits.busy_ns = 1030 * MS;
        let found = connection.reading(&next);
        assert_eq!(causes(&found), [(cause, 1010, 690)]);
    }
}

#[test]
fn pauses_between_messages_are_one_stall() {
    let (mut connection, last) = flowing();
    let mut reading = last;
    reading.ack = reading.nxt;
    let mut reported = 0;
    for n in 1..=5u64 {
        reading = later(&reading, 1000 + n * 100, Moment::Ack);
        reading.nxt += MSS;
        reading.ack = reading.nxt;
        reading.packets_out = 1;
        reading.limits.busy_ns = (1000 + n * 20) * MS;
        reported += connection.reading(&reading).len();
    }
    assert_eq!(reported, 1, "{:?}", connection.stalls);
    assert_eq!(connection.stalls.len(), 1);
    assert_eq!(connection.stalls[0].count, 5);
}

/// The user must hear of a long pause, even after short ones.
#[test]
fn a_long_pause_after_short_ones_is_reported() {
    let (mut connection, last) = flowing();
    let mut reading = last;
    reading.ack = reading.nxt;
    let mut reported = Vec::new();
    let mut at_ms = 1000;
    for (n, pause_ms) in [100, 110, 100, 900, 100].into_iter().enumerate() {
        at_ms += pause_ms;
        reading = later(&reading, at_ms, Moment::Ack);
        reading.nxt += MSS;
        reading.ack = reading.nxt;
        reading.packets_out = 1;
        reading.limits.busy_ns = (1020 + n as u64 * 20) * MS;
        reported.extend(connection.reading(&reading));
    }
    let reported: Vec<_> = reported
        .iter()
        .map(|stall| stall.duration_ns / MS)
        .collect();
    assert_eq!(reported, [80, 880], "{:?}", connection.stalls);
    assert_eq!(connection.stalls.len(), 1);
    assert_eq!(connection.stalls[0].count, 5);
}

#[test]
fn a_syn_answered_late_or_never_is_named() {
    for (answered, end) in [
        (true, "before it was answered"),
        (false, "nothing ever answered"),
    ] {
        let mut syn = ack(1000);
        syn.moment = Moment::Retransmit;
        syn.tcp_state = TcpState::SynSent;
        syn.rto_ns = 1000 * MS;
        let mut connection = Connection::new(&syn, None, 0);
        assert_eq!(connection.status(1500 * MS), Status::Connecting);
        let mut state = later(&syn, 3000, Moment::State);
        state.tcp_state = if answered {
            TcpState::Connected
        } else {
            TcpState::Closed
        };
        let found = connection.reading(&state);
        assert_eq!(causes(&found), [(Cause::ConnectionSetup, 0, 3000)]);
        assert!(
            found[0].explanation.contains(end),
            "{}",
            found[0].explanation
        );
        assert!(connection.is_client());
    }
}

#[test]
fn the_end_of_a_connection_ends_its_stall() {
    let (mut connection, last) = flowing();
    let mut timeout = later(&last, 1240, Moment::CaState);
    timeout.ca_state = CaState::Loss;
    connection.reading(&timeout);
    let end = later(&timeout, 2000, Moment::End);
    let found = connection.reading(&end);
    assert_eq!(causes(&found), [(Cause::SilentPath, 1000, 1000)]);
    assert_eq!(connection.status(3000 * MS), Status::Ended);
    assert_eq!(connection.finish(3000 * MS), []);
}

#[test]
fn a_stall_says_what_this_host_dropped() {
    let dropped = |at_ms: u64, segments| Dropped {
        time_ns: at_ms * MS,
        cookie: 1,
        reason: 6,
        segments,
    };
    let first = ack(0);
    let mut connection = Connection::new(&first, None, 0);
    // The round trip is 20 ms: what was sent before 980 ms is not missing after 1000 ms.
    connection.dropped(&dropped(970, 4));
    let before = later(&first, 1000, Moment::Ack);
    connection.reading(&Reading {
        ack: before.una + MSS,
        ..before
    });
    connection.dropped(&dropped(990, 2));
    connection.dropped(&dropped(1100, 1));
    let stalls = connection.finish(1500 * MS);
    let last = stalls.last().expect("it stalls");
    assert_eq!(last.start_ns, 1000 * MS);
    let text = &last.explanation;
    let says = "; 3 segments were dropped on this host: reason 0x6";
    assert!(text.ends_with(says), "{text}");
    let all = [("reason 0x6".to_owned(), 7)];
    assert_eq!(connection.dropped_segments(), all);
}

#[test]
fn what_is_dropped_at_the_end_of_a_receivers_stall_is_the_next_ones() {
    let mut connection = Connection::new(&ack(0), None, 0);
    connection.dropped(&Dropped {
        time_ns: 990 * MS,
        cookie: 1,
        reason: 6,
        segments: 42,
    });
    let of = |cause| {
        let finding = Finding {
            answers: Answers::default(),
            cause,
            confidence: stall::Confidence::High,
            explanation: String::new(),
        };
        let span = (100 * MS, 1000 * MS);
        let stall = connection.stall(StallKind::Slow, span, None, finding, vec![]);
        stall.explanation
    };
    assert_eq!(of(Cause::ReceiverWindowSmall), "");
    let says = "; 42 segments were dropped on this host: reason 0x6";
    assert_eq!(of(Cause::SilentPath), says);
}

#[test]
fn data_that_this_host_does_not_read_stalls_in_the_other_direction() {
    let first = ack(0);
    let closed = |at_ms: u64, segment| Reading {
        peer_data_ns: 100 * MS,
        segment,
        ..later(&first, at_ms, Moment::Receive)
    };
    let mut connection = Connection::new(&first, None, 0);
    connection.reading(&closed(300, (5000, 0)));
    let status = connection.status(310 * MS);
    let cause = Cause::ReceiverWindowClosed;
    let for_ns = 210 * MS;
    // Its own data stall, too; once those are acknowledged, the window alone counts.
    assert!(matches!(status, Status::Stalled { .. }), "{status:?}");
    let all = Reading {
        ack: first.nxt,
        una: first.nxt,
        ..closed(310, (5000, 0))
    };
    connection.reading(&all);
    assert_eq!(
        connection.status(310 * MS),
        Status::Stalled { for_ns, cause }
    );
    let stalls = connection.reading(&Reading {
        ack: first.nxt,
        una: first.nxt,
        ..closed(900, (0, 5000))
    });
    let stall = stalls.iter().find(|stall| stall.cause == cause);
    let stall = stall.unwrap_or_else(|| panic!("{stalls:#?}"));
    assert_eq!((stall.start_ns, stall.duration_ns), (100 * MS, 800 * MS));
    assert_eq!(
        stall.direction,
        Direction::ToClient,
        "this host is the client"
    );
    // A second time, and it stays so.
    connection.reading(&Reading {
        peer_data_ns: 1000 * MS,
        ..closed(1200, (7000, 0))
    });
    let stalls = connection.finish(2000 * MS);
    assert!(
        stalls.iter().any(|stall| stall.duration_ns == 1000 * MS),
        "{stalls:#?}"
    );
}
