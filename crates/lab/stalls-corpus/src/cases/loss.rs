// SPDX-License-Identifier: MIT OR Apache-2.0
//! Losses and their origins.

use tcp_stacks::profile::{Profile, Recovery};
use tcp_stacks::world::Point;

use crate::case::{Case, Stall, Towards};
use crate::ends::{C, S, at, seed};
use crate::script::Script;
use crate::sim::Sim;

const THEME: &str = "loss";
const NOT: &[&str] = &[
    "application",
    "response-time",
    "receiver-window-closed",
    "receiver-window-small",
    "send-buffer",
    "pmtu-black-hole",
    "delayed-ack",
    "ack-loss",
    "reordering",
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for place in ["sender", "receiver"] {
        cases.push(policer(place));
        cases.push(queue("short-buffer", 6_000, place));
    }
    cases.extend([
        queue("full-queue", 36_000, "sender"),
        policer_timeout(),
        queue_timeout(),
        random("linux", Profile::linux()),
        random("freebsd", Profile::freebsd()),
        random("reno", Profile::reno()),
        host_queue("sender"),
        host_queue("receiver"),
        single(),
        single_without_sack(),
        slow_path(),
    ]);
    cases
}

fn slow(span: (u64, u64), causes: &[&'static str], not: &[&'static str], why: &str) -> Stall {
    let mut all = NOT.to_vec();
    all.extend(not);
    Stall::new(Towards::Client, span, causes)
        .sides(&["network", "unknown", "sender"])
        .not(&all)
        .why(why)
}

fn policer(place: &'static str) -> Case {
    let name = format!("loss-policer-{place}");
    let sim = Sim::new(seed(&name), 40)
        .path(S, |n| n.policer = Some((3_000_000, 18_000)))
        .download(&[(0, 90_000)]);
    let capture = sim.capture(at(S, place));
    let whole = capture.whole(S);
    Case::new(&name, THEME, place, capture)
        .stall(slow(
            whole,
            &["policer", "rto-lost-retransmission", "recovery-cwnd-pinned", "rto-tail", "tail-loss-probe", "rto-few-dupacks", "rto-other", "slow-growth"],
            &["silent-path", "delay-spike"],
            "A policer of 3 Mbit/s with a bucket of 18 KB drops what comes too fast. The round trip does not grow before the losses: there is no queue.",
        ).optional())
        .partial()
        .readme(&[
            "A policer lets 18 KB pass at once and then 3 Mbit/s. It drops what is above, several segments in a row, repairs among them.",
            "The round trip of what passes stays at 40 ms right up to a loss: no queue fills.",
            "A full queue drops too, but its round trips grow before. Random loss does not depend on the rate.",
        ])
}

/// A policer that drops a repair, too, before a stack that needs a timeout then.
fn policer_timeout() -> Case {
    let name = "loss-policer-drops-the-repair-sender";
    let sim = Sim::new(seed(name), 40)
        .stack(S, |p| *p = Profile::freebsd())
        .path(S, |n| n.policer = Some((1_200_000, 9_000)))
        .download(&[(0, 70_000)]);
    let capture = sim.capture(Point::Server);
    let gaps = capture.gaps(150);
    Case::new(name, THEME, "sender", capture)
        .stalls(&gaps, |span| {
            slow(
                span,
                &["rto-lost-retransmission", "policer"],
                &["rto-tail", "rto-few-dupacks", "silent-path", "delay-spike", "tail-loss-probe"],
                "The policer dropped a segment and its fast retransmission; everything behind it was reported by SACK, and only the timeout sent it again.",
            )
        })
        .partial()
        .readme(&[
            "A policer of 1.2 Mbit/s drops twelve segments of a burst, and the first repair as well.",
            "SACK blocks cover all that was sent behind it; the acknowledgement number does not move for four round trips, then nothing until the timeout.",
            "A sender with RACK would have found the second loss within a round trip.",
        ])
}

/// Several losses in a window, and a sender that leaves fast recovery too early (RFC 2581).
fn queue_timeout() -> Case {
    let name = "loss-short-buffer-reno-needs-a-timeout-sender";
    let sim = Sim::new(seed(name), 30)
        .stack(S, |p| {
            *p = Profile {
                initial_window: 10,
                receive_bytes: 65_535,
                send_bytes: 65_535,
                ..Profile::reno()
            };
        })
        .path(S, |n| {
            n.rate_bps = 4_000_000;
            n.queue_bytes = 6_000;
        })
        .download(&[(0, 50_000)]);
    let capture = sim.capture(Point::Server);
    let gaps = capture.gaps(150);
    Case::new(name, THEME, "sender", capture)
        .stalls(&gaps, |span| {
            slow(
                span,
                &["rto-few-dupacks", "rto-other", "congestion"],
                &["rto-tail", "rto-lost-retransmission", "silent-path", "delay-spike", "tail-loss-probe"],
                "A short queue dropped several segments of one window. Reno repairs the first and leaves its recovery; behind the second hole only one duplicate acknowledgement came.",
            )
        })
        .partial()
        .readme(&[
            "Several segments of one window are lost at a full queue. The sender knows Reno's fast recovery alone: it repairs one loss of a window.",
            "After the first repair the acknowledgement number moves to the next hole and is repeated once. The timeout of more than a second follows.",
            "NewReno would have repaired the next hole at once (RFC 6582).",
        ])
}

fn queue(kind: &'static str, bytes: u64, place: &'static str) -> Case {
    let name = format!("loss-{kind}-{place}");
    let sim = Sim::new(seed(&name), 30)
        .path(S, |n| {
            n.rate_bps = 4_000_000;
            n.queue_bytes = bytes;
        })
        .download(&[(0, if bytes > 20_000 { 150_000 } else { 90_000 })]);
    let capture = sim.capture(at(S, place));
    let whole = capture.whole(S);
    let (causes, not, why): (&[&str], &[&str], &str) = if bytes > 20_000 {
        (
            &[
                "congestion",
                "recovery-cwnd-pinned",
                "rto-tail",
                "tail-loss-probe",
                "rto-lost-retransmission",
                "rto-other",
                "slow-growth",
                "rto-few-dupacks",
            ],
            &["path-loss", "silent-path", "policer"],
            "The queue of 36 KB before a line of 4 Mbit/s fills up: round trips grow from 30 ms to about 100 ms, then it drops.",
        )
    } else {
        (
            &[
                "congestion",
                "policer",
                "path-loss",
                "recovery-cwnd-pinned",
                "rto-tail",
                "tail-loss-probe",
                "rto-lost-retransmission",
                "rto-other",
                "slow-growth",
                "rto-few-dupacks",
            ],
            &["silent-path"],
            "The queue before a line of 4 Mbit/s holds four segments: each burst of a window overflows it, with hardly any growth of the round trip.",
        )
    };
    Case::new(&name, THEME, place, capture)
        .stall(slow(whole, causes, not, why).optional())
        .partial()
        .readme(&[
            &format!("A line of 4 Mbit/s with room for {bytes} bytes in its queue."),
            "Segments leave the line 3 ms apart. Losses come when the queue is full.",
            "Whether round trips grow before a loss tells a queue from a policer and from random loss; a very short queue hardly differs from a policer.",
        ])
}

fn random(kind: &'static str, server: Profile) -> Case {
    let name = format!("loss-random-{kind}");
    let sim = Sim::new(seed(&name), 30)
        .stack(S, |p| *p = server.clone())
        .path(S, |n| n.loss_ppm = 45_000)
        .download(&[(0, 100_000)]);
    let capture = sim.capture(Point::Server);
    let whole = capture.whole(S);
    // Two duplicate acknowledgements each: one too few.
    let waits = if kind == "reno" {
        capture.gaps(1000)
    } else {
        Vec::new()
    };
    Case::new(&name, THEME, "sender", capture)
        .stalls(&waits, |span| {
            slow(
                span,
                &["rto-few-dupacks", "path-loss"],
                &["rto-tail", "rto-lost-retransmission", "silent-path", "delay-spike", "congestion", "policer"],
                "Two duplicate acknowledgements came behind the loss, one too few for a repair without SACK: the timeout of more than a second repaired it.",
            )
        })
        .stall(slow(
            whole,
            &["path-loss", "recovery-cwnd-pinned", "rto-tail", "tail-loss-probe", "rto-lost-retransmission", "rto-few-dupacks", "rto-other", "slow-growth"],
            &["silent-path", "delay-spike", "policer"],
            "Errors drop 4.5 % of the segments by chance, whatever the rate. Round trips do not grow.",
        ).optional())
        .partial()
        .readme(&[
            "A link drops 4.5 % of the server's packets by chance.",
            "Single segments are missing at any rate; the round trips before a loss are the shortest there are.",
            "A policer drops above a rate, a queue when it is full.",
        ])
}

/// A burst of TSO segments overflows the sending host's own queue.
fn host_queue(place: &'static str) -> Case {
    let name = format!("loss-burst-dropped-in-the-senders-host-{place}");
    let mut s = Script::new(seed(&name), 20.0);
    let t = s.warm() + 0.4;
    let full = s.full();
    let first = s.next(S);
    // The capture sees what the driver gets, before the queue of the card drops the end.
    for n in 0..20_u32 {
        let send = s.data(S, t + 0.001 * f64::from(n), full);
        if n >= 12 {
            send.lost();
        }
    }
    for n in 0..6 {
        s.ack(C, t + 10.05 + 0.24 * f64::from(n));
    }
    let probe = t + 43.0;
    let last = first + full * 19;
    s.again(S, probe, last, full);
    s.ack(C, probe + 10.03);
    let mut at_ms = probe + 20.1;
    for n in 12..19_u32 {
        s.again(S, at_ms, first + full * u64::from(n), full);
        s.ack(C, at_ms + 10.03);
        at_ms += if n % 2 == 0 { 20.1 } else { 0.12 };
    }
    let t = s.bulk(S, at_ms + 21.0, &[4, 4]);
    s.close(S, t + 1.0);
    let capture = s.capture(at(S, place));
    let span = (
        capture.records[capture.data(S, if place == "sender" { 29 } else { 21 })].time_ns,
        crate::script::nanos(at_ms),
    );
    Case::new(&name, THEME, place, capture)
        .stall(slow(
            span,
            &["tail-loss-probe", "recovery-cwnd-pinned", "rto-tail", "congestion", "path-loss", "policer"],
            &["silent-path", "delay-spike"],
            "The last eight segments of a burst were dropped by the sending host's own queue; a tail loss probe found out, and the repair took a few round trips.",
        ).optional())
        .partial()
        .readme(&[
            "A sender hands 20 segments to its card within 20 microseconds; its own queue holds twelve. The capture on that host sees all of them.",
            "The receiver acknowledges twelve. A tail loss probe brings the news of the other eight.",
            "From the capture alone the loss could be anywhere on the path; only the shape, the end of a burst at line rate, speaks for a queue close to the sender.",
        ])
}

fn single() -> Case {
    let name = "loss-look-alike-single-repaired-at-once";
    let sim = Sim::new(seed(name), 30)
        .path(S, |n| n.drop_data = vec![14])
        .download(&[(0, 60_000)]);
    Case::new(name, THEME, "sender", sim.capture(Point::Server))
        .why("One segment is lost and repaired by SACK one round trip later; the transfer goes on meanwhile.")
        .readme(&[
            "A single loss in the middle of a window.",
            "Three SACK blocks later the sender repairs it; there is no silence.",
            "A loss is no stall.",
        ])
}

fn single_without_sack() -> Case {
    let name = "loss-look-alike-single-newreno";
    let sim = Sim::new(seed(name), 30)
        .both(|p| {
            p.sack = false;
            p.recovery = Recovery::NewReno;
        })
        .path(S, |n| n.drop_data = vec![14])
        .download(&[(0, 60_000)]);
    Case::new(name, THEME, "receiver", sim.capture(Point::Client))
        .why("One segment is lost and repaired by three duplicate acknowledgements.")
        .readme(&[
            "A single loss, without SACK; the capture is the receiver's.",
            "The duplicate acknowledgements and the repair are there within a round trip.",
            "No timer fires.",
        ])
}

fn slow_path() -> Case {
    let name = "loss-look-alike-slow-line-deep-queue";
    let mut sim = Sim::new(seed(name), 30).download(&[(0, 90_000)]);
    sim.paths[1].rate_bps = 1_000_000;
    Case::new(name, THEME, "sender", sim.capture(Point::Server))
        .why("A line of 1 Mbit/s with a deep queue: nothing is lost, everything goes on at the line's rate.")
        .readme(&[
            "A download over 1 Mbit/s. The queue takes all that the window allows.",
            "Acknowledgements come 24 ms apart without a break; round trips grow to half a second and nothing is lost.",
            "Long round trips look like a delay spike; here they grow evenly with what is in flight.",
        ])
}
