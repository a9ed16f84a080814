// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for any segments at all.

use capture::segment::{Endpoint, Flags, HostDirection, Segment, Timestamps};
use proptest::prelude::*;
use stall::Options;

use crate::script::{Base, HANDSHAKE, TEN, analyse, analyse_with, segments};

/// Anything, near enough together to be taken for one connection often.
fn any_segment() -> impl Strategy<Value = Segment> {
    let number = prop_oneof![0u32..60_000, u32::MAX - 60_000..u32::MAX, any::<u32>()];
    let numbers = (number.clone(), number.clone());
    let blocks = prop::collection::vec((number.clone(), number), 0..5);
    let flags = prop_oneof![
        8 => Just(Flags::ACK),
        1 => Just(Flags::SYN),
        1 => Just(Flags::SYN | Flags::ACK),
        1 => Just(Flags::FIN | Flags::ACK),
        1 => 0u16..512,
    ];
    let sizes = prop_oneof![Just(0u32), Just(1448), 0u32..70_000, any::<u32>()];
    let timestamps = prop::option::of((any::<u32>(), any::<u32>()));
    let time = prop_oneof![0u64..50_000_000, 0u64..5_000_000_000, any::<u64>()];
    let rest = (
        any::<bool>(),
        any::<u16>(),
        prop::option::of(0u8..20),
        0u16..4,
    );
    (numbers, blocks, flags, sizes, timestamps, time, rest).prop_map(
        |((seq, ack), blocks, flags, payload_bytes, timestamps, time_ns, rest)| {
            let (forth, window, window_scale, ip_id) = rest;
            let ends = [1, 2].map(|last| Endpoint {
                address: [10, 0, 0, last].into(),
                port: 7,
            });
            let [from, to] = if forth { ends } else { [ends[1], ends[0]] };
            Segment {
                number: 0,
                time_ns,
                from,
                to,
                encapsulation: 0,
                seq,
                ack,
                flags: Flags(flags),
                window,
                payload_bytes,
                mss: Some(window),
                window_scale,
                sack_permitted: true,
                mptcp: None,
                timestamps: timestamps.map(|(value, echo)| Timestamps {
                    value,
                    echo: Some(echo),
                }),
                sack: blocks.into_iter().collect(),
                options_cut: forth,
                ecn: 3,
                ip_id,
                hop_limit: 64,
                host_direction: HostDirection::Unknown,
            }
        },
    )
}

/// A transfer with losses by chance: what a script can say, at random.
fn any_transfer() -> impl Strategy<Value = String> {
    let step = (0u32..40, 0u8..8, 1u32..120);
    prop::collection::vec(step, 1..60).prop_map(|steps| {
        let (mut now, mut sent, mut acked) = (50u32, 14_480u32, 14_480u32);
        let mut text = format!("{HANDSHAKE}{TEN}");
        for (segments, what, wait) in steps {
            let size = segments * 1448;
            let line = match what {
                0..3 => {
                    sent += size.max(1448);
                    format!("{now} S {}..{sent}\n", sent - size.max(1448))
                }
                3 => format!("{now} S {acked}..{}\n", acked + 1448),
                4 | 5 => {
                    acked = (acked + size).min(sent);
                    format!("{now} R ack {acked}\n")
                }
                6 => {
                    let start = (acked + 1448).min(sent);
                    let end = (start + size).min(sent);
                    format!("{now} R ack {acked} sack {start}..{end}\n")
                }
                _ => format!("{now} R ack {acked} win {}\n", segments / 20),
            };
            text += &line;
            now += if what == 7 { wait * 5 } else { wait };
        }
        text
    })
}

/// All that an analysis says, but for where its time begins.
fn said(segments: &[Segment]) -> serde_json::Value {
    let mut said = serde_json::to_value(analyse(segments)).unwrap();
    said["start_ns"] = 0.into();
    said
}

proptest! {
    #![proptest_config(testkit::cases(300))]

    #[test]
    fn any_segments_are_taken(mut all in prop::collection::vec(any_segment(), 0..200)) {
        for (segment, number) in all.iter_mut().zip(1u64..) {
            segment.number = number;
        }
        let options = Options { outstanding_most: 20, stalls_most: 3, ..Options::default() };
        let analysis = analyse_with(&all, options);
        for connection in &analysis.connections {
            for stall in &connection.stalls {
                prop_assert!(stall.evidence.windows(2).all(|pair| pair[0] < pair[1]));
                prop_assert!(stall.evidence.iter().all(|&n| n >= 1 && n <= all.len() as u64));
                prop_assert!(!stall.explanation.is_empty() && !stall.advice.is_empty());
            }
        }
        prop_assert_eq!(said(&all), said(&all));
    }

    #[test]
    fn numbers_and_times_may_begin_anywhere(
        text in any_transfer(),
        sender_isn in any::<u32>(),
        receiver_isn in any::<u32>(),
        start_ns in 0u64..1 << 60,
    ) {
        let plain = said(&segments(&text, Base::default()));
        let moved = Base { sender_isn, receiver_isn, start_ns };
        prop_assert_eq!(plain, said(&segments(&text, moved)));
    }

    #[test]
    fn a_history_changes_nothing(text in any_transfer(), most in 16usize..200) {
        let all = segments(&text, Base::default());
        let options = Options { history_of: Some(0), history_most: most, ..Options::default() };
        let with = analyse_with(&all, options);
        let history = with.connections[0].history.as_ref().unwrap();
        prop_assert!(history.events.len() <= most + 1);
        prop_assert!(history.events.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns));
        let plain = serde_json::to_value(analyse(&all)).unwrap();
        prop_assert_eq!(serde_json::to_value(&with).unwrap(), plain);
    }

    /// Whose data it is does not depend on who began.
    #[test]
    fn both_directions_are_judged_alike(text in any_transfer()) {
        let one = analyse(&segments(&text, Base::default()));
        let turned: Vec<Segment> = segments(&text, Base::default())
            .into_iter()
            .map(|segment| Segment { from: segment.to, to: segment.from, ..segment })
            .collect();
        let other = analyse(&turned);
        let causes = |analysis: &stall::Analysis| -> Vec<_> {
            let stalls = analysis.connections[0].stalls.iter();
            stalls.map(|stall| (stall.start_ns, stall.duration_ns, stall.cause)).collect()
        };
        prop_assert_eq!(causes(&one), causes(&other));
    }
}
