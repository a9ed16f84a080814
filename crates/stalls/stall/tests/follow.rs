// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stalls judged while packets come: as those of a whole capture, when they are over, and in
//! bounded memory.

use capture::segment::Segment;
use stall::follow::{Because, Follower, Limits, Report};
use stall::{Cause, Options, Stall, StallKind};

use crate::script::{Base, HANDSHAKE, TEN, analyse, segments};

/// Scripts that end with the connection, and a silence in each.
const SILENCES: [&str; 4] = [
    // A tail that was lost.
    "
        60   S 14480..15928
        310  S 14480..15928
        330  R ack 15928
        330  S 15928..30408
        350  R ack 30408
    ",
    // A closed window.
    "
        45   R ack 14480 win 0
        545  R ack 14480
        546  S 14480..28960
        566  R ack 28960
    ",
    // An application that paused within its transfer.
    "
        640  S 14480..28960
        660  R ack 28960
    ",
    // A delayed acknowledgement.
    "
        60   S 14480..15928
        120  R ack 15928
        120  S 15928..30408
        140  R ack 30408
    ",
];

const END: &str = "
    3000 S ack
    3000 S FIN
    3020 R ack FIN
    3020 S ack
";

fn reports(follower: &mut Follower, packets: &[Segment]) -> Vec<(u64, Report)> {
    let mut all = Vec::new();
    for packet in packets {
        follower.segment(packet);
        all.extend(follower.reports().map(|report| (packet.number, report)));
    }
    all
}

fn stalls(reports: &[(u64, Report)]) -> Vec<Stall> {
    let stalls = reports.iter().filter_map(|(_, report)| match report {
        Report::Stall(report) => Some(report.stall.clone()),
        Report::Connection(_) => None,
    });
    stalls.collect()
}

#[test]
fn silences_are_those_of_the_whole_capture() {
    for silence in SILENCES {
        let packets = segments(&format!("{HANDSHAKE}{TEN}{silence}{END}"), Base::default());
        let whole = analyse(&packets);
        let silent = |s: &&Stall| s.kind == StallKind::Silence;
        let wanted: Vec<_> = whole.connections[0]
            .stalls
            .iter()
            .filter(silent)
            .map(|stall| Stall {
                number: None, // a follower does not number them
                ..stall.clone()
            })
            .collect();
        assert!(!wanted.is_empty(), "{silence}");
        let mut follower = Follower::new(Options::default(), Limits::default());
        let mut found = reports(&mut follower, &packets);
        // It was reported before the connection ended, by the first packet of the end.
        let first = found.first().map(|(number, _)| *number);
        assert!(
            first <= Some(packets.len() as u64 - 3),
            "{silence} {first:?}"
        );
        follower.finish();
        found.extend(follower.reports().map(|report| (0, report)));
        let stalls = stalls(&found);
        let silences: Vec<_> = stalls.iter().filter(silent).cloned().collect();
        assert_eq!(silences, wanted, "{silence}");
        let Some((_, Report::Connection(last))) = found.last() else {
            unreachable!("a connection ends what is reported: {found:?}");
        };
        assert_eq!((last.number, last.because), (1, Because::Capture));
        assert_eq!(last.stalls, stalls.len() as u64);
        let lost_ns: u64 = stalls.iter().map(|s| s.duration_ns).sum();
        assert_eq!(last.time_lost_ns, lost_ns);
        assert_eq!(
            last.connection.flows[0].bytes,
            whole.connections[0].flows[0].bytes
        );
    }
}

/// When nothing comes any more, a pause is judged by what is known.
#[test]
fn a_stall_is_reported_when_nothing_follows() {
    let silence = "
        640  S 14480..28960
    ";
    let packets = segments(&format!("{HANDSHAKE}{TEN}{silence}"), Base::default());
    let mut follower = Follower::new(Options::default(), Limits::default());
    assert!(reports(&mut follower, &packets).is_empty());
    follower.settle();
    let settled: Vec<_> = follower.reports().collect();
    assert!(
        matches!(&settled[..], [Report::Stall(one)] if one.stall.cause == Cause::Application),
        "{settled:?}"
    );
    follower.settle();
    assert_eq!(follower.reports().count(), 0, "and once only");
}

fn from_port(packet: &Segment, port: u16, time_ns: u64) -> Segment {
    let mut packet = *packet;
    packet.time_ns = time_ns;
    for end in [&mut packet.from, &mut packet.to] {
        if end.port == 40_000 {
            end.port = port;
        }
    }
    packet
}

#[test]
fn there_is_an_end_to_what_is_kept() {
    let syn = segments(HANDSHAKE, Base::default())[0];
    let limits = Limits {
        connections_most: 1000,
        silent_ns: 60_000_000_000,
    };
    let mut follower = Follower::new(Options::default(), limits);
    let mut ended = Vec::new();
    for i in 0..20_000u64 {
        // Ports and addresses that were not there before.
        let mut packet = from_port(&syn, (i % 60_000) as u16 + 1, syn.time_ns + i * 1_000_000);
        packet.number = i + 1;
        follower.segment(&packet);
        assert!(follower.connections() <= 1000);
        ended.extend(follower.reports().filter_map(|report| match report {
            Report::Connection(report) => Some((report.number, report.because)),
            Report::Stall(_) => None,
        }));
    }
    assert_eq!(follower.opened(), 20_000);
    assert!(ended.len() >= 19_000);
    // The oldest ones went.
    assert!(
        ended
            .iter()
            .map(|(number, _)| *number)
            .eq(1..=ended.len() as u64)
    );
    assert!(ended.iter().all(|(_, because)| *because == Because::Room));
}

#[test]
fn connections_that_are_over_or_silent_are_let_go() {
    let mut all = Vec::new();
    // One that was reset, one that fell silent, and one that goes on for an hour.
    let one = segments(&format!("{HANDSHAKE}{TEN}100 S RST\n"), Base::default());
    let start_ns = one[0].time_ns;
    all.extend(one.iter().copied());
    let other = segments(&format!("{HANDSHAKE}{TEN}"), Base::default());
    all.extend(other.iter().map(|s| from_port(s, 41_000, s.time_ns + 1)));
    for second in 0..3600u64 {
        let ack = other.last().unwrap();
        all.push(from_port(
            ack,
            42_000,
            start_ns + second * 1_000_000_000 + 2,
        ));
    }
    all.sort_by_key(|s| s.time_ns);
    for (segment, number) in all.iter_mut().zip(1..) {
        segment.number = number;
    }
    let mut follower = Follower::new(Options::default(), Limits::default());
    let ended: Vec<_> = reports(&mut follower, &all)
        .into_iter()
        .filter_map(|(number, report)| match report {
            Report::Connection(report) => {
                let at_s = (all[number as usize - 1].time_ns - start_ns) / 1_000_000_000;
                Some((report.because, at_s / 60))
            }
            Report::Stall(_) => None,
        })
        .collect();
    assert_eq!(ended, [(Because::Ended, 0), (Because::Silent, 10)]);
    assert_eq!(follower.connections(), 1);
}

/// A SYN that begins another connection of the same ports ends the one before.
#[test]
fn ports_that_are_used_again() {
    let one = segments(&format!("{HANDSHAKE}{TEN}"), Base::default());
    let base = Base {
        sender_isn: 77,
        start_ns: one[0].time_ns + 2_000_000_000,
        ..Base::default()
    };
    let mut follower = Follower::new(Options::default(), Limits::default());
    reports(&mut follower, &one);
    let found = reports(&mut follower, &segments(HANDSHAKE, base));
    assert!(
        matches!(&found[..], [(_, Report::Connection(ended))] if ended.because == Because::Ended),
        "{found:?}"
    );
    assert_eq!(follower.connections(), 1);
}

/// A capture that lost packets, or whose times contradict themselves, is believed less, whole or
/// followed; one that is believed less than that anyway stays.
#[test]
fn what_a_capture_lost_lowers_the_confidence() {
    use stall::{Analyser, Confidence};
    let packets = segments(
        &format!("{HANDSHAKE}{TEN}{}{END}", SILENCES[1]),
        Base::default(),
    );
    let plain = analyse(&packets).connections[0].stalls[0].confidence;
    assert_eq!(plain, Confidence::High);
    for most in [Confidence::High, Confidence::Medium, Confidence::Low] {
        let mut analyser = Analyser::new(Options::default());
        packets.iter().for_each(|packet| analyser.segment(packet));
        analyser.believe_at_most(most);
        let found = analyser.finish();
        assert_eq!(found.connections[0].stalls[0].confidence, most);
        let mut follower = Follower::new(Options::default(), Limits::default());
        follower.believe_at_most(most);
        let found = reports(&mut follower, &packets);
        assert_eq!(stalls(&found)[0].confidence, most);
    }
}
