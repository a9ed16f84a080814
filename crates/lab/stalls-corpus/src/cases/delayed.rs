// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delayed acknowledgements, with Nagle's rule and with windows of one segment.

use tcp_stacks::app::Step;
use tcp_stacks::profile::{MS, Profile};
use tcp_stacks::world::Point;

use crate::case::{Case, Stall, Towards};
use crate::ends::{C, RECEIVER, S, at, seed};
use crate::script::Script;
use crate::sim::Sim;

const THEME: &str = "delayed-acknowledgements";
const NOT: &[&str] = &[
    "application",
    "response-time",
    "ack-loss",
    "rto-tail",
    "rto-other",
    "path-loss",
    "congestion",
    "policer",
    "pmtu-black-hole",
    "silent-path",
    "delay-spike",
    "send-buffer",
    "receiver-window-closed",
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for place in ["sender", "receiver"] {
        cases.push(nagle("200ms", 200, place));
        cases.push(one_segment(place));
    }
    cases.extend([
        nagle("40ms", 40, "sender"),
        nagle("500ms", 500, "sender"),
        first_window(),
        no_delay(),
        last_odd(),
        answers_tail("40ms", 40),
        answers_tail("200ms", 200),
    ]);
    cases
}

/// Requests in two writes: Nagle's rule holds the second until the first is acknowledged.
fn nagle(text: &str, ms: u64, place: &'static str) -> Case {
    let name = format!("delayed-ack-nagle-{text}-{place}");
    let mut sim = Sim::new(seed(&name), 4)
        .stack(C, |p| p.quick_acks = 0)
        .stack(S, |p| {
            p.quick_acks = 0;
            p.ack_delay_ns = ms * MS;
        })
        // A timeout as long as the acknowledgements are late would fire first.
        .stack(C, |p| p.rto_min_ns = 700 * MS)
        .stack(C, |p| p.recovery = tcp_stacks::profile::Recovery::Sack);
    sim.nagle = true;
    for _ in 0..6 {
        sim.steps[0].extend([Step::Write(190), Step::Write(330), Step::Await(900)]);
        sim.steps[1].extend([Step::Await(520), Step::Write(900)]);
    }
    sim.steps[0].extend([Step::Close, Step::AwaitEnd]);
    sim.steps[1].extend([Step::AwaitEnd, Step::Close]);
    let capture = sim.capture(at(C, place));
    let gaps = capture.gaps(30);
    let case = Case::new(&name, THEME, place, capture).stalls(&gaps, |span| {
        let stall = Stall::new(Towards::Server, span, &["delayed-ack"])
            .sides(&["receiver", "sender"])
            .not(NOT)
            .why("The client wrote its request in two pieces. Nagle's rule (RFC 896) held the second one until the first was acknowledged, and the server's TCP delayed that acknowledgement.");
        if ms < 100 { stall.optional() } else { stall }
    });
    case.readme(&[
        &format!("A client writes each request in two pieces, 190 and 330 bytes; the server's TCP delays acknowledgements by {text}."),
        "The second piece leaves right behind the acknowledgement of the first, each time after the same delay; the answer follows at once.",
        "A client whose application pauses between the pieces would not wait for the acknowledgement.",
        "A slow server acknowledges and then lets one wait for its answer.",
    ])
}

/// A window of one segment: each one waits for a delayed acknowledgement.
fn one_segment(place: &'static str) -> Case {
    let name = format!("delayed-ack-window-of-one-segment-{place}");
    let mut s = Script::new(seed(&name), 10.0).no_timestamps();
    s.hosts[0].window = 1_460;
    s.hosts[0].scale = None;
    let t = s.open(0.0);
    let mut t = s.burst(C, t + 0.2, 1, 240);
    for _ in 0..10 {
        s.data(S, t, 1_460);
        s.ack(C, t + 205.0);
        t += 210.1;
    }
    s.close(S, t);
    let capture = s.capture(at(S, place));
    // Nothing waits for the acknowledgement of the last segment.
    let gaps: Vec<_> = capture.gaps(150).into_iter().take(9).collect();
    Case::new(&name, THEME, place, capture)
        .stalls(&gaps, |span| {
            Stall::new(Towards::Client, span, &["delayed-ack", "receiver-window-small"])
                .sides(RECEIVER)
                .not(&["application", "response-time", "ack-loss", "rto-tail", "rto-other", "path-loss", "congestion", "policer", "pmtu-black-hole", "silent-path", "delay-spike", "send-buffer"])
                .why("The window holds one segment, and the receiver acknowledges a single one only after 200 ms.")
        })
        .partial()
        .readme(&[
            "An embedded receiver has room for one segment; its TCP acknowledges every second one at once and a single one after 200 ms.",
            "Each segment is followed by a silence of 200 ms and one acknowledgement.",
            "With room for two segments there would be no silence.",
        ])
}

/// The first congestion window is one segment: the first one waits.
fn first_window() -> Case {
    let name = "delayed-ack-first-window-of-one-segment";
    let sim = Sim::new(seed(name), 12)
        .stack(C, |p| {
            p.quick_acks = 0;
            p.ack_delay_ns = 200 * MS;
        })
        .stack(S, |p| {
            p.initial_window = 1;
            p.rto_min_ns = 700 * MS;
            p.recovery = tcp_stacks::profile::Recovery::Sack;
        })
        .download(&[(0, 40_000)]);
    let capture = sim.capture(Point::Server);
    let span = capture.gaps(150).first().copied().unwrap_or((0, 0));
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Client, span, &["delayed-ack"])
                .sides(&["receiver", "sender"])
                .not(NOT)
                .why("An old stack begins with one segment; the receiver waits for a second one before it acknowledges, until its timer of 200 ms."),
        )
        .partial()
        .readme(&[
            "A server whose first congestion window is one segment (RFC 2001) and a client that delays acknowledgements by 200 ms.",
            "After the first full segment nothing happens for 200 ms; then the acknowledgement comes, and all goes on quickly.",
            "A server's application that pauses behind its first segment would not wait for the acknowledgement.",
        ])
}

/// The short last segment of an answer waits for the acknowledgement of the full ones.
fn answers_tail(text: &str, ms: u64) -> Case {
    let name = format!("delayed-ack-nagle-tail-of-an-answer-{text}");
    let mut sim = Sim::new(seed(&name), 20)
        .stack(C, |p| {
            p.quick_acks = 0;
            p.ack_delay_ns = ms * MS;
        })
        .stack(S, |p| {
            p.rto_min_ns = 700 * MS;
            p.recovery = tcp_stacks::profile::Recovery::Sack;
        })
        .turns(&[(0, 300, 4, 5 * 1448 + 400), (2_000, 300, 4, 7 * 1448 + 300)]);
    sim.nagle = true;
    let capture = sim.capture(Point::Server);
    // The acknowledgement of the tail itself is late too, and nothing waits for that one.
    let mut gaps = capture.gaps(ms);
    gaps.retain(|gap| {
        let tail = |time_ns: u64| (gap.1..gap.1 + MS).contains(&time_ns);
        let mut data = capture.records.iter().filter(|r| r.is_of(S) && r.is_data());
        gap.1 - gap.0 < 1000 * MS && data.any(|r| tail(r.time_ns))
    });
    Case::new(&name, THEME, "sender", capture)
        .stalls(&gaps, |span| {
            let stall = Stall::new(Towards::Client, span, &["delayed-ack"])
                .sides(&["receiver", "sender"])
                .not(NOT)
                .why("An odd number of full segments is under way; Nagle's rule holds the short last one until they are acknowledged, and the client delays the acknowledgement of the odd one.");
            if ms < 100 { stall.optional() } else { stall }
        })
        .readme(&[
            &format!("A server with Nagle's rule writes answers of an odd number of full segments and a short one; the client delays acknowledgements by {text}."),
            "The short segment leaves right behind the delayed acknowledgement. A person thinks for two seconds between the answers: that is no stall.",
            "A server whose application pauses before the end of its answer would not wait for the acknowledgement.",
        ])
}

fn no_delay() -> Case {
    let name = "delayed-ack-look-alike-all-sent-already";
    let sim = Sim::new(seed(name), 10)
        .both(|p| {
            p.quick_acks = 0;
            p.ack_delay_ns = 200 * MS;
        })
        .turns(&[(0, 400, 3, 700), (450, 400, 3, 700), (520, 400, 4, 700)]);
    Case::new(name, THEME, "client", sim.capture(Point::Client))
        .why("The last segment of each answer is acknowledged 200 ms late, but nobody waits for that acknowledgement: the server has no more to send, and the client thinks for half a second.")
        .readme(&[
            "The client's delayed acknowledgement of each answer leaves after 200 ms. Then the client asks again by itself, half a second behind the answer.",
            "A delayed acknowledgement hurts only if something waits for it. Here nothing does.",
            "The acknowledgement is late, the data is not.",
        ])
}

/// An answer with an odd number of segments: its last acknowledgement is late and does not matter.
fn last_odd() -> Case {
    let name = "delayed-ack-look-alike-odd-last-segment";
    let sim = Sim::new(seed(name), 10)
        .stacks(Profile::linux(), Profile::windows())
        .stack(C, |p| {
            p.quick_acks = 0;
            p.ack_delay_ns = 100 * MS;
        })
        .turns(&[(0, 400, 3, 7 * 1460), (600, 300, 3, 7 * 1460)]);
    Case::new(name, THEME, "server", sim.capture(Point::Server))
        .why("Seven segments: the last one is acknowledged after 100 ms by the timer. It was the last, so nothing waited; the client asked again when it wanted to.")
        .readme(&[
            "Answers of seven segments; the acknowledgement of the seventh is delayed by 100 ms.",
            "The server has nothing more to send. The next request comes 0.6 s later by itself.",
            "The same delay in the middle of a transfer would be a stall.",
        ])
}
