// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two captures of one conversation, with clocks, delays and losses that are known.

use capture::segment::{Endpoint, Flags, HostDirection, Segment, Timestamps};
use proptest::prelude::*;
use stall::two_ends::{Trace, TwoEnds, Unpaired};
use stall::{Analysis, Cause, Confidence, Direction, Side};

use crate::script;
use crate::script::{HANDSHAKE, TEN, analyse};

const MS: u64 = 1_000_000;
const START_NS: u64 = 1_700_000_000_000_000_000;

/// A packet on its journey: who sent it, when, and how long it took; `None`: it was lost.
#[derive(Clone, Copy)]
struct Journey {
    segment: Segment,
    from_near: bool,
    sent_ns: u64,
    delay_ns: Option<u64>,
}

/// The far clock.
#[derive(Clone, Copy, Debug)]
struct Far {
    offset_ns: i64,
    drift_ppm: f64,
}

impl Far {
    fn at(self, true_ns: u64) -> u64 {
        let since = true_ns - START_NS;
        let drift = (since as f64 * self.drift_ppm / 1e6).round() as i64;
        true_ns.saturating_add_signed(self.offset_ns + drift)
    }
}

fn end(is_near: bool) -> Endpoint {
    Endpoint {
        address: [192, 0, 2, if is_near { 1 } else { 2 }].into(),
        port: if is_near { 40_000 } else { 80 },
    }
}

/// Captures at both ends: numbered, in order of their own times.
fn captures(journeys: &[Journey], far: Far) -> [Vec<Segment>; 2] {
    let mut both = [Vec::new(), Vec::new()];
    for journey in journeys {
        let sent = Segment {
            time_ns: journey.sent_ns,
            ..journey.segment
        };
        let arrived = journey.delay_ns.map(|delay| Segment {
            time_ns: journey.sent_ns + delay,
            ..journey.segment
        });
        let [at_sender, at_receiver] = [Some(sent), arrived];
        let [near, far_one] = if journey.from_near {
            [at_sender, at_receiver]
        } else {
            [at_receiver, at_sender]
        };
        both[0].extend(near);
        both[1].extend(far_one.map(|s| Segment {
            time_ns: far.at(s.time_ns),
            ..s
        }));
    }
    for capture in &mut both {
        capture.sort_by_key(|s| s.time_ns);
        for (segment, number) in capture.iter_mut().zip(1..) {
            segment.number = number;
        }
    }
    both
}

fn trace(segments: &[Segment]) -> Trace {
    let mut trace = Trace::default();
    for segment in segments {
        trace.push(segment).unwrap();
    }
    trace
}

fn two_ends(both: &[Vec<Segment>; 2]) -> Result<TwoEnds, Unpaired> {
    TwoEnds::of(&trace(&both[0]), &trace(&both[1]))
}

/// A segment whose numbers in IP and in its timestamps are its own.
fn segment(from_near: bool, seq: u32, ack: u32, payload_bytes: u32, id: u16) -> Segment {
    Segment {
        number: 0,
        time_ns: 0,
        from: end(from_near),
        to: end(!from_near),
        encapsulation: 0,
        seq,
        ack,
        flags: Flags(Flags::ACK),
        window: 1000,
        payload_bytes,
        mss: None,
        window_scale: None,
        sack_permitted: false,
        mptcp: None,
        timestamps: Some(Timestamps {
            value: u32::from(id),
            echo: Some(1),
        }),
        sack: Default::default(),
        options_cut: false,
        ecn: 0,
        ip_id: id,
        hop_limit: 64,
        host_direction: HostDirection::Unknown,
    }
}

/// Random draws of one packet: the time since the last one, who sends, jitter, and loss.
type Draw = (u64, bool, u64, u8);

fn conversation(draws: &[Draw], least_ns: [u64; 2], loss_pct: u8) -> Vec<Journey> {
    let mut now = START_NS;
    let mut sent = [1u32; 2];
    let mut journeys = Vec::new();
    for (i, (step_us, from_near, jitter_us, luck)) in draws.iter().enumerate() {
        now += step_us * 1000;
        let own = usize::from(!from_near);
        let id = i as u16;
        let segment = segment(*from_near, sent[own], sent[1 - own], 1000, id);
        sent[own] += 1000;
        // A third of the packets finds an empty path.
        let jitter_ns = if i % 3 == 0 { 0 } else { jitter_us * 1000 };
        journeys.push(Journey {
            segment,
            from_near: *from_near,
            sent_ns: now,
            delay_ns: (*luck >= loss_pct).then_some(least_ns[own] + jitter_ns),
        });
    }
    journeys
}

proptest! {
    #![proptest_config(testkit::cases(60))]

    /// Offset, drift, losses and delays are found again.
    #[test]
    fn what_was_made_is_found(
        draws in prop::collection::vec((100u64..20_000, any::<bool>(), 0u64..30_000, 0u8..100), 600..1500),
        offset_ms in -5_000_000i64..5_000_000,
        drift_ppm in -100.0..100.0f64,
        least_ms in [1u64..80, 1u64..80],
        loss_pct in 0u8..8,
    ) {
        let far = Far { offset_ns: offset_ms * 1_000_000, drift_ppm };
        let least_ns = least_ms.map(|ms| ms * MS);
        let journeys = conversation(&draws, least_ns, loss_pct);
        let both = captures(&journeys, far);
        let ends = two_ends(&both).unwrap();
        // The middle of the corridor: half of the difference of the journeys cannot be told.
        let [there, back] = least_ns.map(|ns| ns as f64 / 1e9);
        let first_s = (journeys[0].sent_ns - START_NS) as f64 / 1e9;
        let wanted_s = far.offset_ns as f64 / 1e9 + first_s * drift_ppm / 1e6 + (there - back) / 2.0;
        prop_assert!((ends.clocks.offset_s - wanted_s).abs() < 1e-3, "{:?} {wanted_s}", ends.clocks);
        prop_assert!((ends.clocks.drift_ppm - drift_ppm).abs() < 60.0, "{:?}", ends.clocks);
        let half_s = (there + back) / 2.0;
        prop_assert!((ends.clocks.uncertainty_s - half_s).abs() < 1e-3, "{:?}", ends.clocks);
        prop_assert_eq!(ends.paths.len(), 2);
        for path in &ends.paths {
            let own: Vec<_> = journeys.iter().filter(|w| w.from_near == path.from_near).collect();
            prop_assert_eq!(path.from, end(path.from_near));
            prop_assert_eq!(path.sent, own.len() as u64);
            prop_assert_eq!(path.arrived, own.iter().filter(|w| w.delay_ns.is_some()).count() as u64);
            prop_assert_eq!(path.missed, 0);
            // Every packet that is called lost was; of those that were, all are called so but
            // what was sent while it began or ended.
            let capture = &both[usize::from(!path.from_near)];
            let lost: Vec<u64> = own.iter().filter(|w| w.delay_ns.is_none()).map(|w| {
                let at = |s: &&Segment| s.from == w.segment.from && s.ip_id == w.segment.ip_id;
                capture.iter().find(at).unwrap().number
            }).collect();
            prop_assert!(path.lost_packets.iter().all(|number| lost.contains(number)));
            let longest_ns = own.iter().filter_map(|w| w.delay_ns).max().unwrap() + 2 * MS;
            let begin_ns = START_NS + longest_ns + 200 * MS;
            let end_ns = journeys.last().unwrap().sent_ns - 2 * longest_ns - 100 * MS;
            let is_within = |w: &&&Journey| (begin_ns..end_ns).contains(&w.sent_ns);
            let within = own.iter().filter(|w| w.delay_ns.is_none()).filter(is_within).count();
            prop_assert!(path.lost_packets.len() >= within, "{} of {within}", path.lost_packets.len());
            // Delays are right but for the same half.
            let error_s = if path.from_near { (back - there) / 2.0 } else { (there - back) / 2.0 };
            let least_s = if path.from_near { there } else { back };
            let seen_s = path.delays.min_s.unwrap();
            prop_assert!((seen_s - least_s - error_s).abs() < 2e-3, "{seen_s} {least_s} {error_s}");
            let packets: u64 = path.delays.over_time.iter().map(|i| i.packets).sum();
            prop_assert_eq!(packets, path.arrived);
        }
    }

    /// Whatever the two captures hold, they are put together or refused.
    #[test]
    fn captures_of_anything_are_no_fault(
        draws in prop::collection::vec((0u64..3, any::<bool>(), 0u32..5, any::<[u8; 3]>(), any::<bool>()), 0..200),
    ) {
        let mut traces = [Trace::default(), Trace::default()];
        let mut now = START_NS;
        for (step, from_near, bytes, [seq, ack, id], is_far) in draws {
            now += step * MS;
            let mut one = segment(from_near, u32::from(seq) << 24, u32::from(ack) << 24, bytes * 1000, id.into());
            one.time_ns = now;
            traces[usize::from(is_far)].push(&one).unwrap();
        }
        if let Ok(ends) = TwoEnds::of(&traces[0], &traces[1]) {
            for path in &ends.paths {
                prop_assert!(path.arrived + path.lost <= path.sent);
            }
        }
    }
}

/// The sender's device cuts large segments up, and the receiver's joins what came.
#[test]
fn segments_may_be_cut_and_joined() {
    let mut journeys = Vec::new();
    for round in 0..50u32 {
        let sent_ns = START_NS + u64::from(round) * 20 * MS;
        let lost = round == 20;
        journeys.push(Journey {
            segment: segment(true, 1 + round * 3000, 1, 3000, round as u16 * 3),
            from_near: true,
            sent_ns,
            delay_ns: (!lost).then_some(5 * MS),
        });
        journeys.push(Journey {
            segment: segment(false, 1, 1 + round * 3000, 0, round as u16),
            from_near: false,
            sent_ns: sent_ns + 6 * MS,
            delay_ns: Some(5 * MS),
        });
    }
    let far = Far {
        offset_ns: 0,
        drift_ppm: 0.0,
    };
    let [near, far_one] = captures(&journeys, far);
    // Rounds 10 to 29 came in three segments each, rounds 30 and 31 in one.
    let mut cut = Vec::new();
    for one in &far_one {
        let round = one.seq / 3000;
        match one.payload_bytes {
            3000 if (10..30).contains(&round) => cut.extend((0..3).map(|i| Segment {
                seq: one.seq + i * 1000,
                payload_bytes: 1000,
                ip_id: one.ip_id + i as u16,
                ..*one
            })),
            3000 if round == 30 => {}
            3000 if round == 31 => cut.push(Segment {
                seq: one.seq - 3000,
                payload_bytes: 6000,
                timestamps: None,
                ..*one
            }),
            _ => cut.push(*one),
        }
    }
    let ends = two_ends(&[near, cut]).unwrap();
    let path = ends.paths.iter().find(|path| path.from_near).unwrap();
    assert_eq!(
        (path.sent, path.arrived, path.lost),
        (50, 49, 1),
        "{:?}",
        path.lost_packets
    );
    assert_eq!(path.missed, 0);
}

#[test]
fn what_does_not_fit_is_refused() {
    let far = Far {
        offset_ns: 0,
        drift_ppm: 0.0,
    };
    let draws: Vec<Draw> = (0..50).map(|i| (1000, i % 2 == 0, 0, 99)).collect();
    let journeys = conversation(&draws, [MS; 2], 0);
    let both = captures(&journeys, far);
    let other: Vec<_> = both[1]
        .iter()
        .map(|s| Segment { ip_id: 9999, ..*s })
        .collect();
    let found = two_ends(&[both[0].clone(), other]);
    assert_eq!(found.map(|_| ()), Err(Unpaired::NothingCommon));
    let one_way: Vec<_> = both[1]
        .iter()
        .filter(|s| s.from == end(true))
        .copied()
        .collect();
    let found = two_ends(&[both[0].clone(), one_way]);
    assert_eq!(found.map(|_| ()), Err(Unpaired::OneDirection));
    // A clock that is set by a second in between.
    let set = both[1].iter().zip(0u32..).map(|(s, i)| Segment {
        time_ns: if i < 25 {
            s.time_ns
        } else {
            s.time_ns - 1_000_000_000
        },
        ..*s
    });
    let found = two_ends(&[both[0].clone(), set.collect()]);
    assert_eq!(found.map(|_| ()), Err(Unpaired::Clocks));
}

/// Both captures of a script as the near end sees it: the way takes 10 ms, the far clock is 5 s
/// ahead. A line that ends in `lost` never came to the other end, one in `late N` came N ms
/// later than the way takes.
fn scripted(script: &str) -> [Vec<Segment>; 2] {
    let lines = script.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<&str> = lines.collect();
    let fate = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [.., "lost"] => None,
            [.., "late", ms] => Some(ms.parse::<u64>().unwrap()),
            _ => Some(0),
        }
    };
    let plain: Vec<_> = lines
        .iter()
        .map(|line| {
            line.split(" lost")
                .next()
                .unwrap()
                .split(" late")
                .next()
                .unwrap()
        })
        .collect();
    let segments = script::segments(&plain.join("\n"), script::Base::default());
    assert_eq!(segments.len(), lines.len());
    let journeys = segments
        .iter()
        .zip(&lines)
        .zip(0u16..)
        .map(|((segment, line), id)| {
            let from_near = line.split_whitespace().nth(1) == Some("S");
            let late_ns = fate(line).map(|ms| ms * MS);
            // What the far end sent is in the script when it came.
            let sent_ns = if from_near {
                segment.time_ns
            } else {
                segment.time_ns - 10 * MS - late_ns.unwrap_or(0)
            };
            Journey {
                segment: Segment {
                    ip_id: id,
                    ..*segment
                },
                from_near,
                sent_ns,
                delay_ns: late_ns.map(|late_ns| 10 * MS + late_ns),
            }
        });
    let far = Far {
        offset_ns: 5_000_000_000,
        drift_ppm: 0.0,
    };
    captures(&journeys.collect::<Vec<_>>(), far)
}

/// The longest stall of a script, by the near capture alone and by both.
fn proved(script: &str) -> [(Cause, Side, Confidence, String); 2] {
    let both = scripted(&format!("{HANDSHAKE}{TEN}{script}"));
    let longest = |analysis: &Analysis| {
        let stalls = &analysis.connections[0].stalls;
        let of_data = stalls.iter().filter(|s| s.direction == Direction::ToServer);
        let stall = of_data.max_by_key(|s| s.duration_ns).unwrap();
        (
            stall.cause,
            stall.side,
            stall.confidence,
            stall.explanation.clone(),
        )
    };
    let alone = longest(&analyse(&both[0]));
    let [there, back] = [[0, 1], [1, 0]].map(|[near, far]| {
        let mut analysis = analyse(&both[near]);
        let mut ends = two_ends(&[both[near].clone(), both[far].clone()]).unwrap();
        ends.prove(&mut analysis, &analyse(&both[far]));
        assert!(
            !ends.proofs.is_empty(),
            "{:#?}",
            analysis.connections[0].stalls
        );
        longest(&analysis)
    });
    // Whichever capture is given first.
    assert_eq!((there.0, there.1, there.2), (back.0, back.1, back.2));
    let plain = |text: &str| text.replace("in the other capture, at the sender: ", "");
    assert_eq!(plain(&there.3), plain(&back.3));
    [alone, there]
}

/// Twice the same place: what both lack tells nothing of the way.
#[test]
fn two_captures_of_one_place_prove_nothing() {
    let text = "60 S 14480..15928 lost\n310 S 14480..15928\n330 R ack 15928\n";
    let both = scripted(&format!("{HANDSHAKE}{TEN}{text}"));
    for one in &both {
        let alone = analyse(one);
        let mut analysis = alone.clone();
        let mut ends = two_ends(&[one.clone(), one.clone()]).unwrap();
        ends.prove(&mut analysis, &alone);
        assert_eq!(analysis.connections[0].stalls, alone.connections[0].stalls);
        assert_eq!(ends.proofs, []);
        let notes = analysis.notes.join(" ");
        assert!(
            notes.contains("both captures are from one place"),
            "{notes}"
        );
    }
}

#[test]
fn a_lost_tail_is_proved() {
    let [alone, both] = proved(
        "
        60   S 14480..15928 lost
        310  S 14480..15928
        330  R ack 15928
        330  S 15928..17376
        350  R ack 17376
    ",
    );
    assert!(alone.2 < Confidence::High, "{alone:?}");
    assert_eq!(
        (both.0, both.1, both.2),
        (Cause::RtoTail, Side::Network, Confidence::High)
    );
    assert!(
        both.3
            .contains("never reached the receiver, 0 segments behind did"),
        "{}",
        both.3
    );
}

#[test]
fn a_lost_acknowledgement_is_distinguished_from_lost_data() {
    let [alone, both] = proved(
        "
        60   S 14480..15928
        80   R ack 15928 lost
        310  S 14480..15928
        330  R ack 15928
        330  S 15928..17376
        350  R ack 17376
    ",
    );
    assert_ne!(alone.0, Cause::AckLoss, "one end cannot know: {alone:?}");
    assert_eq!(
        (both.0, both.1, both.2),
        (Cause::AckLoss, Side::Network, Confidence::High)
    );
    assert!(both.3.contains("never reached the sender"), "{}", both.3);
}

#[test]
fn a_receiver_that_held_its_acknowledgement_is_distinguished_from_a_slow_path() {
    let script = |line: &str| {
        format!(
            "
            60   S 14480..15928
            {line}
            280  S 15928..17376
            300  R ack 17376
        "
        )
    };
    let [_, held] = proved(&script("280 R ack 15928"));
    assert_eq!(
        (held.0, held.1, held.2),
        (Cause::DelayedAck, Side::Receiver, Confidence::High)
    );
    let [_, slow] = proved(&script("280 R ack 15928 late 200"));
    assert_eq!(
        (slow.0, slow.1, slow.2),
        (Cause::DelaySpike, Side::Network, Confidence::High)
    );
    assert!(slow.3.contains("the answer's way back took"), "{}", slow.3);
}

/// Nothing of it reaches the receiver: its capture alone shows a sender that pauses.
#[test]
fn what_the_receiver_never_saw_is_no_pause_of_the_application() {
    let [_, both] = proved(
        "
        60   S 14480..15928 lost
        310  S 14480..15928 lost
        810  S 14480..15928
        830  R ack 15928
        830  S 15928..17376
        850  R ack 17376
    ",
    );
    assert_eq!(
        (both.0, both.1, both.2),
        (
            Cause::RtoLostRetransmission,
            Side::Network,
            Confidence::High
        )
    );
}

#[test]
fn a_path_that_is_silent_is_distinguished_from_a_host_that_is() {
    let script = |fate: &str| {
        format!(
            "
            60   S 14480..15928{fate}
            310  S 14480..15928{fate}
            810  S 14480..15928{fate}
            1810 S 14480..15928{fate}
            1900 R 0..100
            1910 S RST
        "
        )
    };
    let [_, path] = proved(&script(" lost"));
    assert_eq!(
        (path.1, path.2),
        (Side::Network, Confidence::High),
        "{path:?}"
    );
}
