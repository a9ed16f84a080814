// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kinds of pauses whose verdict was wrong: a capture of each in `kinds`, and what only looks like it:
//! the same capture with the one thing changed that tells the two apart, or a script.

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use capture::segment::{Flags, SackBlocks, Segment};
use capture::segments::{Segments, Source};
use stall::predictions::{self, State};
use stall::{Cause, Confidence, Connection, Side, Stall};

use crate::script::{AT_RECEIVER, Base, HANDSHAKE, analyse, segments};

const MS: u64 = 1_000_000;

fn captured(name: &str) -> Vec<Segment> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kinds");
    let path = folder.join(format!("{name}.pcap.gz"));
    let open = || Ok(Box::new(File::open(&path)?) as Box<dyn Read>);
    let mut read = Segments::open(vec![Source::new(name, open)]).unwrap();
    std::iter::from_fn(|| read.next()).collect()
}

/// What no answer of the pause refutes is said.
fn judged(segments: &[Segment]) -> Connection {
    let mut all = analyse(segments).connections;
    assert_eq!(all.len(), 1);
    let found = all.pop().unwrap();
    for stall in found.stalls.iter().filter(|stall| !stall.asked.are_none()) {
        let row = predictions::row_of(stall.cause);
        let state = row.map(|row| row.state(stall.asked));
        assert_ne!(state, Some(State::Refuted), "{stall:#?}");
    }
    found
}

fn longest(found: &Connection) -> &Stall {
    let longest = found.stalls.iter().max_by_key(|stall| stall.duration_ns);
    longest.unwrap_or_else(|| panic!("{found:#?}"))
}

fn scripted(text: &str) -> Connection {
    judged(&segments(text, Base::default()))
}

/// Returns the causes of the stalls that took so long, of medium confidence or high.
fn claims(found: &Connection, least_ms: u64) -> Vec<Cause> {
    let sure = |stall: &&Stall| {
        stall.confidence >= Confidence::Medium && stall.duration_ns >= least_ms * MS
    };
    found.stalls.iter().filter(sure).map(|s| s.cause).collect()
}

#[test]
fn copies_are_recognised_in_the_handshake_too() {
    assert_eq!(judged(&captured("syn-copied")).stalls, []);
    // A host whose identification never changes asks again after a second.
    let text =
        "0 S SYN id 5\n1000 S SYN id 5\n1020 R SYN\n1020 S ack\n1020 S 0..100\n1040 R ack 100\n";
    assert_eq!(longest(&scripted(text)).cause, Cause::ConnectionSetup);
}

#[test]
fn a_hole_at_the_beginning_was_not_acknowledged() {
    let found = judged(&captured("early-hole"));
    let stall = longest(&found);
    assert!(
        matches!(stall.cause, Cause::RtoFewDupacks | Cause::RtoTail),
        "{found:#?}"
    );
    assert_eq!((stall.side, stall.duration_ns / MS), (Side::Network, 420));
    assert_eq!(found.flows[1].retransmissions.spurious, 0);
    // Nothing took 20 ms: what counts as a silence has a least length.
    assert_eq!(judged(&captured("early-hole-3ms")).stalls, []);
    // What was under way when the capture began is acknowledged, and no hole of it.
    let text = "
        0   R ack 0
        5   S 5000..6448
        8   R ack 2500
        12  R ack 5000
        25  R ack 6448
        30  S 6448..7896
        50  R ack 7896
    ";
    let found = scripted(text);
    assert_eq!((found.stalls.len(), found.flows[0].unseen_bytes), (0, 0));
}

#[test]
fn a_repeat_that_was_on_its_way_shows_no_lost_acknowledgement() {
    let mut all = captured("repeat-behind-original");
    assert_eq!(claims(&judged(&all), 0), []);
    // The repeat comes a second later: the sender had time to get the acknowledgement.
    let copy = all.iter().position(|s| s.number == 24).unwrap();
    let late = all[copy..].iter_mut();
    late.for_each(|segment| segment.time_ns += 1200 * MS);
    assert!(claims(&judged(&all), 1000).contains(&Cause::AckLoss));
}

#[test]
fn messages_that_keep_their_times_answer_nothing() {
    for name in ["server-polls", "own-clock"] {
        assert_eq!(claims(&judged(&captured(name)), 0), [], "{name}");
    }
    // The client asks each five seconds; the server takes its time.
    let mut text = HANDSHAKE.to_owned();
    for n in 0..8u32 {
        let (at, asked, said) = (5000 * (n + 1), n * 200, n * 90);
        let answered = at + 320 + [0, 70, 20, 50][n as usize % 4];
        let _ = writeln!(text, "{at} S {asked}..{}", asked + 200);
        let _ = writeln!(text, "{} R ack {}", at + 20, asked + 200);
        let _ = writeln!(text, "{answered} R {said}..{}", said + 90);
        let _ = writeln!(text, "{answered} S ack {}", said + 90);
    }
    let late = claims(&scripted(&text), 250);
    assert!(late.len() >= 7, "{late:?}");
    assert!(late.iter().all(|&cause| cause == Cause::ResponseTime));
}

/// What the data behind a pause echoes says whether its sender had the last acknowledgement.
#[test]
fn rounds_clocked_by_acknowledgements_are_no_pauses_of_the_application() {
    let mut all = captured("ack-clocked");
    let found = judged(&all);
    assert_eq!(claims(&found, 0), [], "{found:#?}");
    assert_eq!(longest(&found).side, Side::Network);
    let mut acked = None;
    for segment in &mut all {
        let Some(stamps) = &mut segment.timestamps else {
            continue;
        };
        match segment.from.port {
            80 if stamps.echo > Some(0) => stamps.echo = acked.or(stamps.echo),
            _ => acked = Some(stamps.value),
        }
    }
    let found = judged(&all);
    assert_eq!(longest(&found).cause, Cause::Application, "{found:#?}");
}

/// Reports of duplicates and numbers of packets prove that data had arrived, whatever time the
/// repeat took: the timer was still backed off (RFC 6298, 5.7).
#[test]
fn acknowledgements_were_lost_whatever_the_timer_was() {
    let mut all = captured("backed-off-timer");
    let causes = |all: &[Segment]| {
        let found = judged(all);
        let to_server = found.stalls.iter().take(2);
        to_server.map(|s| (s.cause, s.side)).collect::<Vec<_>>()
    };
    assert_eq!(causes(&all), [(Cause::AckLoss, Side::Network); 2]);
    for segment in &mut all {
        segment.sack = SackBlocks::default();
    }
    assert_eq!(causes(&all)[0].0, Cause::SilentPath);
}

#[test]
fn flags_count_as_the_handshake_agreed() {
    let mut all = captured("accurate-ecn");
    let found = judged(&all);
    assert_eq!(claims(&found, 700), [Cause::PathLoss], "{found:#?}");
    assert!(found.notes.iter().all(|note| !note.contains("congestion")));
    // The client asks for classic marks.
    all[0].flags = Flags(all[0].flags.0 & !Flags::AE);
    assert!(judged(&all).notes.iter().any(|n| n.contains("congestion")));
}

#[test]
fn data_in_a_syn_is_a_request() {
    let found = judged(&captured("fast-open"));
    assert_eq!(found.flows[0].bytes, 300);
    assert!(found.notes.is_empty(), "{found:#?}");
    let stall = longest(&found);
    assert_eq!(
        (stall.cause, stall.duration_ns / MS),
        (Cause::ResponseTime, 800)
    );
    // The server does not take it: the client sends it once more, and that is the request.
    let refused = "
        0    S 0..300 SYN
        20   R SYN
        20   S ack
        21   S 0..300
        41   R ack 300
        341  R 0..1448
        341  S ack 1448
    ";
    let found = scripted(refused);
    assert_eq!(found.flows[0].retransmissions.total(), 0);
    assert_eq!(longest(&found).duration_ns / MS, 300);
}

#[test]
fn a_senders_own_reset_is_no_silent_path() {
    let end = |end: &str| {
        format!("{HANDSHAKE}20 S 0..1448\n40 R ack 1448\n50 S 1448..2896\n310 S 1448..2896\n{end}")
    };
    assert_eq!(scripted(&end("900 S RST\n")).stalls, []);
    let found = scripted(&end("900 S 1448..2896\n2100 S 1448..2896\n2200 R RST\n"));
    assert_eq!(longest(&found).cause, Cause::SilentPath);
}

/// Twenty exchanges, then one segment that is acknowledged 200 ms later than the round trip.
fn held(id: u32, value: u32, next: u32) -> Connection {
    let mut text =
        "0 S SYN ts 0 0 id 1\n20 R SYN ts 9020 0 id 1\n20 S ack ts 20 9020 id 2\n".to_owned();
    for n in 0..20u32 {
        let (at, from) = (30 + n * 30, n * 1448);
        let _ = writeln!(
            text,
            "{at} S {from}..{} ts {at} 9020 id {}",
            from + 1448,
            n + 3
        );
        let (at, value) = (at + 20, 9000 + at + 20);
        let _ = writeln!(
            text,
            "{at} R ack {} ts {value} {} id {}",
            from + 1448,
            at - 20,
            n + 2
        );
    }
    let _ = writeln!(text, "660 S 28960..29460 ts 660 9620 id 23");
    let _ = writeln!(text, "880 R ack 29460 ts {value} 660 id {id}");
    let _ = writeln!(text, "880 S 29460..30908 ts {next} 9880 id 24");
    text.push_str("900 R ack 30908 ts 9900 880\n");
    scripted(&text)
}

#[test]
fn numbers_and_clock_of_the_receiver_say_where_an_acknowledgement_was() {
    let cause = |found: &Connection| longest(found).cause;
    assert_eq!(cause(&held(22, 9880, 880)), Cause::DelayedAck);
    assert_eq!(cause(&held(24, 9880, 880)), Cause::AckLoss);
    assert_eq!(cause(&held(22, 9670, 880)), Cause::DelaySpike);
    // By the sender's own clock it did not wait: the capture stood still.
    let found = held(22, 9880, 665);
    let stall = longest(&found);
    let judged = (stall.cause, stall.confidence);
    assert_eq!(judged, (Cause::DelaySpike, Confidence::Low));
    // Of few exchanges the length of a tick is not sure; by none of the clocks did time pass.
    let few = |value: u32, echo: u32| {
        let mut text = "0 S SYN ts 0 0\n20 R SYN ts 9020 0\n20 S ack ts 20 9020\n".to_owned();
        for n in 0..2u32 {
            let (at, from) = (30 + n * 30, n * 1448);
            let _ = writeln!(text, "{at} S {from}..{} ts {at} 9020", from + 1448);
            let acked = at + 20;
            let _ = writeln!(
                text,
                "{acked} R ack {} ts {} {at}",
                from + 1448,
                9000 + acked
            );
        }
        text.push_str("95 S 2896..4344 ts 95 9080\n97 R ack 4344 ts 9115 95\n");
        text.push_str("98 S 4344..4844 ts 95 9115\n");
        let _ = writeln!(text, "158 R ack 4844 ts {} 95", 9115 + echo);
        let _ = writeln!(text, "158 S 4844..6292 ts {value} {}", 9115 + echo);
        let _ = writeln!(text, "178 R ack 6292 ts {} {value}", 9135 + echo);
        scripted(&text)
    };
    assert_eq!(cause(&few(155, 60)), Cause::DelayedAck);
    assert_ne!(cause(&few(95, 0)), Cause::DelayedAck);
}

/// The acknowledgement and the answers to two repeats were lost between capture and sender; the
/// answers only report duplicates, and nothing was to be sent behind them.
#[test]
fn repeats_that_duplicate_reports_alone_answer_are_seen() {
    let at_receiver = |repeats: &str| format!("{AT_RECEIVER}{repeats}");
    let lost = at_receiver(
        "
            460  S 4344..5792 ts 460 9120
            460  R ack 5792 sack 4344..5792 ts 9460 460
            1060 S 4344..5792 ts 1060 9120
            1060 R ack 5792 sack 4344..5792 ts 10060 1060
        ",
    );
    let found = scripted(&lost);
    let stall = longest(&found);
    assert_eq!((stall.cause, stall.side), (Cause::AckLoss, Side::Network));
    assert_eq!(stall.duration_ns / MS, 900);
    // One repeat that came before the acknowledgement can have reached the sender.
    let early = at_receiver("185 S 4344..5792 ts 185 9120\n185 R ack 5792 sack 4344..5792\n");
    assert_eq!(scripted(&early).stalls, []);
}

/// A proxy, or a host that translates addresses, acknowledges at once what the server behind it
/// answers a round trip later; the SYN went all the way.
fn behind_a_near_host(acked: u32, answered: u32) -> Connection {
    let mut text = "0 S SYN\n200 R SYN\n200 S ack\n".to_owned();
    for n in 0..3u32 {
        let (at, asked, said) = (210 + n * 1500, n * 300, n * 2000);
        let _ = writeln!(text, "{at} S {asked}..{}", asked + 300);
        let _ = writeln!(text, "{} R ack {}", at + acked, asked + 300);
        let _ = writeln!(text, "{} R {said}..{}", at + answered, said + 1448);
        let _ = writeln!(text, "{} R {}..{}", at + answered, said + 1448, said + 2000);
        let _ = writeln!(text, "{} S ack {}", at + answered, said + 2000);
    }
    scripted(&text)
}

#[test]
fn an_answer_that_takes_what_the_handshake_took_is_a_round_trip() {
    for answered in [175, 201, 225] {
        let found = behind_a_near_host(2, answered);
        assert_eq!(found.stalls, [], "{answered}: {found:#?}");
    }
    // Less than people notice beside it.
    assert_eq!(claims(&behind_a_near_host(2, 280), 150), []);
    // The server takes its time, near or far.
    for acked in [2, 199] {
        let found = behind_a_near_host(acked, 650);
        let late = found.stalls.iter().filter(|stall| {
            stall.cause == Cause::ResponseTime && stall.confidence >= Confidence::Medium
        });
        assert_eq!(late.count(), 3, "{acked}: {found:#?}");
    }
}

#[test]
fn what_has_not_arrived_is_not_answered() {
    let together = |answered: u32| {
        let mut text = "0 S SYN\n339 R SYN\n339 S ack\n340 S 0..300\n".to_owned();
        let _ = writeln!(text, "{answered} R ack 300 0..1448");
        let _ = writeln!(text, "{} S ack 1448", answered + 1);
        for n in 0..4u32 {
            let (at, asked) = (answered + 10 + n * 90, 300 + n * 100);
            let _ = writeln!(text, "{at} S {asked}..{}", asked + 100);
            let _ = writeln!(text, "{} R ack {}", at + 78, asked + 100);
        }
        scripted(&text)
    };
    let of_server = |found: &Connection| {
        let is_it = |stall: &&Stall| stall.cause == Cause::ResponseTime;
        found
            .stalls
            .iter()
            .find(is_it)
            .map(|stall| stall.confidence)
    };
    assert_eq!(of_server(&together(592)), None);
    // Longer than the handshake: whether the way or the server took it is not to be seen.
    assert_eq!(of_server(&together(1340)), Some(Confidence::Low));
    // An upload is acknowledged until shortly before the answer, or at once.
    let upload = |step: u32| {
        let mut text = HANDSHAKE.replace("20", "40");
        for n in 0..20u32 {
            let _ = writeln!(text, "{} S {}..{}", 50, n * 1448, (n + 1) * 1448);
        }
        for n in 0..20u32 {
            let _ = writeln!(text, "{} R ack {}", 90 + n * step, (n + 1) * 1448);
        }
        text.push_str("250 R 0..600\n250 S ack 600\n");
        scripted(&text)
    };
    assert_eq!(claims(&upload(6), 0), []);
    assert_eq!(claims(&upload(0), 0), [Cause::ResponseTime]);
}

/// Three messages of the server a minute apart, which nobody asked for (RFC 6455, 5.5.2: a ping
/// keeps a connection alive), and the client's, which come each 20 s.
#[test]
fn three_messages_show_a_clock() {
    let pushes = |third: u32, begin: &str| {
        let mut text = begin.to_owned();
        let mut events: Vec<(u32, bool)> = (1..7).map(|n| (n * 20_300, true)).collect();
        events.extend([(12_150, false), (72_160, false), (third, false)]);
        events.sort_unstable();
        let (mut asked, mut said) = (0, 0);
        for (at, is_clients) in events {
            if is_clients {
                let _ = writeln!(text, "{at} S {asked}..{}", asked + 35);
                asked += 35;
                let _ = writeln!(text, "{} R ack {asked}", at + 20);
            } else {
                let _ = writeln!(text, "{at} R {said}..{}", said + 31);
                said += 31;
                let _ = writeln!(text, "{at} S ack {said}");
            }
        }
        // Without the SYN the port tells who is the server.
        let mut all = segments(&text, Base::default());
        for segment in &mut all {
            for end in [&mut segment.from, &mut segment.to] {
                end.port = if end.port == 5001 { 443 } else { end.port };
            }
        }
        judged(&all)
    };
    for begin in [HANDSHAKE, ""] {
        assert_eq!(pushes(132_060, begin).stalls, [], "{begin}");
        assert_ne!(pushes(124_000, begin).stalls, [], "{begin}");
    }
}

/// What the other side says at once after this side's message answers it, and so does its repeat:
/// what comes seconds later answers neither.
#[test]
fn a_repeated_answer_is_no_request() {
    let text = |repeat: &str| {
        format!(
            "{HANDSHAKE}
            100  R 0..978
            100  S ack 978
            105  S 0..32
            125  R ack 32
            1636 R 978..1321
            1636 S ack 1321
            1638 S 32..64
            {repeat}
            1897 R ack 64
            5015 R 1321..1688
            5015 S ack 1688
            "
        )
    };
    for repeat in ["", "1855 S 32..64"] {
        let found = scripted(&text(repeat));
        let sure = claims(&found, 2000);
        assert!(!sure.contains(&Cause::ResponseTime), "{found:#?}");
    }
}

/// A keep-alive repeats one byte that has been acknowledged (RFC 9293, 3.8.4), and its answer may
/// report that byte (RFC 2883). The capture begins with the first of them.
#[test]
fn a_repeated_keep_alive_shows_no_loss() {
    let repeated = |after: u32, bytes: u32| {
        let answer = after + 230;
        scripted(&format!(
            "0 S 99..{end}\n{after} S 99..{end}\n{answer} R ack {end} sack 99..{end}\n",
            end = 99 + bytes
        ))
    };
    assert_eq!(repeated(15_000, 1).stalls, []);
    // No timer waits so long for a first repeat; these do.
    for (after, bytes) in [(1200, 1), (15_000, 500)] {
        let found = repeated(after, bytes);
        assert_eq!(longest(&found).cause, Cause::AckLoss, "{found:#?}");
    }
}

/// Two subflows of Linux's Multipath TCP over 3 Mbit/s each; the application pauses three times for
/// .7 s, of which what the socket still holds fills the beginning.
#[test]
fn a_pause_of_multipath_tcp_counts_once() {
    let segments = captured("two-subflows");
    let pauses = |segments: &[Segment]| {
        let all = analyse(segments).connections;
        assert_eq!(all.len(), 2);
        let stalls = all.into_iter().flat_map(|one| one.stalls);
        let long = stalls.filter(|stall| stall.duration_ns > 200 * MS);
        let mut long: Vec<_> = long
            .map(|stall| (stall.start_ns / MS, stall.duration_ns / MS, stall.cause))
            .collect();
        long.sort_unstable();
        long
    };
    let found = pauses(&segments);
    assert_eq!(found.len(), 3, "{found:?}");
    for ((start_ms, duration_ms, cause), around_ms) in found.iter().zip([540, 1640, 2730]) {
        assert!(start_ms.abs_diff(around_ms) < 100, "{found:?}");
        assert!((500..700).contains(duration_ms), "{found:?}");
        assert_eq!(*cause, Cause::Application);
    }
    // The same two connections, if nothing says that they are one: each pauses for itself.
    let mut apart = segments;
    apart.iter_mut().for_each(|segment| segment.mptcp = None);
    assert!(pauses(&apart).len() > 3);
}

/// Each path carries packets of 1280 bytes, and what was captured at the receiver came through.
#[test]
fn what_every_path_carries_is_not_lost_for_its_size() {
    let unanswered = |bytes: u32| {
        let end = 200 + bytes;
        scripted(&format!(
            "{HANDSHAKE}20 S 0..200\n40 R ack 200\n40 S 200..{end}\n300 S 200..{end}\n800 S 200..{end}\n1800 S 200..{end}\n"
        ))
    };
    assert_eq!(longest(&unanswered(1448)).cause, Cause::PmtuBlackHole);
    assert_eq!(longest(&unanswered(1056)).cause, Cause::SilentPath);
    let came_here = scripted(
        "
        0    S SYN ts 0 0
        0    R SYN ts 9000 0
        40   S ack ts 40 9000
        40   S 0..200 ts 40 9000
        40   R ack 200 ts 9040 40
        80   S 200..1648 ts 80 9040
        80   R ack 200 ts 9080 40
        340  S 200..1648 ts 340 9040
        340  R ack 200 ts 9340 40
        840  S 200..1648 ts 840 9040
        840  R ack 200 ts 9840 40
        1840 S 200..1648 ts 1840 9040
        1840 R ack 200 ts 10840 40
    ",
    );
    assert!(!claims(&came_here, 0).contains(&Cause::PmtuBlackHole));
}

/// The receiver's acknowledgements are not in the capture: what lies behind the hole has come all
/// the same.
#[test]
fn what_was_captured_behind_a_hole_at_the_receiver_had_arrived() {
    let filled = |at: u32| {
        let text = format!(
            "
            0   S SYN
            0   R SYN
            60  S ack
            60  S 0..200
            60  R ack 200
            120 S 200..3096
            120 R ack 3096
            180 S 5700..6069
            320 S 5700..6069
            {at} S 3096..4272
            {at} R ack 4272 sack 5700..6069
            "
        );
        longest(&scripted(&text)).cause
    };
    let lost_again = [Cause::RtoLostRetransmission, Cause::RtoStorm];
    assert!(lost_again.contains(&filled(4700)), "{:?}", filled(4700));
    assert!(!lost_again.contains(&filled(480)), "{:?}", filled(480));
}

/// A network that delivers each packet twice makes the receiver report each: such a report does not
/// tell that the first copy of a repair had arrived.
#[test]
fn a_report_of_a_packet_that_came_twice_shows_no_needless_repair() {
    let twice = |text: &str, id: u32, is_doubled: bool| {
        let line = format!("{text} id {id}\n");
        line.repeat(if is_doubled { 2 } else { 1 })
    };
    let of = |is_doubled: bool| {
        let mut text = HANDSHAKE.to_owned();
        for n in 0..10u32 {
            let (at, from) = (30 + n * 30, n * 1448);
            let data = format!("{at} S {from}..{}", from + 1448);
            text += &twice(&data, 100 + n, is_doubled);
            let (at, end) = (at + 20, from + 1448);
            let _ = writeln!(text, "{at} R ack {end}");
            if is_doubled {
                let _ = writeln!(text, "{at} R ack {end} sack {from}..{end}");
            }
        }
        // The second of three is lost.
        text += "330 S 14480..15928 id 110\n330 S 17376..18824 id 112\n350 R ack 15928 sack 17376..18824\n";
        text += &twice("1530 S 15928..17376", 113, is_doubled);
        text += "1550 R ack 18824\n1550 R ack 18824 sack 15928..17376\n1560 S 18824..20272 id 114\n1580 R ack 20272\n";
        longest(&scripted(&text)).cause
    };
    let had_arrived = [Cause::DelaySpike, Cause::AckLoss, Cause::DelayedAck];
    assert!(!had_arrived.contains(&of(true)), "{:?}", of(true));
    assert!(had_arrived.contains(&of(false)), "{:?}", of(false));
}

/// A server that answers three times after the same 40 s, asked each time as soon as it answered,
/// has a timer: or a task that always takes as long.
#[test]
fn answers_that_always_take_as_long_may_be_a_timers() {
    let of = |drift: u32| {
        let mut text = HANDSHAKE.to_owned();
        text += "20 S 0..1948\n40 R 0..500\n40 S ack 500\n55 S 1948..3896\n75 R ack 3896\n";
        let (mut at, mut sent) = (40, 3896);
        for n in 1..6u32 {
            at += 40_000 + n * drift;
            let from = n * 500;
            let _ = writeln!(text, "{at} R {from}..{}", from + 500);
            let _ = writeln!(text, "{at} S ack {}", from + 500);
            let asked = at + 15 + n % 2 * 10;
            let _ = writeln!(text, "{asked} S {sent}..{}", sent + 1948);
            sent += 1948;
            let _ = writeln!(text, "{} R ack {sent}", asked + 20);
        }
        let found = scripted(&text);
        let late = |stall: &&Stall| stall.cause == Cause::ResponseTime;
        found.stalls.iter().filter(late).map(|s| s.confidence).max()
    };
    assert_eq!(of(0), Some(Confidence::Low));
    assert!(of(3000) >= Some(Confidence::Medium));
}
