// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handshake and the time behind it.

use tcp_stacks::packet::flag;
use tcp_stacks::profile::{MS, Profile};
use tcp_stacks::world::Point;

use crate::case::{Case, Stall, Towards};
use crate::ends::{C, S, SENDER, seed};
use crate::script::Script;
use crate::sim::{Sim, names};

const THEME: &str = "connection-setup";
const NOT: &[&str] = &[
    "application",
    "response-time",
    "rto-tail",
    "pmtu-black-hole",
    "policer",
    "congestion",
    "receiver-window-closed",
    "ack-loss",
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, point) in [("client", Point::Client), ("server", Point::Server)] {
        cases.push(syn_ack_lost(name, point));
        cases.push(slow_accept(name, point));
    }
    cases.extend([
        syn_lost(1),
        syn_lost(2),
        syn_repeated_then_thinking("client", Point::Client),
        syn_repeated_then_thinking("server", Point::Server),
        third_lost(),
        never_answered(),
        refused(),
        long_path(),
        late_banner(),
        slow_client(),
        flood(),
    ]);
    cases
}

fn setup(span: (u64, u64), why: &str) -> Stall {
    Stall::new(Towards::Either, span, &["connection-setup"])
        .sides(&["network", "unknown", "receiver", "sender"])
        .not(NOT)
        .why(why)
}

fn syn_lost(count: u64) -> Case {
    let name = format!("setup-syn-lost-{count}-times");
    let sim = Sim::new(seed(&name), 40)
        .path(C, |n| n.drop_acks = (0..count).collect())
        .turns(&[(0, 300, 5, 9_000)]);
    let capture = sim.capture(Point::Client);
    let span = capture.from_first_to_last(150);
    Case::new(&name, THEME, "client", capture)
        .stall(setup(span, "The client's SYN was lost and sent again after a second, doubled each time. The answer to the last one came within a round trip."))
        .readme(&[
            "The client's first SYN packets are lost on the way; the repeated one is answered within 40 ms.",
            "At the client the same SYN is in the capture again after one second (and three).",
            "A server that accepts late looks the same at the client.",
        ])
}

fn syn_ack_lost(name: &str, point: Point) -> Case {
    let place: &'static str = if point == Point::Client {
        "client"
    } else {
        "server"
    };
    let name = format!("setup-syn-ack-lost-{name}");
    let sim = Sim::new(seed(&name), 40)
        .stacks(Profile::windows(), Profile::linux())
        .path(S, |n| n.drop_acks = vec![0, 1])
        .turns(&[(0, 300, 5, 9_000)]);
    let capture = sim.capture(point);
    let span = capture.from_first_to_last(150);
    Case::new(&name, THEME, place, capture)
        .stall(setup(span, "The answers to the SYN were lost on the way back; SYN and answer were repeated after a second."))
        .readme(&[
            "The server's SYN-ACK is lost, and so is the one to the repeated SYN.",
            "At the server each SYN and each answer is in the capture. At the client there are SYNs alone, as if they had not arrived.",
            "The pause belongs to the handshake and to no application.",
        ])
}

fn slow_accept(name: &str, point: Point) -> Case {
    let place: &'static str = if point == Point::Client {
        "client"
    } else {
        "server"
    };
    let name = format!("setup-server-answers-syn-late-{name}");
    let mut sim = Sim::new(seed(&name), 30).turns(&[(0, 250, 4, 6_000)]);
    sim.accept_ns = 640 * MS;
    let capture = sim.capture(point);
    let span = capture.longest();
    let sides: &[&str] = if place == "server" {
        &["receiver", "sender", "unknown"]
    } else {
        &["network", "receiver", "sender", "unknown"]
    };
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Either, span, &["connection-setup"])
                .sides(sides)
                .not(NOT)
                .why("The server took 640 ms to answer the SYN: later round trips are 30 ms. At the server's own capture no network is involved."),
        )
        .readme(&[
            "A server (or a firewall before it) answers the SYN after 640 ms. The SYN is not repeated, as that takes a second.",
            "Later round trips take 30 ms, so the path is not that long.",
            "A satellite's path has a long first round trip too, but then all others are as long.",
        ])
}

/// A repeated SYN gives a long first round trip; a person thinks for seconds later on.
fn syn_repeated_then_thinking(name: &str, point: Point) -> Case {
    let place: &'static str = if point == Point::Client {
        "client"
    } else {
        "server"
    };
    let name = format!("setup-repeated-then-thinking-no-timestamps-{name}");
    let sim = Sim::new(seed(&name), 36)
        .stacks(Profile::windows(), Profile::windows())
        .path(S, |n| n.drop_acks = vec![0])
        .turns(&[
            (0, 310, 6, 5_000),
            (2300, 290, 8, 6_000),
            (3900, 330, 5, 4_000),
        ]);
    let capture = sim.capture(point);
    let span = capture.gaps(150).first().copied().unwrap_or((0, 0));
    Case::new(&name, THEME, place, capture)
        .stall(setup(span, "The answer to the SYN was lost and repeated after a second."))
        .why("Only the handshake stalled. The later silences of 2.3 s and 3.9 s are a person's: all is acknowledged and answered before, and a request ends them.")
        .readme(&[
            "Without timestamps a repeated SYN makes the first round trip look a second long: whoever takes it for the path's expects silences of seconds.",
            "The client asks three times, with 2.3 s and 3.9 s in between. Each answer is complete and acknowledged before the silence.",
            "Karn's rule: a round trip of something that was sent twice says nothing (RFC 6298, section 3).",
        ])
}

/// The handshake's third packet and the request are lost.
fn third_lost() -> Case {
    let name = "setup-third-packet-and-request-lost-server";
    let mut s = Script::new(seed(name), 30.0);
    s.raw(C, 0.0, 0, 0, flag::SYN);
    s.raw(S, 15.05, 0, 0, flag::SYN | flag::ACK);
    s.raw(C, 30.1, 1, 0, flag::ACK).lost();
    s.raw(C, 30.2, 1, 240, 24).lost();
    s.raw(C, 262.0, 1, 240, 24);
    s.ack(S, 277.1).acks(241);
    let mut t = 279.0;
    for n in 0..4_u32 {
        s.raw(
            S,
            t + 0.12 * f64::from(n),
            1 + 1448 * u64::from(n),
            1448,
            24,
        );
    }
    t += 15.2;
    s.raw(C, t, 241, 0, 16);
    s.raw(C, t + 0.24, 241, 0, 16);
    let capture = s.capture(Point::Server);
    let span = capture.longest();
    Case::new(name, THEME, "server", capture)
        .stall(
            Stall::new(Towards::Either, span, &["connection-setup", "rto-tail", "rto-other", "silent-path", "path-loss", "unknown"])
                .sides(&["network", "unknown"])
                .not(&["response-time", "pmtu-black-hole", "receiver-window-closed", "ack-loss", "policer", "congestion"])
                .why("The client's acknowledgement of the SYN-ACK and its request were lost; its timeout sent the request again."),
        )
        .readme(&[
            "The handshake's third packet and the first request behind it are lost. The client's timeout of 232 ms sends the request again.",
            "At the server's capture the request's timestamp is that of its repetition; nothing shows the first copy but the missing IP identifications.",
            "A client that takes its time before it asks looks alike; there the third packet of the handshake comes within a round trip.",
        ])
}

fn never_answered() -> Case {
    let name = "setup-syn-never-answered";
    let mut s = Script::new(seed(name), 30.0);
    for at in [0.0, 1000.0, 3000.0, 7000.0, 15_000.0] {
        s.raw(C, at, 0, 0, flag::SYN).lost();
    }
    let capture = s.capture(Point::Client);
    let span = (0, 15_000_000_000);
    Case::new(name, THEME, "client", capture)
        .stall(
            setup(
                span,
                "No SYN is ever answered: a firewall drops them, or nobody is there.",
            )
            .optional(),
        )
        .readme(&[
            "Five SYNs within 15 seconds, and no answer at all.",
            "The waits double: 1, 2, 4, 8 seconds.",
            "A closed port would answer with RST at once.",
        ])
}

fn refused() -> Case {
    let name = "setup-look-alike-refused-and-tried-again";
    let mut s = Script::new(seed(name), 30.0);
    // Windows tries a refused port again each half second.
    for at in [0.0, 530.0, 1060.0] {
        s.raw(C, at, 0, 0, flag::SYN);
        s.raw(S, at + 15.05, 0, 0, flag::RST | flag::ACK);
    }
    Case::new(name, THEME, "client", s.capture(Point::Client))
        .why("Each SYN is refused within a round trip; the client tries again by itself. There is no connection that could stall.")
        .readme(&[
            "A client asks for a closed port. Each SYN is answered by RST within 30 ms; as Windows does, it tries again after half a second.",
            "The SYN repeats as if it had been lost, but an answer is there each time.",
            "Nothing waits for the network.",
        ])
}

fn long_path() -> Case {
    let name = "setup-look-alike-satellite";
    let sim = Sim::new(seed(name), 620).turns(&[(0, 300, 3, 5_000)]);
    Case::new(name, THEME, "client", sim.capture(Point::Client))
        .why("The path's round trip is 620 ms, in the handshake and in each exchange behind it. Nothing waited longer than the path takes.")
        .readme(&[
            "A path over a satellite: 620 ms there and back. One request, one answer, within the first congestion window.",
            "Handshake, request and answer each take one round trip, and all of them are alike.",
            "A late answer to the SYN has the same first round trip, and short ones later on.",
        ])
}

/// The server's greeting comes three seconds late.
fn late_banner() -> Case {
    let name = "setup-late-greeting-of-a-mail-server";
    let mut s = Script::new(seed(name), 20.0);
    s.ids.ports[1] = 25;
    let t = s.open(0.0);
    let t = s.burst(S, t + 3000.0, 1, 62);
    let t = s.burst(C, t + 2.0, 1, 24);
    let t = s.burst(S, t + 1.0, 1, 140);
    s.close(C, t + 2.0);
    let capture = s.capture(Point::Client);
    let span = capture.longest();
    Case::new(name, THEME, "client", capture)
        .stall(
            Stall::new(Towards::Client, span, &["response-time", "application"])
                .sides(SENDER)
                .not(&["connection-setup", "ack-loss", "silent-path", "pmtu-black-hole", "rto-tail", "delay-spike", "receiver-window-closed"])
                .why("The mail server speaks first, and looks up the client's name for three seconds before it does. The handshake had taken one round trip."),
        )
        .readme(&[
            "A mail server waits for a lookup of the client's name before it sends its greeting, 3 s after the handshake.",
            "The handshake itself is quick. In this protocol the server speaks first, so the client has nothing to say.",
            "A capture cannot know the protocol but for the port; a client that takes its time looks the same until the first packet comes, and that is the server's.",
        ])
}

fn slow_client() -> Case {
    let name = "setup-look-alike-client-asks-late";
    let mut s = Script::new(seed(name), 20.0);
    let t = s.open(0.0);
    let t = s.burst(C, t + 2600.0, 1, 330);
    let full = s.full();
    let t = s.burst(S, t + 1.0, 5, full);
    s.close(C, t + 2.0);
    Case::new(name, THEME, "client", s.capture(Point::Client))
        .why("A browser opened the connection before it needed it (preconnect) and asked 2.6 s later. Nobody waited.")
        .readme(&[
            "A browser opens a connection in advance. Its first request comes 2.6 s later and is answered within a round trip.",
            "The handshake is complete within a round trip, with its third packet.",
            "It looks like a late setup if one counts from the SYN to the first data.",
        ])
}

fn flood() -> Case {
    let name = "setup-look-alike-syn-flood";
    let mut all = None;
    for n in 0..60_u16 {
        let mut s = Script::new(seed(name) + u64::from(n), 10.0);
        s.ids = names(seed(name) + u64::from(n));
        s.ids.addresses[0] = [203, 0, 113, n as u8 + 1];
        let at = 40.0 + 3.1 * f64::from(n);
        s.raw(C, at, 0, 0, flag::SYN).window(512);
        s.raw(S, at + 5.05, 0, 0, flag::SYN | flag::ACK);
        let capture = s.capture(Point::Server);
        all = Some(match all {
            None => capture,
            Some(before) => crate::record::Capture::merge(before, capture),
        });
    }
    let empty = Script::new(0, 1.0).capture(Point::Server);
    Case::new(name, THEME, "server", all.unwrap_or(empty))
        .why("Sixty SYNs of forged addresses, each answered at once and never completed. There is no transfer.")
        .readme(&[
            "A flood: sixty SYNs within 0.2 s from as many addresses. The server answers each; no third packet comes.",
            "Handshakes without an end are no stalled transfers.",
            "An analyser should get through it and report nothing.",
        ])
}
