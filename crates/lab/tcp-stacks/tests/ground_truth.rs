// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generation is deterministic, and the truth of every connection is whole.

use std::io::{Cursor, Read};

use capture::segments::{Segments, Source};
use tcp_stacks::capture_file::Cut;
use tcp_stacks::ground_truth::{Fate, Interval};
use tcp_stacks::packet::flag;
use tcp_stacks::scenario::{Behaviour, Case};
use tcp_stacks::world::Point;

const SEED: u64 = 20_261_123;
/// One of each behaviour.
const CASES: u64 = Behaviour::ALL.len() as u64;

#[test]
fn the_same_seed_gives_the_same_bytes_and_the_same_truth() {
    for number in 0..CASES {
        let case = Case::draw(SEED, number);
        assert_eq!(case, Case::draw(SEED, number));
        let (one, two) = (case.run(), case.run());
        assert!(one == two, "case {number}");
        for cut in Cut::ALL {
            assert!(
                one.pcap(Point::Middle, cut) == two.pcap(Point::Middle, cut),
                "case {number}"
            );
        }
    }
    let other = Case::draw(SEED + 1, 0).run();
    assert!(other != Case::draw(SEED, 0).run());
}

#[test]
fn intervals_are_disjoint_in_order_and_within_the_capture() {
    for number in 0..CASES {
        let run = Case::draw(SEED, number).run();
        let last = run.seen.iter().flatten().map(|s| s.time_ns).max().unwrap();
        for direction in &run.truth {
            let timeline = &direction.timeline;
            assert_eq!(timeline.first().unwrap().start_ns, 0, "case {number}");
            assert_eq!(timeline.last().unwrap().end_ns, last, "case {number}");
            assert!(
                timeline.iter().all(|i| i.start_ns < i.end_ns),
                "case {number}"
            );
            for pair in timeline.windows(2) {
                assert_eq!(pair[0].end_ns, pair[1].start_ns, "case {number}");
                let same = |i: &Interval| (i.hold, i.limit, i.above, i.missing, i.ack_lost);
                assert_ne!(same(&pair[0]), same(&pair[1]), "case {number}");
            }
        }
    }
}

#[test]
fn what_arrives_is_seen_everywhere_and_what_is_lost_is_not_seen_behind() {
    for number in 0..CASES {
        let run = Case::draw(SEED, number).run();
        let sent: Vec<_> = run.truth.iter().flat_map(|d| &d.sent).collect();
        let arrived = sent
            .iter()
            .filter(|s| matches!(s.fate, Fate::Arrives(_)))
            .count();
        let lost = sent.len() - arrived;
        let seen = |point: Point| run.seen[point as usize].len();
        // An end sees what it sends and what arrives at it.
        assert_eq!(
            seen(Point::Client) + seen(Point::Server),
            2 * arrived + lost,
            "case {number}"
        );
        assert!(
            (arrived..=arrived + lost).contains(&seen(Point::Middle)),
            "case {number}"
        );
        for list in &run.seen {
            assert!(
                list.windows(2).all(|p| p[0].time_ns <= p[1].time_ns),
                "case {number}"
            );
        }
    }
}

/// The file says what the simulator knows, with every header field.
#[test]
fn the_capture_has_what_was_sent() {
    for number in 0..CASES {
        let run = Case::draw(SEED, number).run();
        for cut in Cut::ALL {
            let packets = run.packets(Point::Client, cut);
            let (pcap, _) = run.pcap(Point::Client, cut);
            if packets.is_empty() {
                continue;
            }
            let open = || Ok(Box::new(Cursor::new(pcap.as_slice())) as Box<dyn Read>);
            let mut segments = Segments::open(vec![Source::new("case", open)]).unwrap();
            for seen in &packets {
                let read = segments.next().unwrap();
                let (own, peer) = (seen.packet.from.index(), seen.packet.from.other().index());
                let initial = run.ids.initial;
                assert_eq!(read.seq, initial[own].wrapping_add(seen.packet.seq as u32));
                if seen.packet.has(flag::ACK) {
                    assert_eq!(read.ack, initial[peer].wrapping_add(seen.packet.ack as u32));
                }
                assert_eq!(
                    read.payload_bytes, seen.packet.payload_bytes,
                    "case {number}"
                );
                assert_eq!(read.window, seen.packet.window);
                assert_eq!(read.from.port, run.ids.ports[own]);
                assert_eq!(read.hop_limit, seen.hop_limit);
                if cut != Cut::Snap64 {
                    assert_eq!(
                        read.timestamps.map(|t| t.value),
                        seen.packet.timestamps.map(|t| t.0)
                    );
                    assert_eq!(read.sack.as_slice().len(), seen.packet.sack.len());
                    assert_eq!(read.mss, seen.packet.mss);
                    assert_eq!(read.window_scale, seen.packet.window_scale);
                }
            }
            assert!(segments.next().is_none());
        }
    }
}

#[test]
fn cuts_leave_out_what_they_say() {
    for number in 0..CASES {
        let run = Case::draw(SEED, number).run();
        let all = run.packets(Point::Middle, Cut::Whole).len();
        let sender = run.data_sender();
        let data = run.packets(Point::Middle, Cut::DataOnly);
        let acks = run.packets(Point::Middle, Cut::AcksOnly);
        assert_eq!(data.len() + acks.len(), all);
        assert!(data.iter().all(|s| s.packet.from == sender));
        assert!(acks.iter().all(|s| s.packet.from != sender));
        let late = run.packets(Point::Middle, Cut::NoHandshake);
        assert!(late.iter().all(|s| !s.packet.has(flag::SYN)));
    }
}
