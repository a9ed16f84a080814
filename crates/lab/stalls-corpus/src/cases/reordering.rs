// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that overtake each other.

use tcp_stacks::profile::{MS, Profile, Recovery};
use tcp_stacks::world::Point;

use crate::case::{Case, Stall, Towards};
use crate::ends::{C, NETWORK, S, at, seed};
use crate::script::Script;
use crate::sim::Sim;

const THEME: &str = "reordering";

pub(super) fn cases() -> Vec<Case> {
    vec![
        needless("sender", true),
        needless("receiver", true),
        needless("sender", false),
        collapses("sender"),
        collapses("receiver"),
        harmless(),
        then_idle(true),
        then_idle(false),
        acks_overtake(),
    ]
}

/// Packets are overtaken by far more than three others: each time a needless repair.
fn needless(place: &'static str, stamps: bool) -> Case {
    let suffix = if stamps { "" } else { "-no-timestamps" };
    let name = format!("reordering-needless-repairs-{place}{suffix}");
    let mut s = Script::new(seed(&name), 30.0);
    if !stamps {
        s = s.no_timestamps();
    }
    let mut t = s.warm() + 0.4;
    let full = s.full();
    let begin = t;
    for _ in 0..4 {
        let first = s.next(S);
        s.data(S, t, full).late(4.0);
        for n in 1..10_u32 {
            s.data(S, t + 0.12 * f64::from(n), full);
            s.ack(C, t + 0.12 * f64::from(n) + 15.03);
        }
        s.again(S, t + 30.5, first, full);
        s.ack(C, t + 19.03);
        s.ack(C, t + 45.53).sack(&[(first, first + full)]);
        t += 46.0 + 15.0;
    }
    s.close(S, t);
    let capture = s.capture(at(S, place));
    let span = (crate::script::nanos(begin), crate::script::nanos(t - 15.0));
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Client, span, &["reordering"])
                .sides(NETWORK)
                .not(&["path-loss", "congestion", "policer", "rto-tail", "rto-few-dupacks", "rto-lost-retransmission", "application", "response-time", "receiver-window-closed", "pmtu-black-hole", "delay-spike", "silent-path"])
                .why("Nothing was lost: one segment of each flight arrived 4 ms late, and the sender took it for lost. Each copy was answered by a D-SACK, and the congestion window was halved for nothing.")
                .optional(),
        )
        .partial()
        .readme(&[
            "One segment of each flight takes another path and arrives 4 ms later than the nine behind it.",
            "The sender gets SACK blocks for nine segments and repairs at once; then the hole closes by itself, and the copy is reported as a duplicate (D-SACK).",
            "A real loss has the same SACK blocks; there the copy fills the hole, and no D-SACK comes.",
        ])
}

/// The same on an older stack, which slows down for it.
fn collapses(place: &'static str) -> Case {
    let name = format!("reordering-newreno-slows-down-{place}");
    let sim = Sim::new(seed(&name), 30)
        .both(|p| {
            p.sack = false;
            p.recovery = Recovery::NewReno;
        })
        .path(S, |n| {
            n.reorder_ppm = 60_000;
            n.reorder_ns = 5 * MS;
        })
        .download(&[(0, 110_000)]);
    let capture = sim.capture(at(S, place));
    let span = capture.whole(S);
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Client, span, &["reordering", "slow-growth"])
                .sides(&["network", "sender", "unknown"])
                .not(&["policer", "congestion", "application", "response-time", "receiver-window-closed", "pmtu-black-hole", "silent-path", "rto-storm", "rto-lost-retransmission"])
                .why("Packets are overtaken by 5 ms, none is lost; a sender without SACK halves its window each time three duplicate acknowledgements come.")
                .optional(),
        )
        .partial()
        .readme(&[
            "One packet in seventeen is overtaken by 5 ms. The sender has no SACK and repairs at three duplicate acknowledgements.",
            "The receiver has all copies twice; each original arrives before its copy.",
            "At the sender the acknowledgement that ends the duplicates comes sooner than a round trip behind the copy: it cannot be the copy's.",
        ])
}

fn harmless() -> Case {
    let name = "reordering-look-alike-without-any-repair";
    let mut s = Script::new(seed(name), 30.0);
    let mut t = s.warm() + 0.4;
    let full = s.full();
    for _ in 0..4 {
        for n in 0..8_u32 {
            let late = if n == 3 { 0.15 } else { 0.0 };
            s.data(S, t + 0.12 * f64::from(n), full).late(late);
            let extra = if n == 3 { 0.16 } else { 0.0 };
            if n % 2 == 1 || n == 4 {
                s.ack(C, t + 0.12 * f64::from(n) + 15.02 + extra);
            }
        }
        t += 31.5;
    }
    s.close(S, t);
    Case::new(name, THEME, "receiver", s.capture(Point::Client))
        .why("Neighbours change places and are back in order 0.15 ms later. One duplicate acknowledgement comes, no repair, no wait.")
        .readme(&[
            "Two neighbouring segments of each flight change places on the path.",
            "The receiver sends one duplicate acknowledgement with a SACK block and then goes on; the sender repairs nothing.",
            "Reordering alone is no stall.",
        ])
}

/// Reordering at the end of an answer, then a person thinks.
fn then_idle(by_path: bool) -> Case {
    let name = if by_path {
        "reordering-look-alike-then-idle"
    } else {
        "reordering-look-alike-late-last-segment-then-idle"
    };
    let mut s = Script::new(seed(name), 30.0);
    let t = s.open(0.0);
    let t = s.burst(C, t + 0.2, 1, 250);
    let full = s.full();
    for n in 0..6_u32 {
        let late = match (by_path, n) {
            (true, 4) => 0.3,
            (false, 5) => 22.0,
            _ => 0.0,
        };
        s.data(S, t + 1.0 + 0.12 * f64::from(n), full).late(late);
    }
    for n in [1, 3] {
        s.ack(C, t + 16.03 + 0.12 * f64::from(n));
    }
    if by_path {
        s.ack(C, t + 16.65);
        s.ack(C, t + 16.83);
    } else {
        s.ack(C, t + 38.7);
    }
    let ask = t + 4_100.0;
    let t = s.burst(C, ask, 1, 260);
    let t = s.burst(S, t + 2.0, 4, full);
    s.close(C, t + 2.0);
    Case::new(name, THEME, "server", s.capture(Point::Server))
        .why("The end of an answer arrives out of order or late, without any repair; the four seconds behind it are a person's: a request ends them.")
        .readme(&[
            "The last segments of an answer are overtaken on the path. Nothing is repaired. A person reads for 4 s.",
            "Everything is acknowledged before the silence, within 40 ms, and a request ends it.",
            "A duplicate acknowledgement before a silence looks like a loss that only a timeout repaired; but no retransmission comes.",
        ])
}

/// Acknowledgements overtake each other: old ones arrive late.
fn acks_overtake() -> Case {
    let name = "reordering-look-alike-old-acknowledgements";
    let sim = Sim::new(seed(name), 30)
        .stacks(Profile::linux(), Profile::linux())
        .path(C, |n| {
            n.reorder_ppm = 250_000;
            n.reorder_ns = 2 * MS;
        })
        .download(&[(0, 90_000)]);
    Case::new(name, THEME, "sender", sim.capture(Point::Server))
        .why("Acknowledgements overtake each other; the old ones that come late say nothing new. The transfer goes on.")
        .readme(&[
            "One acknowledgement in four is overtaken on the way back.",
            "The acknowledgement number falls and rises again in the sender's capture; the sender ignores old ones.",
            "An acknowledgement that repeats an old number is no duplicate that reports a loss.",
        ])
}
