// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures whose clock is wrong.

use tcp_stacks::profile::Profile;
use tcp_stacks::world::Point;

use crate::case::{Case, Stall, Towards};
use crate::ends::{C, S, seed};
use crate::record::Capture;
use crate::script::Script;
use crate::sim::Sim;

const THEME: &str = "capture-clock";
const SECOND: u64 = 1_000_000_000;

pub(super) fn cases() -> Vec<Case> {
    vec![
        one_far_away(),
        first_far_away(),
        set_back(),
        jump(true),
        jump(false),
        coarse(16_000_000, "16ms"),
        coarse(SECOND, "1s"),
        swapped_with_ack(),
        swapped_data(),
        swapped_handshake(),
        swapped_before_idle(),
        all_the_same(),
        slow_drift(),
        jump_while_idle(),
    ]
}

/// A download without trouble: 30 segments.
fn steady(name: &str) -> Sim {
    Sim::new(seed(name), 24).download(&[(0, 43_440)])
}

fn clean(name: &str, capture: Capture, why: &str, readme: &[&str]) -> Case {
    Case::new(name, THEME, "sender", capture)
        .why(why)
        .readme(readme)
}

fn one_far_away() -> Case {
    let name = "clock-one-packet-in-2063";
    let capture = steady(name).capture(Point::Server).edit(|index, r| {
        if index == 24 {
            r.time_ns += 37 * 365 * 86_400 * SECOND;
        }
    });
    clean(
        name,
        capture,
        "One record has a time 37 years ahead; its neighbours are in order and 0.1 ms apart. The transfer went on.",
        &[
            "A capture of a transfer without trouble. One record in its middle is dated 2063.",
            "The records before and behind it are a tenth of a millisecond apart, and the hosts' own timestamps go on evenly.",
            "By the times alone the transfer stalls for 37 years.",
        ],
    )
}

fn first_far_away() -> Case {
    let name = "clock-first-packet-in-1970";
    let mut capture = steady(name).capture(Point::Server);
    for record in capture.records.iter_mut().skip(1) {
        record.time_ns += 50 * 365 * 86_400 * SECOND;
    }
    clean(
        name,
        capture,
        "The first record's time is decades before the others': the clock of the capture was set behind it.",
        &[
            "A router captures while it boots: the first record has its clock's start, the second one the time from NTP.",
            "The SYN-ACK stands right behind the SYN, and echoes its timestamp.",
            "By the times alone the handshake took half a century.",
        ],
    )
}

fn set_back() -> Case {
    let name = "clock-set-back-an-hour";
    let capture = steady(name).capture(Point::Server).edit(|index, r| {
        r.time_ns += if index < 28 { 3600 * SECOND } else { 0 };
    });
    clean(
        name,
        capture,
        "The capture's clock was set back by an hour in the middle of a transfer that went on.",
        &[
            "In the middle of a transfer the time of the records falls by an hour.",
            "The order of the file, the sequence numbers and the hosts' timestamps go on without a break.",
            "Whoever sorts by time puts the second half before the handshake.",
        ],
    )
}

/// The clock of the capture jumps by 30 s; the hosts' clocks do not.
fn jump(stamps: bool) -> Case {
    let name = if stamps {
        "clock-jump-forward-with-timestamps"
    } else {
        "clock-jump-forward-no-timestamps"
    };
    let mut sim = steady(name);
    if !stamps {
        sim = sim.stacks(Profile::windows(), Profile::windows());
    }
    let capture = sim.capture(Point::Server).edit(|index, r| {
        r.time_ns += if index < 28 { 0 } else { 30 * SECOND };
    });
    if stamps {
        return clean(
            name,
            capture,
            "The capture's clock jumps by 30 s. The timestamps of both hosts advance by a millisecond at that place.",
            &[
                "The clock of the capturing host jumps ahead by 30 s in the middle of a transfer.",
                "The TCP timestamps of both hosts, ticks of a millisecond, advance by one or two across the jump: for the hosts no time passed.",
                "Without the hosts' timestamps it would look as if both ends stood still for half a minute.",
            ],
        );
    }
    let span = capture.longest();
    let stall = Stall::new(Towards::Client, span, &["unknown", "delay-spike", "silent-path", "application"])
        .sides(&["unknown", "network", "sender"])
        .not(&["ack-loss", "rto-tail", "path-loss", "congestion", "policer", "pmtu-black-hole", "receiver-window-closed", "rto-storm"])
        .why("The capture's clock jumps by 30 s. Nothing in the packets proves it, but data was in flight and no timeout fired: a sender would have retransmitted within a second.")
        .optional();
    Case::new(name, THEME, "sender", capture).stall(stall).readme(&[
        "The clock of the capturing host jumps ahead by 30 s. The hosts use no timestamps.",
        "Data is in flight across the jump and is acknowledged behind it without any retransmission. A timeout of 30 s is not what any TCP has at that point.",
        "Certainty is not possible here; a confident answer is wrong.",
    ])
}

fn jump_while_idle() -> Case {
    let name = "clock-jump-between-data-and-acknowledgement";
    let mut s = Script::new(seed(name), 24.0);
    let t = s.warm() + 0.3;
    let full = s.full();
    s.data(S, t, full);
    s.data(S, t + 0.12, full);
    s.ack(C, t + 12.15);
    let t = s.bulk(S, t + 24.4, &[4, 4]);
    s.close(S, t + 1.0);
    let mut capture = s.capture(Point::Server);
    let at = capture.data(S, 11) + 1;
    for record in capture.records.iter_mut().skip(at) {
        record.time_ns += 2 * SECOND;
    }
    clean(
        name,
        capture,
        "The capture's clock jumps by 2 s between a segment and its acknowledgement, whose echoed timestamps say that 24 ms passed.",
        &[
            "The clock of the capture jumps by 2 s while one flight waits for its acknowledgement.",
            "The acknowledgement echoes the flight's timestamp, and the next segment's own timestamp is 24 ms later: the hosts saw no pause. A sender would have retransmitted after 0.23 s.",
            "It looks like a delay spike or a delayed acknowledgement.",
        ],
    )
}

fn coarse(tick_ns: u64, text: &str) -> Case {
    let name = format!("clock-coarse-{text}");
    let mut sim = steady(&name);
    sim.paths[1].rate_bps = 800_000;
    let sim = sim.download(&[(0, 120_000)]);
    let capture = sim
        .capture(Point::Client)
        .edit(|_, r| r.time_ns = r.time_ns / tick_ns * tick_ns);
    Case::new(&name, THEME, "receiver", capture)
        .why("The times of the records are rounded; the transfer is even, at the rate of its path.")
        .readme(&[
            &format!(
                "A steady transfer at 0.8 Mbit/s whose records have times rounded down to {text}."
            ),
            "Many records share a time, and then the clock ticks. The hosts' timestamps are even.",
            "A tick looks like a silence that ends with a burst.",
        ])
}

/// Exchanges the places of two records, with times a few microseconds apart.
fn swap(capture: &mut Capture, at: usize) {
    if at + 1 < capture.records.len() {
        let (first, second) = (capture.records[at].time_ns, capture.records[at + 1].time_ns);
        capture.records.swap(at, at + 1);
        capture.records[at].time_ns = first;
        capture.records[at + 1].time_ns = first.max(second.min(first + 4_000));
    }
}

fn swapped_with_ack() -> Case {
    let name = "clock-swap-acknowledgement-before-its-data";
    let mut capture = steady(name).capture(Point::Client);
    let place = capture.records.windows(2).position(|p| {
        p[0].is_of(S) && p[0].is_data() && p[1].is_of(C) && p[0].time_ns > 60_000_000
    });
    swap(&mut capture, place.unwrap_or(0));
    Case::new(name, THEME, "receiver", capture)
        .why("Two records were swapped by the capture (one queue of the network card for each direction). The transfer has no trouble.")
        .readme(&[
            "The receiver's capture has an acknowledgement 4 microseconds before the segment that it acknowledges: each direction has its own queue.",
            "No host can acknowledge what it has not received; the file's order is wrong there, not the network.",
            "It looks like a packet that the capture lost, or like a garbage acknowledgement.",
        ])
}

fn swapped_data() -> Case {
    let name = "clock-swap-data-segments";
    let mut capture = steady(name).capture(Point::Server);
    for number in [9, 15, 21] {
        let at = capture.data(S, number);
        if capture.records[at + 1].is_of(S) {
            swap(&mut capture, at);
        }
    }
    Case::new(name, THEME, "sender", capture)
        .why("Neighbouring segments are swapped in the file by microseconds. No duplicate acknowledgement and no retransmission follows: on the wire they were in order.")
        .readme(&[
            "The sender's capture has neighbouring segments in the wrong order in some places, microseconds apart (several queues of a card).",
            "The IP identifications tell the order in which they were sent. The receiver sent no duplicate acknowledgement.",
            "Reordering on the path would make the receiver answer with duplicate acknowledgements or SACK blocks.",
        ])
}

fn swapped_handshake() -> Case {
    let name = "clock-swap-syn-ack-before-syn";
    let mut capture = steady(name).capture(Point::Server);
    swap(&mut capture, 0);
    Case::new(name, THEME, "sender", capture)
        .why("The answer to the SYN stands before the SYN in the file. The transfer has no trouble.")
        .readme(&[
            "The server's capture has its SYN-ACK 4 microseconds before the SYN.",
            "The SYN-ACK acknowledges that SYN and echoes its timestamp.",
            "Whoever takes the first packet's sender for the client names the ends the wrong way round.",
        ])
}

fn swapped_before_idle() -> Case {
    let name = "clock-swap-before-a-person-thinks";
    let sim = Sim::new(seed(name), 24).turns(&[(0, 300, 3, 14_480), (3_300, 280, 4, 9_000)]);
    let mut capture = sim.capture(Point::Server);
    let last = capture.data(S, 8);
    swap(&mut capture, last);
    Case::new(name, THEME, "server", capture)
        .why("The last segments before a person's pause are swapped in the file. All was acknowledged within a round trip; a request ends the pause.")
        .readme(&[
            "The last two segments of an answer are swapped by microseconds at the capture; then a person reads for 3.3 s.",
            "Everything is acknowledged within a round trip, and nothing is retransmitted.",
            "Reordering before a silence looks like a loss at the tail.",
        ])
}

fn all_the_same() -> Case {
    let name = "clock-all-records-have-one-time";
    let capture = steady(name)
        .capture(Point::Server)
        .edit(|_, r| r.time_ns = 0);
    clean(
        name,
        capture,
        "All records have the same time: the file says nothing about time.",
        &[
            "A tool that anonymises captures set all times to the same value.",
            "There is no silence and no rate to be found.",
            "An analyser must not divide by the duration of this file.",
        ],
    )
}

fn slow_drift() -> Case {
    let name = "clock-runs-three-times-too-fast";
    let capture = steady(name)
        .capture(Point::Server)
        .edit(|_, r| r.time_ns *= 3);
    clean(
        name,
        capture,
        "The capture's clock runs three times as fast as the hosts': a guest's broken clock. All intervals are longer by the same factor, and none is a pause.",
        &[
            "A guest whose clock source is broken: three seconds in the file are one for the hosts.",
            "The hosts' timestamps advance a third as fast as the file's times.",
            "Round trips look like 72 ms; nothing else is wrong.",
        ],
    )
}
