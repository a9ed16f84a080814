// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures that are not as one would like them.

use capture::segment::{HostDirection, Segment, Timestamps};
use stall::{Cause, Confidence, Direction, Options, Place, RetransmissionKind, What};

use crate::script::{Base, HANDSHAKE, TEN, analyse, analyse_with, segments};

fn all_of(text: &str) -> Vec<Segment> {
    segments(&format!("{HANDSHAKE}{TEN}{text}"), Base::default())
}

#[test]
fn a_device_segments_what_the_host_gave_it() {
    // One packet of 64 KB, acknowledged in pieces, a hole reported within it.
    let text = "
        40  S 14480..79640
        60  R ack 18824
        60  R ack 18824 sack 20272..79640
        61  S 18824..20272
        81  R ack 79640
        500 S 79640..81088
    ";
    let connection = &analyse(&all_of(text)).connections[0];
    let flow = &connection.flows[0];
    assert_eq!(flow.bytes, 81_088);
    assert_eq!(flow.retransmissions.fast, 1);
    assert_eq!(flow.retransmissions.total(), 1);
    assert_eq!(flow.unseen_bytes, 0);
    assert_eq!(connection.stalls[0].cause, Cause::Application);
}

#[test]
fn ports_that_are_used_again_are_another_connection() {
    let mut all = all_of("50 S FIN\n70 R ack 14480 FIN");
    let again = Base {
        sender_isn: 77_777,
        receiver_isn: 99,
        start_ns: Base::default().start_ns + 1_000_000_000,
    };
    all.extend(segments(&format!("{HANDSHAKE}{TEN}"), again));
    let analysis = analyse(&all);
    assert_eq!(analysis.connections.len(), 2);
    assert_eq!(analysis.connections[1].start_ns, 1_000_000_000);
    for connection in &analysis.connections {
        assert_eq!(connection.flows[0].bytes, 14_480);
        assert!(connection.stalls.is_empty(), "{connection:#?}");
    }
}

#[test]
fn a_retransmitted_syn_is_the_same_connection() {
    let mut all = segments("0 S SYN", Base::default());
    all.extend(segments(
        &format!("1000 S SYN\n{}", HANDSHAKE.replace("0   S SYN", "")),
        Base {
            start_ns: Base::default().start_ns + 1_000_000,
            ..Base::default()
        },
    ));
    assert_eq!(analyse(&all).connections.len(), 1);
}

#[test]
fn equal_addresses_in_two_tunnels_are_two_connections() {
    let mut all = all_of("");
    let other = all.clone().into_iter().map(|segment| Segment {
        encapsulation: 1,
        ..segment
    });
    all.extend(other.collect::<Vec<_>>());
    assert_eq!(analyse(&all).connections.len(), 2);
}

/// The numbers of VLANs and tunnels may differ by direction.
#[test]
fn the_two_directions_may_have_other_tunnels() {
    let mut all = all_of("40 S 14480..15928\n60 R ack 15928");
    for segment in &mut all {
        segment.encapsulation = if segment.from.port == 5001 { 2 } else { 1 };
    }
    let analysis = analyse(&all);
    assert_eq!(analysis.connections.len(), 1);
    assert_eq!(analysis.connections[0].flows[0].acks, 6);
    // The same packets on both sides of a router are captured twice, each in its own.
    let twice = all.iter().flat_map(|segment| {
        let encapsulation = segment.encapsulation + 2;
        [
            *segment,
            Segment {
                encapsulation,
                ..*segment
            },
        ]
    });
    let twice: Vec<_> = twice.collect();
    let analysis = analyse(&twice);
    assert_eq!(analysis.connections.len(), 2);
    for connection in &analysis.connections {
        assert_eq!(connection.flows[0].acks, 6, "{connection:#?}");
        assert_eq!(connection.flows[0].retransmissions.total(), 0);
    }
}

/// A mark of congestion is a router's own word.
#[test]
fn marks_of_congestion_are_reported() {
    let mut all = all_of("40 S 14480..15928\n60 R ack 15928");
    all[9].ecn = 3;
    all[10].flags.0 |= capture::segment::Flags::ECE;
    let connection = &analyse(&all).connections[0];
    for what in ["marked", "echo marks"] {
        assert!(
            connection.notes.iter().any(|n| n.contains(what)),
            "{connection:#?}"
        );
    }
}

#[test]
fn one_direction_alone_is_taken_in_bounded_memory() {
    let text: String = (0..2000u32)
        .map(|i| {
            format!(
                "{} S {}..{}\n",
                50 + i,
                14_480 + i * 1000,
                15_480 + i * 1000
            )
        })
        .collect();
    let all = segments(&format!("0 S 0..14480\n{text}"), Base::default());
    let options = Options {
        outstanding_most: 100,
        ..Options::default()
    };
    let connection = &analyse_with(&all, options).connections[0];
    assert_eq!(connection.flows[0].bytes, 2_014_480);
    assert!(
        connection
            .notes
            .iter()
            .any(|note| note.contains("one direction only"))
    );
    assert!(
        connection
            .notes
            .iter()
            .any(|note| note.contains("too many under way"))
    );
    assert!(connection.stalls.is_empty(), "{:?}", connection.stalls);
}

#[test]
fn the_longest_of_too_many_stalls_are_kept() {
    // A second of pause, and then four segments 30 ms apart, so that the pauses
    // are not one.
    let text: String = (0..200u32)
        .map(|i| {
            let at = 1000 + (i / 4) * 1100 + (i % 4) * 30 + i;
            let (seq, end) = (14_480 + i * 1448, 15_928 + i * 1448);
            format!("{at} S {seq}..{end}\n{} R ack {end}\n", at + 20)
        })
        .collect();
    let options = Options {
        stalls_most: 5,
        ..Options::default()
    };
    let connection = &analyse_with(&all_of(&text), options).connections[0];
    assert_eq!(connection.stalls.len(), 5);
    let shortest = connection
        .stalls
        .iter()
        .map(|stall| stall.duration_ns)
        .min();
    assert!(shortest > Some(900_000_000), "{shortest:?}");
    assert!(
        connection
            .notes
            .iter()
            .any(|note| note.contains("not listed"))
    );
}

#[test]
fn one_packet_captured_twice_is_no_retransmission() {
    let mut all = all_of("50 S 14480..15928\n50 S 14480..15928\n70 R ack 15928");
    for segment in &mut all {
        segment.ip_id = 7;
    }
    let connection = &analyse(&all).connections[0];
    assert_eq!(connection.flows[0].retransmissions.total(), 0);
    assert!(connection.notes.iter().any(|note| note.contains("twice")));
}

#[test]
fn delays_show_where_it_was_captured() {
    let place = |client_ms: u32, server_ms: u32| {
        let (a, b) = (server_ms, server_ms + client_ms);
        let text = format!("0 S SYN\n{a} R SYN\n{b} S ack\n{b} S 0..1448\n");
        let analysis = analyse(&segments(&text, Base::default()));
        (
            analysis.connections[0].vantage.place,
            analysis.connections[0].vantage.confidence,
        )
    };
    assert_eq!(place(0, 20), (Place::Client, Confidence::High));
    assert_eq!(place(20, 0), (Place::Server, Confidence::High));
    assert_eq!(place(2, 18), (Place::Client, Confidence::Medium));
    assert_eq!(place(10, 10), (Place::Middle, Confidence::High));
    assert_eq!(place(0, 0).0, Place::Unknown);
}

#[test]
fn the_file_says_best_where_it_was_captured() {
    let mut all = all_of("");
    for segment in &mut all {
        segment.host_direction = if segment.from.port == 5001 {
            HostDirection::Out
        } else {
            HostDirection::In
        };
    }
    let vantage = &analyse(&all).connections[0].vantage;
    assert_eq!(
        (vantage.place, vantage.confidence),
        (Place::Server, Confidence::High)
    );
}

#[test]
fn a_history_has_what_a_plot_needs() {
    let text = "
        40  S 14480..15928
        40  S 15928..17376
        60  R ack 14480 sack 15928..17376
        270 S 14480..15928
        290 R ack 17376 sack 14480..15928
    ";
    let options = Options {
        history_of: Some(0),
        ..Options::default()
    };
    let analysis = analyse_with(&all_of(text), options);
    let history = analysis.connections[0].history.as_ref().unwrap();
    assert_eq!(history.one_of, 1);
    let again: Vec<_> = history
        .events
        .iter()
        .filter_map(|event| match event.what {
            What::Retransmission { start, end, kind } => Some((event.packet, start, end, kind)),
            _ => None,
        })
        .collect();
    assert_eq!(again, [(13, 14_480, 15_928, RetransmissionKind::Timeout)]);
    let at = |packet| {
        history
            .events
            .iter()
            .filter(move |event| event.packet == packet)
    };
    // The reported one is not in flight, and the lost one neither.
    assert!(at(12).all(|event| event.flight_bytes == 0));
    let mut own = at(13).filter(|event| event.direction == Direction::ToServer);
    assert!(own.all(|event| event.flight_bytes == 1448));
    let duplicate = at(14).any(|event| {
        matches!(
            event.what,
            What::Sack {
                start: 14_480,
                end: 15_928,
                duplicate: true
            }
        )
    });
    assert!(duplicate);
}

/// The SYN says where the data begins: what comes first and late is no repeat.
#[test]
fn the_first_segments_may_overtake_each_other() {
    let text = format!(
        "{HANDSHAKE}
        21 S 2896..4344
        22 S 0..1448
        22 S 1448..2896
        41 R ack 4344
    "
    );
    let all = analyse(&segments(&text, Base::default())).connections;
    let flow = &all[0].flows[0];
    assert_eq!(flow.bytes, 4344, "{flow:#?}");
    assert_eq!(flow.retransmissions.total(), 0, "{flow:#?}");
}

#[test]
fn a_window_of_unknown_scale_may_be_what_a_sender_waits_for() {
    let script = |window: u32| {
        format!(
            "{TEN}
            40  S 14480..28960
            60  R ack 28960 win {window}
            400 R ack 28960 win 20000
            400 S 28960..43440
            420 R ack 43440
        "
        )
    };
    for (window, most) in [(20_000, Confidence::Medium), (900, Confidence::Low)] {
        let mut segments = segments(&script(window), Base::default());
        for segment in &mut segments {
            let is_sender = segment.to.port == 5001;
            segment.host_direction = if is_sender {
                HostDirection::Out
            } else {
                HostDirection::In
            };
        }
        let all = analyse(&segments).connections;
        let stall = &all[0].stalls[0];
        assert_eq!(stall.cause, Cause::Application, "{stall:#?}");
        assert!(stall.confidence <= most, "window {window}: {stall:#?}");
    }
}

/// At the receiver, 240 ms from the sender and back, from amidst slow start on.
#[test]
fn flights_of_a_round_trip_that_is_not_known_yet_are_no_pauses() {
    let mut text = String::new();
    for (round, segments_in_it) in [1, 2, 4, 8, 16].into_iter().enumerate() {
        let (at, first) = (1000 + 240 * round, 1448 * (segments_in_it - 1));
        for n in 0..segments_in_it {
            let (from, to) = (first + n * 1448, first + (n + 1) * 1448);
            text += &format!("{at} S {from}..{to}\n{at} R ack {to}\n");
        }
    }
    let mut segments = segments(&text, Base::default());
    for segment in &mut segments {
        let now = (segment.time_ns / 1_000_000) as u32;
        let is_sender = segment.to.port == 5001;
        segment.timestamps = Some(Timestamps {
            value: if is_sender { now - 120 } else { now },
            echo: Some(if is_sender { now - 240 } else { now - 120 }),
        });
    }
    let all = analyse(&segments).connections;
    assert!(all[0].flows[0].rtt.smoothed_ns.is_some());
    assert!(all[0].stalls.is_empty(), "{:#?}", all[0].stalls);
}

#[test]
fn a_fin_that_is_answered_late_stalls_no_transfer() {
    let script = format!("{TEN}50 R FIN\n400 S ack 1\n");
    let all = analyse(&segments(&script, Base::default())).connections;
    assert!(all[0].stalls.is_empty(), "{:#?}", all[0].stalls);
}

/// A connection that was over for long keeps its results alone: they are those of a capture that
/// ends sooner, what comes late is counted, and the same ports make another connection.
#[test]
fn what_is_over_for_long_is_done() {
    let script = format!("{HANDSHAKE}{TEN}3000 S FIN\n3020 R ack FIN\n3020 S ack 1\n");
    let short = segments(&script, Base::default());
    let mut other = segments(HANDSHAKE, Base::default());
    for (number, segment) in other.iter_mut().enumerate() {
        segment.number += 1000 + number as u64;
        segment.time_ns += 20_000_000_000;
        for end in [&mut segment.from, &mut segment.to] {
            end.port += 1;
        }
    }
    let [mut fin, mut syn] = [short[short.len() - 3], short[0]];
    (fin.number, fin.time_ns) = (2000, fin.time_ns + 30_000_000_000);
    (syn.number, syn.time_ns, syn.seq) = (2001, syn.time_ns + 40_000_000_000, syn.seq + 77_777);
    let alone = &analyse(&short).connections[0];
    let long = [&short[..], &other, &[fin, syn]].concat();
    let all = analyse(&long).connections;
    assert_eq!(all.len(), 3);
    assert_eq!(
        (all[0].verdict.clone(), &all[0].stalls),
        (alone.verdict.clone(), &alone.stalls)
    );
    assert_eq!(all[0].packets, alone.packets + 1);
    assert!(all[0].duration_ns > alone.duration_ns);
    assert_eq!(all[2].packets, 1);
}
