// SPDX-License-Identifier: MIT OR Apache-2.0
//! Odd packets: acknowledgements of what was never sent, keep-alives, resets, numbers that wrap.

use tcp_stacks::packet::flag;
use tcp_stacks::profile::{Profile, Recovery, S as SECOND};
use tcp_stacks::world::Point;

use crate::case::{Case, Stall, Towards};
use crate::ends::{C, NETWORK, S, SENDER, seed};
use crate::script::{Script, nanos};
use crate::sim::Sim;

const THEME: &str = "odd-packets";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        garbage_ack("sender", Point::Server),
        garbage_ack("middle", Point::Middle),
        garbage_before_a_pause(),
        keep_alives("linux", Profile::linux()),
        keep_alives("windows", Profile::windows()),
        keep_alives("tahoe", Profile::tahoe()),
        dead_peer(),
        reset(),
        reset_while_waiting(),
        half_close(),
        sequence_wrap(false),
        sequence_wrap(true),
        clock_wrap(false),
        clock_wrap(true),
        challenge(),
    ];
    cases.extend([urgent(), marks(), paws(), one_of_two()]);
    cases
}

fn garbage_ack(place: &'static str, point: Point) -> Case {
    let name = format!("odd-garbage-acknowledgement-{place}");
    let mut s = Script::new(seed(&name), 30.0);
    let t = s.warm() + 0.4;
    let t = s.bulk(S, t, &[8]);
    let good = s.next(S);
    s.raw(C, t - 3.0, s.next(C), 0, flag::ACK)
        .acks(good + 900_000_000);
    let t = s.bulk(S, t, &[8, 8]);
    s.close(S, t);
    Case::new(&name, THEME, place, s.capture(point))
        .why("One acknowledgement is 900 MB beyond anything sent. A TCP ignores it (RFC 9293, 3.10.7.4: it acknowledges something not yet sent); the transfer goes on.")
        .readme(&[
            "One packet of the client acknowledges 900 MB more than the server has sent (a broken middlebox).",
            "The next acknowledgements are as they should be. The sender does not react.",
            "Whoever believes it takes all data behind it for retransmissions, or finds nothing in flight any more.",
        ])
}

fn garbage_before_a_pause() -> Case {
    let name = "odd-garbage-acknowledgement-and-a-lost-tail";
    let mut s = Script::new(seed(name), 30.0);
    let t = s.warm() + 0.4;
    let full = s.full();
    let first = s.next(S);
    s.data(S, t, full);
    s.data(S, t + 0.12, full);
    s.data(S, t + 0.24, full).lost();
    s.data(S, t + 0.36, full).lost();
    s.ack(C, t + 15.2);
    s.raw(C, t + 15.4, 201, 0, flag::ACK)
        .acks(first + 500_000_000);
    let repair = t + 240.0;
    s.again(S, repair, first + 2 * full, full);
    s.ack(C, repair + 15.03);
    s.again(S, repair + 30.1, first + 3 * full, full);
    s.ack(C, repair + 45.2);
    let t = s.bulk(S, repair + 61.0, &[6, 6]);
    s.close(S, t);
    let capture = s.capture(Point::Server);
    let span = capture.longest();
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Client, span, &["rto-tail"])
                .sides(NETWORK)
                .not(&["ack-loss", "application", "response-time", "delay-spike", "silent-path", "pmtu-black-hole", "receiver-window-closed", "delayed-ack"])
                .why("Two segments at the tail were lost and repaired by the timeout. The acknowledgement of 500 MB before the pause is garbage, and the sender ignored it."),
        )
        .readme(&[
            "A lost tail; right before the silence an acknowledgement arrives that is 500 MB ahead.",
            "The timeout's copy and the acknowledgements behind it show what was missing.",
            "By the garbage everything was acknowledged, and the silence would be the application's.",
        ])
}

fn keep_alives(kind: &str, profile: Profile) -> Case {
    let name = format!("odd-keep-alives-{kind}");
    let sim = Sim::new(seed(&name), 20)
        .stacks(profile.clone(), profile)
        .both(|p| {
            p.keep_alive = Some((10 * SECOND, 10 * SECOND));
            p.initial_window = p.initial_window.max(4);
        })
        .turns(&[(0, 300, 4, 4_380), (47_000, 300, 4, 4_380)]);
    Case::new(&name, THEME, "client", sim.capture(Point::Client))
        .why("An idle connection with keep-alives each ten seconds; each is answered at once. A request ends the idle time.")
        .readme(&[
            "Between two requests a connection is idle for 47 s. Keep-alives cross it every 10 s.",
            "A keep-alive lies one byte below the next sequence number, with one byte of payload (Windows, old BSD) or none (Linux). The answer is an acknowledgement.",
            "It looks like a retransmission of one byte, or like a probe of a closed window; but the window is open and all is acknowledged.",
        ])
}

fn dead_peer() -> Case {
    let name = "odd-keep-alives-not-answered";
    let mut s = Script::new(seed(name), 20.0);
    let t = s.warm() + 1.0;
    for n in 0..6 {
        let seq = s.next(S) - 1;
        s.raw(S, t + 10_000.0 + 2_000.0 * f64::from(n), seq, 0, flag::ACK)
            .lost_late();
    }
    s.raw(S, t + 22_000.0, s.next(S), 0, flag::RST | flag::ACK)
        .lost_late();
    let capture = s.capture(Point::Server);
    let span = (nanos(t), nanos(t + 22_000.0));
    Case::new(name, THEME, "server", capture)
        .stall(
            Stall::new(Towards::Either, span, &["silent-path", "unknown"])
                .sides(&["network", "receiver", "unknown"])
                .not(&["rto-storm", "rto-tail", "receiver-window-closed", "zero-window-probe", "application", "ack-loss", "pmtu-black-hole"])
                .why("An idle connection whose client has gone: six keep-alives without an answer, then a reset. No data was waiting.")
                .optional(),
        )
        .readme(&[
            "The client of an idle connection vanishes. The server's keep-alives are not answered; after the sixth it resets.",
            "No data is outstanding: nothing is retransmitted, the packets are empty.",
            "Timeouts that repeat look alike, but their distance doubles and they carry data.",
        ])
}

fn reset() -> Case {
    let name = "odd-reset-in-the-middle-of-a-transfer";
    let mut s = Script::new(seed(name), 30.0);
    let t = s.warm() + 0.4;
    let t = s.bulk(S, t, &[8, 8]);
    let full = s.full();
    s.flight(S, t, 8, full);
    let at = t + 12.0;
    let seq = s.next(C);
    s.raw(C, at, seq, 0, flag::RST | flag::ACK);
    for n in 0..6 {
        s.raw(C, t + 15.1 + 0.12 * f64::from(n), seq, 0, flag::RST);
    }
    Case::new(name, THEME, "receiver", s.capture(Point::Client))
        .why("The client's user stopped the download: its TCP resets the connection and answers what still comes by resets. That is an end, no stall.")
        .readme(&[
            "A user stops a download; the client's TCP sends RST and then one RST for each segment that still arrives.",
            "The last segments are never acknowledged: the connection is gone.",
            "A transfer that breaks off looks like one that stalls for ever.",
        ])
}

fn reset_while_waiting() -> Case {
    let name = "odd-reset-after-a-slow-answer";
    let mut s = Script::new(seed(name), 30.0);
    let t = s.open(0.0);
    let t = s.burst(C, t + 0.2, 1, 380);
    let at = t + 5_000.0;
    s.raw(C, at, s.next(C), 0, flag::RST | flag::ACK);
    let capture = s.capture(Point::Client);
    let span = capture.longest();
    Case::new(name, THEME, "client", capture)
        .stall(
            Stall::new(Towards::Client, span, &["response-time"])
                .sides(SENDER)
                .not(&["ack-loss", "silent-path", "rto-tail", "pmtu-black-hole", "delay-spike", "connection-setup", "receiver-window-closed"])
                .why("The request was acknowledged at once and never answered; the client gave up after 5 s.")
                .optional(),
        )
        .readme(&[
            "A request is acknowledged within a round trip. No answer comes; after 5 s the client resets.",
            "The server's TCP has the request, its application says nothing.",
            "No data ends this silence.",
        ])
}

fn half_close() -> Case {
    let name = "odd-half-close-and-a-late-answer";
    let mut s = Script::new(seed(name), 30.0);
    let t = s.open(0.0);
    let t = s.bulk(C, t + 0.2, &[6]);
    let seq = s.next(C);
    s.raw(C, t, seq, 0, flag::ACK | flag::FIN);
    s.ack(S, t + 15.04);
    let answer = t + 1_200.0;
    let full = s.full();
    for n in 0..4 {
        s.data(S, answer + 0.12 * f64::from(n), full);
        s.raw(
            C,
            answer + 0.12 * f64::from(n) + 15.03,
            seq + 1,
            0,
            flag::ACK,
        );
    }
    let end = s.next(S);
    s.raw(S, answer + 31.0, end, 0, flag::ACK | flag::FIN);
    s.raw(C, answer + 46.1, seq + 1, 0, flag::ACK);
    let capture = s.capture(Point::Client);
    let span = capture.longest();
    Case::new(name, THEME, "client", capture)
        .stall(
            Stall::new(Towards::Client, span, &["response-time"])
                .sides(SENDER)
                .not(&["ack-loss", "silent-path", "rto-tail", "pmtu-black-hole", "delay-spike", "connection-setup", "receiver-window-closed"])
                .why("The client sent its request and its FIN, both acknowledged; the server's application took 1.2 s for the answer on the half-closed connection."),
        )
        .readme(&[
            "A client sends all it has and closes its direction (shutdown); the server works for 1.2 s and answers.",
            "FIN and request are acknowledged at once. Data still flows from the server behind the client's FIN.",
            "A FIN is not the end of the connection.",
        ])
}

/// The sequence number passes 2^32 in the middle.
fn sequence_wrap(lost: bool) -> Case {
    let name = if lost {
        "odd-sequence-wrap-with-a-lost-tail"
    } else {
        "odd-sequence-wrap"
    };
    let mut s = Script::new(seed(name), 30.0);
    s.ids.initial[1] = u32::MAX - 20_000;
    let t = s.warm() + 0.4;
    let full = s.full();
    if !lost {
        let t = s.bulk(S, t, &[8, 8]);
        s.close(S, t);
        return Case::new(name, THEME, "sender", s.capture(Point::Server))
            .why("The sequence number passes 2^32 in a transfer without trouble.")
            .readme(&[
                "The server's sequence numbers pass 2^32 after 20000 bytes.",
                "Numbers go on from 0; acknowledgements too.",
                "Whoever compares them without wrapping finds retransmissions and acknowledgements of the past.",
            ]);
    }
    let first = s.next(S);
    for n in 0..6_u32 {
        let send = s.data(S, t + 0.12 * f64::from(n), full);
        if n >= 4 {
            send.lost();
        }
    }
    s.ack(C, t + 15.2);
    s.ack(C, t + 15.4);
    let repair = t + 240.0;
    s.again(S, repair, first + 4 * full, full);
    s.ack(C, repair + 15.03);
    s.again(S, repair + 30.1, first + 5 * full, full);
    s.ack(C, repair + 45.2);
    let t = s.bulk(S, repair + 61.0, &[6]);
    s.close(S, t);
    let capture = s.capture(Point::Server);
    let span = capture.longest();
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Client, span, &["rto-tail"])
                .sides(NETWORK)
                .not(&["ack-loss", "application", "response-time", "delay-spike", "silent-path", "pmtu-black-hole", "receiver-window-closed"])
                .why("Two segments at the tail, right where the sequence number wraps, were lost; the timeout repaired them."),
        )
        .readme(&[
            "A tail is lost where the sequence number passes 2^32.",
            "The repair has the number of the first lost segment, across the wrap.",
            "It is a lost tail as any other.",
        ])
}

/// The TCP timestamps pass 2^32 in the middle.
fn clock_wrap(pause: bool) -> Case {
    let name = if pause {
        "odd-timestamp-wrap-and-a-pause"
    } else {
        "odd-timestamp-wrap"
    };
    let mut s = Script::new(seed(name), 30.0);
    s.hosts[1].clock_base = u32::MAX - 120;
    let t = s.warm() + 0.4;
    let t = s.bulk(S, t, &[8]);
    let t = s.bulk(S, t + if pause { 1_150.0 } else { 0.0 }, &[8, 8]);
    s.close(S, t);
    let capture = s.capture(Point::Server);
    let span = capture.longest();
    let case = Case::new(name, THEME, "sender", capture);
    let case = if pause {
        case.stall(
            Stall::new(Towards::Client, span, &["application"])
                .sides(SENDER)
                .not(&["ack-loss", "rto-tail", "delay-spike", "silent-path", "pmtu-black-hole", "receiver-window-closed"])
                .why("The server's application paused with everything acknowledged; its timestamp clock passed 2^32 in the pause."),
        )
    } else {
        case.why("The server's timestamp clock passes 2^32 in a transfer without trouble.")
    };
    case.readme(&[
        "The server's TCP timestamps pass 2^32 (a host that is up for 49.7 days with ticks of a millisecond).",
        "They go on from 0; echoes too.",
        "Whoever compares them without wrapping sees a clock that was set back, or a host that was stopped.",
    ])
}

/// A blind reset is answered by a challenge acknowledgement (RFC 5961).
fn challenge() -> Case {
    let name = "odd-challenge-acknowledgement";
    let mut s = Script::new(seed(name), 30.0);
    let t = s.warm() + 0.4;
    let full = s.full();
    let t = s.bulk(S, t, &[8]);
    for n in 0..8 {
        s.data(S, t + 0.12 * f64::from(n), full);
        if n % 2 == 1 {
            s.ack(C, t + 0.12 * f64::from(n) + 15.03);
        }
    }
    // In the window, but not the next number: a forged RST.
    s.raw(C, t + 16.5, 201 + 5_000, 0, flag::RST);
    s.ack(S, t + 31.53);
    let t = s.bulk(S, t + 33.0, &[8, 8]);
    s.close(S, t);
    Case::new(name, THEME, "sender", s.capture(Point::Server))
        .why("A forged RST within the window is answered by a challenge acknowledgement and ignored (RFC 5961); the transfer goes on.")
        .readme(&[
            "Somebody forges an RST whose number is in the window but not the next one. The server answers with an acknowledgement and goes on.",
            "Data and acknowledgements continue on both sides behind the RST.",
            "An RST in a capture is not always the end.",
        ])
}

/// Urgent data: flags that nobody needs.
fn urgent() -> Case {
    let name = "odd-urgent-pointer-telnet";
    let mut s = Script::new(seed(name), 30.0);
    s.ids.ports[1] = 23;
    let t = s.open(0.0);
    let t = s.burst(C, t + 1.0, 1, 12);
    s.data(C, t + 900.0, 3).flags(32);
    s.ack(S, t + 915.1);
    let t = s.burst(S, t + 918.0, 1, 40);
    s.close(C, t + 20.0);
    Case::new(name, THEME, "client", s.capture(Point::Client))
        .why("A person presses a key to interrupt: three bytes with the urgent flag, acknowledged at once.")
        .readme(&[
            "A telnet session: a person interrupts with urgent data after 0.9 s.",
            "The urgent flag is set on three bytes; everything is acknowledged within a round trip.",
            "The silence before is a person's.",
        ])
}

/// Marks of congestion (RFC 3168): the window is halved, nothing waits.
fn marks() -> Case {
    let name = "odd-ecn-marks";
    let mut s = Script::new(seed(name), 30.0);
    let mut t = s.warm() + 0.4;
    let full = s.full();
    for round in 0..5_u32 {
        let segments = if round < 2 { 12 } else { 6 };
        for n in 0..segments {
            let sent = t + 0.12 * f64::from(n);
            let data = s.data(S, sent, full);
            if round == 2 && n == 0 {
                data.flags(0x80);
            }
            if n % 2 == 1 {
                let ack = s.ack(C, sent + 15.03);
                if round == 1 {
                    ack.flags(0x40);
                }
            }
        }
        t += 31.5;
    }
    s.close(S, t);
    let mut capture = s.capture(Point::Client);
    let ids = capture.connections[0].clone();
    for record in capture
        .records
        .iter_mut()
        .filter(|r| r.is_data() && r.is_of(S))
    {
        // ECT(0), and CE for the second flight; the checksum follows (RFC 1624).
        let is_marked = (90_000_000..125_000_000).contains(&record.time_ns);
        let mut bytes = record.packet.ipv4(&ids, record.hop_limit);
        bytes[1] = if is_marked { 3 } else { 2 };
        let sum = u32::from(!u16::from_be_bytes([bytes[10], bytes[11]])) + u32::from(bytes[1]);
        let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        record.other = Some(bytes);
    }
    Case::new(name, THEME, "receiver", capture)
        .why("A queue marks a flight instead of dropping it; the receiver echoes the marks, the sender halves its window. Nothing is lost and nothing waits.")
        .readme(&[
            "A router marks packets as \"congestion experienced\" (RFC 3168). The receiver echoes it (ECE), the sender answers (CWR).",
            "The flights shrink from twelve segments to six; they follow each other without a pause.",
            "The same happens after a loss, but here nothing is retransmitted.",
        ])
}

/// The sender's timestamps go back: the receiver drops its segments (PAWS, RFC 7323, 5.3).
fn paws() -> Case {
    let name = "odd-timestamps-go-back-and-are-dropped";
    let mut s = Script::new(seed(name), 30.0);
    let t = s.warm() + 0.4;
    let full = s.full();
    let first = s.next(S);
    let base = s.hosts[1].clock_base;
    let back = base.wrapping_sub(900_000);
    // The receiver answers each with an acknowledgement of what it has, and takes nothing.
    for n in 0..4_u32 {
        s.data(S, t + 0.12 * f64::from(n), full).value(back);
        s.ack(C, t + 15.03 + 0.12 * f64::from(n))
            .acks(first)
            .sack(&[]);
    }
    for (after, value) in [(236.0, back + 236), (700.0, back + 700)] {
        s.again(S, t + after, first, full).value(value);
        s.ack(C, t + after + 15.03).acks(first).sack(&[]);
    }
    let capture = s.capture(Point::Client);
    let start = capture.records[capture.data(S, 13)].time_ns;
    let end = capture.records.last().map_or(0, |r| r.time_ns);
    Case::new(name, THEME, "receiver", capture)
        .stall(
            Stall::new(Towards::Client, (start, end), &["unknown", "rto-other", "rto-storm"])
                .sides(&["sender", "receiver", "unknown", "network"])
                .not(&["rto-tail", "path-loss", "congestion", "policer", "silent-path", "ack-loss", "application", "response-time", "pmtu-black-hole", "receiver-window-closed", "delay-spike", "delayed-ack"])
                .why("The segments arrive, as the receiver's capture shows, with timestamps 15 minutes older than before: the receiver must drop them (PAWS, RFC 7323, 5.3). No packet is lost."),
        )
        .readme(&[
            "A device in front of two servers gives a connection to the other one: its timestamps are 15 minutes behind.",
            "Each segment arrives and is answered by a duplicate acknowledgement without SACK: the receiver takes none of them.",
            "It looks like a segment that is lost each time, but the receiver's own capture has it.",
        ])
}

/// Two connections of the same hosts: one waits for a timeout, the other goes on.
fn one_of_two() -> Case {
    let name = "odd-two-connections-one-stalls";
    let sim = Sim::new(seed(name), 40)
        .both(|p| p.recovery = Recovery::Sack)
        .path(S, |n| n.drop_data = vec![18, 19])
        .download(&[(0, 20 * 1448)]);
    let first = sim.capture(Point::Server);
    let span = first.longest();
    let mut other = Sim::new(seed(name) + 1, 40).download(&[
        (0, 4_000),
        (60, 4_000),
        (60, 4_000),
        (60, 4_000),
        (60, 4_000),
        (60, 4_000),
    ]);
    other.ids.addresses = first.connections[0].addresses;
    let capture = first.merge(other.capture(Point::Server));
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Client, span, &["rto-tail"])
                .sides(NETWORK)
                .not(&["ack-loss", "application", "response-time", "delay-spike", "silent-path", "pmtu-black-hole", "receiver-window-closed"])
                .why("The last two segments of the first connection's answer were lost and repaired by its timeout. Packets of the second connection arrived all the while."),
        )
        .partial()
        .readme(&[
            "Two connections between the same hosts. The tail of one is lost; the other sends a little every 60 ms.",
            "In the silence of the first connection packets of the second pass in both directions: the path was not silent.",
            "Taken together there is no silence at all.",
        ])
}
