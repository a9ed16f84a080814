// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs that real QUIC stacks wrote over a path whose truth is known, and what each is: a path that
//! passes nothing once (`-B`) or in the handshake (`-H`), or loses all acknowledgements for 0.8 s (`-K`), an
//! application of the server that pauses (the others); `-s` is the server's log, `-c` the client's.
//! `tests/qlog-stacks/run.sh` makes such logs; those of its kind are cut behind what is judged.

use stall::predictions::{Answers, Ask, most};
use stall::qlog::QlogResults;
use stall::{Cause, Confidence, Side};

fn read(name: &str) -> QlogResults {
    let path = format!("{}/tests/qlogs/{name}.gz", env!("CARGO_MANIFEST_DIR"));
    let mut found = QlogResults::default();
    let file = std::fs::File::open(&path).unwrap();
    found.read(name, file, None).unwrap();
    assert_eq!(found.notes, [""; 0], "{name}");
    found
}

/// Cause, side and length of stalls of at least 150 ms, by connection.
fn long(name: &str) -> Vec<Vec<(Cause, Side, u64)>> {
    let of = |stall: &stall::Stall| (stall.cause, stall.side, stall.duration_ns / 1_000_000);
    let found = read(name);
    let connections = found.connections.iter();
    connections
        .map(|c| c.stalls.iter().map(of).filter(|s| s.2 >= 150).collect())
        .collect()
}

const SILENT: (Cause, Side) = (Cause::SilentPath, Side::Network);
const ACKS: (Cause, Side) = (Cause::AckLoss, Side::Network);
const APPLICATION: (Cause, Side) = (Cause::Application, Side::Sender);
const ANSWER: (Cause, Side) = (Cause::ResponseTime, Side::Sender);

fn expect(name: &str, expected: &[&[((Cause, Side), u64)]]) {
    let expected: Vec<Vec<_>> = expected
        .iter()
        .map(|all| {
            all.iter()
                .map(|&((cause, side), ms)| (cause, side, ms))
                .collect()
        })
        .collect();
    assert_eq!(long(name), expected, "{name}");
}

#[test]
fn a_path_that_passes_nothing_is_one_stall_of_every_stack() {
    // By aioquic, quiche, quic-go and x/net/quic.
    for (name, ms) in [
        ("aio-B-s.qlog", 838),
        ("qc-B-s.sqlog", 981),
        ("qg-B-s.sqlog", 1361),
        ("xn-B-s.sqlog", 909),
        // ngtcp2, whose probes have new data beyond the congestion window, and x/net/quic, of
        // whose flight all came and of whose probes the last.
        ("ng-B-s.sqlog", 1047),
        ("xn-B1-s.sqlog", 1592),
    ] {
        expect(name, &[&[(SILENT, ms)]]);
    }
}

#[test]
fn lost_acknowledgements_are_told_from_late_ones() {
    // Probes have new data: by ngtcp2 and aioquic, whose have a PING.
    expect("ng-K-s.sqlog", &[&[(ACKS, 1185)]]);
    expect("aio-K-s.qlog", &[&[(ACKS, 1258)]]);
    // The client sees the probes, and is not sure that they are none.
    expect("ng-K-c.sqlog", &[&[(APPLICATION, 325), (APPLICATION, 653)]]);
    for stall in &read("ng-K-c.sqlog").connections[0].stalls {
        assert_eq!(stall.confidence, Confidence::Low);
    }
}

#[test]
fn verdicts_carry_their_answers() {
    let asked = |name: &str| read(name).connections[0].stalls[0].asked;
    let answers = |name: &str| {
        let of: Answers = asked(name);
        [Ask::Repeated, Ask::FirstCopyArrived, Ask::ReceiverComplete].map(|ask| of.of(ask))
    };
    let late = [Some(true), Some(true), Some(false)];
    assert_eq!(answers("ng-K-s.sqlog"), late);
    assert_eq!(answers("qg-B-s.sqlog")[0], Some(true));
    for name in [
        "aio-A0-s.qlog",
        "noq-A2-s.qlog",
        "qg-B-s.sqlog",
        "ng-K-s.sqlog",
    ] {
        for stall in &read(name).connections[0].stalls {
            let most = most(stall.cause, stall.asked);
            assert!(stall.confidence <= most, "{name}: {}", stall.explanation);
        }
    }
}

#[test]
fn a_handshake_that_is_sent_again_is_no_progress() {
    let probe = (Cause::TailLossProbe, Side::Network);
    expect("xn-H-c.sqlog", &[&[(probe, 1034)]]);
}

#[test]
fn an_application_that_pauses_is_told_by_both_ends() {
    expect(
        "aio-A0-s.qlog",
        &[&[(ANSWER, 405), (APPLICATION, 460), (APPLICATION, 249)]],
    );
    expect("noq-A2-s.qlog", &[&[(ANSWER, 371), (APPLICATION, 281)]]);
    // The client, over two paths whose packet numbers are their own.
    expect(
        "noq-multipath-c.qlog",
        &[&[(ANSWER, 401), (APPLICATION, 372), (APPLICATION, 300)]],
    );
}

#[test]
fn seconds_are_read_as_such_and_connections_are_told_apart() {
    let one = [(APPLICATION, 224), (APPLICATION, 341), (APPLICATION, 408)];
    expect("quinn-one-s.sqlog", &[&one]);
    let rtt_ns = read("quinn-one-s.sqlog").connections[0].smoothed_rtt_ns;
    assert!((30_000_000..60_000_000).contains(&rtt_ns.unwrap()));
    expect(
        "quinn-two-c.sqlog",
        &[
            &[(APPLICATION, 272), (APPLICATION, 198)],
            &[(APPLICATION, 270), (APPLICATION, 191)],
        ],
    );
    // Frames are not in these logs, so nothing is sure.
    let two = read("quinn-two-c.sqlog");
    let stalls = two.connections.iter().flat_map(|c| &c.stalls);
    assert!(stalls.clone().count() > 0);
    assert!(
        stalls
            .clone()
            .all(|stall| stall.confidence == Confidence::Low)
    );
}

#[test]
fn who_held_an_acknowledgement_is_in_its_frame() {
    for (name, connections) in [
        ("quic_ack_delay.sqlog", 1),
        ("acked_ranges_as_strings.sqlog", 1),
        ("two_group_ids_in_one_trace.sqlog", 2),
    ] {
        let found = read(name);
        assert_eq!(found.connections.len(), connections, "{name}");
        for connection in &found.connections {
            assert_eq!(connection.packets_sent, 5, "{name}");
            assert_eq!(connection.stalls.len(), 5, "{name}");
            for stall in &connection.stalls {
                assert_eq!(
                    (stall.cause, stall.side),
                    (Cause::DelayedAck, Side::Receiver)
                );
            }
        }
    }
}
