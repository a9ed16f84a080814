// SPDX-License-Identifier: MIT OR Apache-2.0
//! Path MTU: large packets vanish, and what looks like it.

use tcp_stacks::world::Point;

use crate::case::{Case, Stall, Towards};
use crate::ends::{C, NETWORK, S, at, seed};
use crate::record::{Capture, Record};
use crate::script::Script;
use crate::sim::Sim;

const THEME: &str = "path-mtu";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![honoured(), honoured_late(), by_chance(), tunnel()];
    for (name, place, sack, stamps) in [
        ("sender-sack", "sender", true, true),
        ("sender-no-sack", "sender", false, true),
        ("sender-no-timestamps", "sender", true, false),
        ("receiver", "receiver", true, true),
        ("middle", "middle", true, true),
    ] {
        cases.push(black_hole(name, place, sack, stamps));
    }
    cases.extend([
        probing("sender"),
        probing("receiver"),
        upload(),
        answered(true),
        answered(false),
    ]);
    cases
}

/// An answer whose full segments vanish behind the middle; its short tail arrives.
fn black_hole(name: &str, place: &'static str, sack: bool, stamps: bool) -> Case {
    let name = format!("path-mtu-black-hole-{name}");
    let mut sim = Sim::new(seed(&name), 30)
        .both(|p| {
            p.sack = sack;
            p.timestamp_tick_ns = p.timestamp_tick_ns.filter(|_| stamps);
        })
        .stack(S, |p| p.nagle = false)
        .path(S, |n| n.black_hole_bytes = Some(1400))
        .download(&[(0, 11_900)]);
    sim.until_ns = 15_000_000_000;
    let capture = sim.capture(at(S, place));
    let end = capture.records.last().map_or(0, |r| r.time_ns);
    let start = capture.gaps(150).first().map_or(0, |g| g.0);
    let seen = place != "receiver";
    let causes: &[&str] = if seen {
        &["pmtu-black-hole"]
    } else {
        &["pmtu-black-hole", "rto-storm", "silent-path", "unknown"]
    };
    let end = if seen { end } else { start + 14_000_000_000 };
    let case = Case::new(&name, THEME, place, capture);
    let case = if seen {
        case.stall(
            Stall::new(Towards::Client, (start, end), causes)
                .sides(NETWORK)
                .not(&["policer", "path-loss", "congestion", "silent-path", "ack-loss", "application", "receiver-window-closed"])
                .why("All segments of the full size vanish however often they are sent, and the short last segment of the same answer arrives and is reported by the receiver: size decides, not chance and not an outage."),
        )
    } else {
        case.why("The receiver gets the short tail of the answer and nothing else. Nothing follows in its capture, so no pause ends in it; the sizes of what is missing are not visible here.").partial()
    };
    case.readme(&[
        "A server answers with eight full segments and a short one. The path drops packets above 1400 bytes and no ICMP message says so.",
        "The short segment arrives: the client reports it (SACK or a duplicate acknowledgement). The full ones are sent again and again, with doubled timeouts.",
        "It looks like an outage or heavy loss. In an outage the short segment would vanish as well; random loss would let a full segment pass at times.",
    ])
}

/// The sender halves its segments after three timeouts (Linux, net.ipv4.tcp_mtu_probing=1).
fn probing(place: &'static str) -> Case {
    let name = format!("path-mtu-black-hole-mended-by-probing-{place}");
    let mut s = Script::new(seed(&name), 20.0);
    let t = s.open(0.0);
    let t = s.say(C, t + 0.1, 220) + 1.0;
    let full = s.full();
    for n in 0..8 {
        s.data(S, t + 0.12 * f64::from(n), full).lost_late();
    }
    s.ack(S, t - 0.9);
    let tail = t + 1.0;
    s.data(S, tail, 400);
    s.ack(C, tail + 10.1);
    let mut at_ms = t + 234.0;
    for wait in [440.0, 880.0, 1760.0] {
        s.again(S, at_ms, 1, full).lost_late();
        at_ms += wait;
    }
    // 512 bytes each from here on: all of it arrives.
    let mut seq = 1;
    let mut sent = at_ms;
    let all = full * 8 + 1;
    while seq < all {
        let bytes = (all - seq).min(512);
        s.again(S, sent, seq, bytes);
        s.ack(C, sent + 10.05);
        seq += bytes;
        sent += 21.0;
    }
    let t = s.burst(S, sent + 5.0, 6, 512);
    s.close(S, t + 1.0);
    let capture = s.capture(at(S, place));
    let span = capture.from_first_to_last(150);
    let causes: &[&str] = if place == "sender" {
        &["pmtu-black-hole"]
    } else {
        &[
            "pmtu-black-hole",
            "rto-storm",
            "silent-path",
            "rto-lost-retransmission",
            "unknown",
        ]
    };
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Client, span, causes)
                .sides(NETWORK)
                .not(&["policer", "congestion", "application", "response-time", "ack-loss", "receiver-window-closed", "delay-spike"])
                .why("Each copy of the full segments vanishes; the same bytes arrive at once when they are sent in segments of 512 bytes."),
        )
        .readme(&[
            "Full segments of an answer vanish on the path; after three timeouts the sender cuts its segments to 512 bytes (packetization layer path MTU discovery), and all of it arrives.",
            "The packets show it: the same sequence number is sent four times with 1448 bytes in vain, and arrives with the first copy of 512 bytes.",
            "At the receiver nothing is visible but a hole, a silence, and then segments that are smaller than the size agreed on.",
            "A storm of timeouts looks the same until the size changes; there the copy that arrives has the old size.",
        ])
}

/// The client uploads a large body: its first flight vanishes, the header was short.
fn upload() -> Case {
    let name = "path-mtu-black-hole-upload-after-short-header";
    let mut s = Script::new(seed(name), 40.0);
    let t = s.open(0.0);
    s.data(C, t + 0.2, 310);
    s.ack(S, t + 20.3);
    let t = t + 41.0;
    let full = s.full();
    for n in 0..10 {
        s.data(C, t + 0.12 * f64::from(n), full).lost_late();
    }
    let first = 311;
    let mut at_ms = t + 84.0;
    for wait in [170.0, 480.0, 960.0, 1920.0, 3840.0] {
        s.again(C, at_ms, first, full).lost_late();
        at_ms += wait;
    }
    // The server's own keep-alive crosses the path both ways: the path is up.
    let ping = t + 2500.0;
    s.data(S, ping, 31);
    s.ack(C, ping + 20.1);
    s.again(C, at_ms, first, full).lost_late();
    let capture = s.capture(Point::Client);
    let start = capture.gaps(150).first().map_or(0, |g| g.0);
    let end = capture.records.last().map_or(0, |r| r.time_ns);
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Server, (start, end), &["pmtu-black-hole"])
                .sides(NETWORK)
                .not(&["silent-path", "ack-loss", "application", "response-time", "policer", "congestion", "delay-spike"])
                .why("Full segments vanish six times while a short message and its acknowledgement cross the same path in both directions."),
        )
        .readme(&[
            "A client uploads over a tunnel whose MTU nobody knows. The header of 310 bytes is acknowledged, the full segments of the body never are.",
            "In the middle of the timeouts the server sends 31 bytes and gets its acknowledgement: the path is up in both directions.",
            "It looks like an outage: the timeouts double. An outage would have swallowed the short message too.",
        ])
}

/// Bytes of an ICMP "fragmentation needed" with the next hop's MTU, in IPv4.
fn too_big(from: [u8; 4], to: [u8; 4], mtu: u16, original: &[u8]) -> Vec<u8> {
    let mut icmp = vec![3, 4, 0, 0, 0, 0];
    icmp.extend(mtu.to_be_bytes());
    icmp.extend(&original[..28]);
    let sum = checksum(&icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let length = (20 + icmp.len()) as u16;
    let mut bytes = vec![0x45, 0];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0, 7, 0, 0, 62, 1, 0, 0]);
    bytes.extend(from);
    bytes.extend(to);
    let sum = checksum(&bytes);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes.extend(icmp);
    bytes
}

/// Returns the Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let pairs = bytes.chunks(2);
    let mut sum: u32 = pairs
        .map(|p| (u32::from(p[0]) << 8) | u32::from(p.get(1).copied().unwrap_or(0)))
        .sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Puts an ICMP message for the server into a capture, as an answer to its last segment by then.
fn with_icmp(mut capture: Capture, ms: f64, mtu: u16) -> Capture {
    let time_ns = crate::script::nanos(ms);
    let index = capture.records.partition_point(|r| r.time_ns <= time_ns);
    let large = capture.records[..index]
        .iter()
        .rev()
        .find(|r| r.is_of(S) && r.packet.payload_bytes > 1000)
        .cloned();
    if let Some(large) = large {
        let ids = capture.connections[0].clone();
        let original = large.packet.ipv4(&ids, 60);
        let bytes = too_big([203, 0, 113, 1], ids.addresses[1], mtu, &original);
        let mut packet = large.packet.clone();
        packet.from = C;
        let record = Record {
            time_ns,
            packet,
            other: Some(bytes),
            ..large
        };
        capture.records.insert(index, record);
    }
    capture
}

fn smaller(name: &str, icmp_after_ms: f64) -> (Script, f64, Vec<f64>) {
    let mut s = Script::new(seed(name), 24.0);
    let t = s.open(0.0);
    let t = s.say(C, t + 0.1, 190) + 1.5;
    let full = s.full();
    s.ack(S, t - 1.2);
    for n in 0..6 {
        s.data(S, t + 0.12 * f64::from(n), full).lost_late();
    }
    let mut at_ms = t;
    let mut icmps = vec![t + icmp_after_ms];
    if icmp_after_ms > 200.0 {
        s.again(S, t + 236.0, 1, full).lost_late();
        icmps = vec![t + 236.0 + 5.0];
    }
    at_ms = icmps[0].max(at_ms) + 0.2;
    let mut seq = 1;
    let all = full * 6 + 1;
    while seq < all {
        let bytes = (all - seq).min(1360);
        s.again(S, at_ms, seq, bytes);
        s.ack(C, at_ms + 12.05);
        seq += bytes;
        at_ms += 0.12;
    }
    let t = s.burst(S, at_ms + 25.0, 8, 1360);
    s.close(S, t + 1.0);
    (s, t, icmps)
}

fn honoured() -> Case {
    let name = "path-mtu-icmp-honoured";
    let (s, _, icmps) = smaller(name, 5.0);
    let capture = with_icmp(s.capture(Point::Server), icmps[0], 1412);
    Case::new(name, THEME, "sender", capture)
        .why("The router's ICMP message comes within 5 ms, the sender cuts its segments at once, and nobody waits.")
        .readme(&[
            "Six full segments do not fit through a tunnel. The router says so with ICMP \"fragmentation needed, next hop 1412\".",
            "The sender sends the same bytes again, in segments of 1360 bytes, 0.2 ms behind the message.",
            "It looks like the beginning of a path MTU black hole: full segments are sent twice, the second time smaller. There is no pause.",
        ])
}

fn honoured_late() -> Case {
    let name = "path-mtu-icmp-only-for-the-repair";
    let (s, _, icmps) = smaller(name, 300.0);
    let capture = with_icmp(s.capture(Point::Server), icmps[0], 1412);
    let span = capture.longest();
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Client, span, &["pmtu-black-hole", "rto-other", "rto-tail", "unknown"])
                .sides(NETWORK)
                .not(&["ack-loss", "application", "response-time", "policer", "congestion", "receiver-window-closed"])
                .why("The full segments were too large for the path; the first ICMP message got lost, and only the one for the repair told the sender."),
        )
        .readme(&[
            "As path-mtu-icmp-honoured, but the router's message for the first flight is lost (routers limit their rate of ICMP).",
            "The sender waits for its timeout of 236 ms; the message for the repair arrives, and the bytes go through in smaller segments.",
            "A single timeout of a lost tail looks the same in TCP's headers but for the size of what finally arrives; the ICMP message is the proof.",
        ])
}

/// Two full segments are lost by chance, and others of that size arrive.
fn by_chance() -> Case {
    let name = "path-mtu-look-alike-two-full-segments-lost";
    let sim = Sim::new(seed(name), 30)
        .path(S, |n| n.drop_data = vec![10, 11])
        .download(&[(0, 40_000)]);
    let capture = sim.capture(Point::Server);
    Case::new(name, THEME, "sender", capture)
        .why("Two full segments were lost by an error; SACK repaired them within a round trip, and dozens of segments of the same size arrived.")
        .readme(&[
            "Two neighbouring full segments of an answer are lost; fast recovery sends them again one round trip later.",
            "Only full segments are missing, as in a path MTU black hole, but all others of that size arrive, and so do the repairs.",
            "There is no silence longer than a round trip.",
        ])
}

/// A tunnel announces a small MSS: nothing is wrong.
fn tunnel() -> Case {
    let name = "path-mtu-look-alike-clamped-mss";
    let sim = Sim::new(seed(name), 30)
        .stack(C, |p| p.mss = 1240)
        .download(&[(0, 15_000), (900, 20_000)]);
    let capture = sim.capture(Point::Middle);
    let span = capture.longest();
    Case::new(name, THEME, "middle", capture)
        .stall(
            Stall::new(Towards::Client, span, &["application"])
                .sides(&["sender"])
                .not(&["pmtu-black-hole", "silent-path", "delay-spike", "ack-loss"])
                .why("All that was sent had been acknowledged; the server's application paused for 900 ms in its answer."),
        )
        .readme(&[
            "A tunnel clamps the MSS to 1240 bytes. The server's application pauses for 900 ms within its answer.",
            "Everything before the pause is acknowledged, and new data ends it.",
            "Segments below 1460 bytes hint at a tunnel, but no large packet is missing.",
        ])
}

/// A full segment is acknowledged only by the answer that ends the wait.
fn answered(repeated: bool) -> Case {
    let name = if repeated {
        "path-mtu-look-alike-request-repeated-until-the-answer"
    } else {
        "path-mtu-look-alike-request-acknowledged-by-the-answer"
    };
    let mut s = Script::new(seed(name), 20.0);
    let t = s.open(0.0);
    let full = s.full();
    let t = s.burst(C, t + 0.2, 1, 180);
    let t = s.burst(S, t + 1.0, 3, full) + 30.0;
    let request = s.next(C);
    s.data(C, t, full);
    let answer = if repeated {
        s.ack(S, t + 50.0).lost();
        for after in [240.0, 700.0, 1620.0] {
            s.again(C, t + after, request, full);
            s.ack(S, t + after + 10.05)
                .sack(&[(request, request + full)])
                .lost();
        }
        t + 2100.0
    } else {
        t + 190.0
    };
    let t = s.burst(S, answer, 4, full);
    s.close(C, t + 2.0);
    let capture = s.capture(Point::Client);
    let span = if repeated {
        capture.from_first_to_last(150)
    } else {
        capture.gaps(150).last().copied().unwrap_or((0, 0))
    };
    let (causes, why): (&[&str], &str) = if repeated {
        (
            &[
                "ack-loss",
                "response-time",
                "rto-storm",
                "rto-lost-retransmission",
                "silent-path",
                "rto-other",
                "unknown",
            ],
            "The full request had arrived at its first copy; the server's acknowledgements were lost for two seconds. The answer acknowledges it.",
        )
    } else {
        (
            &["response-time", "waiting-for-peer", "unknown"],
            "The request arrived. The server took 190 ms for the answer, and its acknowledgement rode on it (delayed acknowledgement of up to 200 ms, as Windows and old BSD have it).",
        )
    };
    Case::new(name, THEME, "client", capture)
        .stall(
            Stall::new(Towards::Either, span, causes)
                .sides(&["sender", "network", "unknown", "receiver"])
                .not(&["pmtu-black-hole", "policer", "congestion", "receiver-window-closed"])
                .why(why),
        )
        .readme(&[
            "A client sends a request that fills a segment. Nothing acknowledges it until the answer comes.",
            "The answer acknowledges the full segment and carries full segments itself: large packets pass in both directions.",
            "A full segment without an acknowledgement for a while looks like a path MTU black hole; in one, no copy of that size would ever be acknowledged.",
        ])
}
