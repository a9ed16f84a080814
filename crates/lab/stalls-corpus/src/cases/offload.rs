// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures on hosts that send and receive many segments as one packet.

use tcp_stacks::world::Point;

use crate::case::{Case, Stall, Towards};
use crate::ends::{C, NETWORK, S, SENDER, seed};
use crate::record::Capture;
use crate::script::Script;

const THEME: &str = "offload";

pub(super) fn cases() -> Vec<Case> {
    vec![
        clean("tso-clean-sender", Point::Server),
        clean("gro-clean-receiver", Point::Client),
        paused(),
        half_lost(true),
        half_lost(false),
        one_packet(),
        zero_length(),
    ]
}

/// Packets of 19 kB, each acknowledged in four steps; a pause behind the fourth if asked for.
fn large(name: &str, pause_ms: f64) -> Script {
    let mut s = Script::new(seed(name), 16.0);
    let t = s.open(0.0);
    let mut t = s.burst(C, t + 0.2, 1, 300) + 0.4;
    let full = s.full();
    for round in 0..8_u32 {
        if round == 4 {
            t += pause_ms;
        }
        let first = s.next(S);
        s.data(S, t, full * 13);
        for step in [4, 8, 13] {
            let wire = 0.12 * step as f64;
            s.ack(C, t + 8.03 + wire).acks(first + full * step);
        }
        t += 18.0;
    }
    s.close(S, t);
    s
}

fn clean(name: &str, point: Point) -> Case {
    let place = if point == Point::Server {
        "sender"
    } else {
        "receiver"
    };
    let s = large(name, 0.0);
    Case::new(name, THEME, place, s.capture(point))
        .why("Packets of 18.8 kB in the capture are thirteen segments each on the wire; they are acknowledged within a round trip.")
        .readme(&[
            "The capture has packets of 18824 bytes: the card cuts them into segments (TSO), or put them together on arrival (GRO).",
            "Acknowledgements cover parts of a packet. The MSS of the handshake is 1460.",
            "A tool that takes each packet for a segment finds packets above the MSS and acknowledgements in the middle of them. Nothing is wrong.",
        ])
}

fn paused() -> Case {
    let name = "tso-application-pause-sender";
    let capture = large(name, 1_300.0).capture(Point::Server);
    let span = capture.longest();
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Client, span, &["application"])
                .sides(SENDER)
                .not(&[
                    "pmtu-black-hole",
                    "ack-loss",
                    "rto-tail",
                    "rto-few-dupacks",
                    "silent-path",
                    "delay-spike",
                    "path-loss",
                    "congestion",
                ])
                .why(
                    "Everything was acknowledged; the server's application gave nothing for 1.3 s.",
                ),
        )
        .readme(&[
            "As tso-clean-sender, with a pause of the application of 1.3 s.",
            "The last packet before the pause is acknowledged in three steps, all of it.",
            "A packet of 19 kB is no path MTU problem: the wire never sees it.",
        ])
}

/// The second half of a large packet is lost.
fn half_lost(sack: bool) -> Case {
    let name = if sack {
        "tso-second-half-lost-sender"
    } else {
        "tso-second-half-lost-no-sack-sender"
    };
    let mut s = Script::new(seed(name), 16.0);
    if !sack {
        s = s.no_sack();
    }
    let t = s.open(0.0);
    let t = s.burst(C, t + 0.2, 1, 300);
    let full = s.full();
    let first = s.next(S);
    s.data(S, t, full * 10);
    for step in [4, 8, 10] {
        s.ack(C, t + 8.03 + 0.12 * step as f64)
            .acks(first + full * step);
    }
    let t = t + 18.0;
    let first = s.next(S);
    s.data(S, t, full * 13).lost();
    for part in 0..6 {
        s.again(S, t, first + full * part, full).unseen();
    }
    for step in [2, 4, 6] {
        s.ack(C, t + 8.03 + 0.12 * step as f64)
            .acks(first + full * step);
    }
    // The card sent thirteen segments; the last seven were lost.
    let repair = t + 232.0;
    s.again(S, repair, first + full * 6, full);
    s.ack(C, repair + 8.03).acks(first + full * 7);
    s.again(S, repair + 16.2, first + full * 7, full * 2);
    s.ack(C, repair + 24.3).acks(first + full * 9);
    s.again(S, repair + 32.5, first + full * 9, full * 4);
    s.ack(C, repair + 40.8).acks(first + full * 13);
    let t = repair + 49.0;
    let next = s.next(S);
    s.data(S, t, full * 4);
    s.ack(C, t + 8.5).acks(next + full * 4);
    let capture = s.capture(Point::Server);
    let span = capture.longest();
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Client, span, &["rto-tail"])
                .sides(NETWORK)
                .not(&["pmtu-black-hole", "ack-loss", "application", "response-time", "silent-path", "delay-spike", "rto-few-dupacks", "receiver-window-closed"])
                .why("Of a packet of thirteen segments the last seven were lost on the path. Nothing behind them reported it; the timeout repaired them."),
        )
        .readme(&[
            "One packet of 19 kB in the sender's capture is thirteen segments on the wire, and the last seven of them are lost.",
            "The acknowledgements stop in the middle of the packet. The timeout's copy begins there and is acknowledged alone; the rest follows in two pieces.",
            "Whoever takes the packet for one segment finds it \"partly acknowledged\" and its repair to be something new.",
            "Small copies of parts of a large packet look like a sender that cuts its segments for a smaller path MTU.",
        ])
}

/// An answer that is one packet in the capture and nothing more.
fn one_packet() -> Case {
    let name = "tso-answer-of-one-packet-slow-server";
    let mut s = Script::new(seed(name), 16.0);
    let t = s.open(0.0);
    let full = s.full();
    let t = s.burst(C, t + 0.2, 1, 300);
    let first = s.next(S);
    s.data(S, t + 800.0, full * 13 + 176);
    for step in [4, 8, 13] {
        s.ack(C, t + 808.03 + 0.12 * step as f64)
            .acks(first + full * step);
    }
    s.ack(C, t + 809.7).acks(first + full * 13 + 176);
    let t = s.burst(C, t + 830.0, 1, 310);
    let first = s.next(S);
    s.data(S, t + 1.0, full * 13 + 176);
    s.ack(C, t + 10.7).acks(first + full * 13 + 176);
    s.close(C, t + 40.0);
    let capture = s.capture(Point::Server);
    let span = capture.longest();
    Case::new(name, THEME, "server", capture)
        .stall(
            Stall::new(Towards::Client, span, &["response-time"])
                .sides(SENDER)
                .not(&["pmtu-black-hole", "ack-loss", "rto-tail", "rto-few-dupacks", "silent-path", "delay-spike", "path-loss", "congestion", "delayed-ack"])
                .why("The request was acknowledged at once; the server's application took 0.8 s for the answer of 19 kB."),
        )
        .readme(&[
            "Two answers of 19000 bytes, each one packet in the server's capture. The first comes after 0.8 s.",
            "The request was acknowledged at once; the answer itself is acknowledged within a round trip.",
            "One packet counts as thirteen segments for everything that counts segments.",
        ])
}

/// IPv4 length 0, as captures of large sends have it on some systems.
fn zero_length() -> Case {
    let name = "tso-ipv4-length-zero-sender";
    let mut capture: Capture = large(name, 0.0).capture(Point::Server);
    let ids = capture.connections[0].clone();
    for record in &mut capture.records {
        if record.packet.payload_bytes > 1_460 {
            let mut bytes = record.packet.ipv4(&ids, record.hop_limit);
            bytes[2..4].copy_from_slice(&[0, 0]);
            record.other = Some(bytes);
        }
    }
    Case::new(name, THEME, "sender", capture)
        .why("The length in the IPv4 header of large packets is 0, because the card fills it in; the transfer has no trouble.")
        .readme(&[
            "A capture of large sends as Windows and some drivers give it: the IPv4 total length is 0, and the frame's length counts.",
            "The sequence numbers advance by 18824 with each packet.",
            "A tool that believes the field finds data acknowledged that it has not seen.",
        ])
}
