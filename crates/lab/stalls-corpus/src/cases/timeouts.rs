// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timeouts, probes, silent paths, late paths and stopped hosts.

use tcp_stacks::ground_truth::Why;
use tcp_stacks::profile::{MS, Profile, Recovery};
use tcp_stacks::world::Point;

use crate::case::{Case, Stall, Towards};
use crate::ends::{C, NETWORK, S, at, seed};
use crate::script::Script;
use crate::sim::Sim;

const THEME: &str = "timeouts";
const NOT: &[&str] = &[
    "application",
    "response-time",
    "receiver-window-closed",
    "receiver-window-small",
    "send-buffer",
    "pmtu-black-hole",
    "delayed-ack",
    "reordering",
    "connection-setup",
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, sack, stamps) in [
        ("sack", true, true),
        ("no-sack", false, true),
        ("no-timestamps", true, false),
    ] {
        for place in ["sender", "receiver"] {
            cases.push(tail(kind, sack, stamps, place));
        }
    }
    for place in ["sender", "receiver", "middle"] {
        cases.push(probe(place));
        cases.push(lost_repair(place));
        cases.push(outage(place));
        cases.push(spike(place, true));
    }
    for place in ["sender", "receiver"] {
        cases.push(few(place));
        cases.push(storm(place));
        cases.push(sender_stopped(place));
        cases.push(receiver_stopped(place));
    }
    cases.extend([
        spike("sender", false),
        dies(),
        tail_windows(),
        tail_then_idle(),
        sender_stopped_clock_runs(),
        quick_outage(),
    ]);
    cases
}

fn loss(span: (u64, u64), causes: &[&'static str], not: &[&'static str], why: &str) -> Stall {
    let mut all = NOT.to_vec();
    all.extend(not);
    Stall::new(Towards::Client, span, causes)
        .sides(NETWORK)
        .not(&all)
        .why(why)
}

fn tail(kind: &str, sack: bool, stamps: bool, place: &'static str) -> Case {
    let name = format!("rto-tail-{kind}-{place}");
    let sim = Sim::new(seed(&name), 40)
        .both(|p| {
            p.sack = sack;
            p.timestamp_tick_ns = p.timestamp_tick_ns.filter(|_| stamps);
            p.recovery = Recovery::Sack;
        })
        .path(S, |n| n.drop_data = vec![18, 19])
        .download(&[(0, 20 * 1400)]);
    let sim = if stamps {
        sim.download(&[(0, 20 * 1448)])
    } else {
        sim.download(&[(0, 20 * 1460)])
    };
    let capture = sim.capture(at(S, place));
    let span = capture.longest();
    let seen = place == "sender";
    let causes: &[&str] = if seen {
        &["rto-tail"]
    } else {
        &["rto-tail", "rto-other", "path-loss", "unknown"]
    };
    let not: &[&str] = if seen {
        &[
            "policer",
            "congestion",
            "delay-spike",
            "silent-path",
            "ack-loss",
        ]
    } else {
        &["ack-loss"]
    };
    let case = Case::new(&name, THEME, place, capture).stall(loss(
        span,
        causes,
        not,
        "The last two segments of the answer were lost. Nothing behind them could report it, and the sender has no tail loss probe: its timeout repaired the first of them.",
    ));
    let case = if seen { case } else { case.partial() };
    case.readme(&[
        "The last two of twenty segments of an answer are lost; the sender's timeout of about 250 ms repairs them.",
        "At the sender the acknowledgements stop two segments before the end, without a duplicate. The repair of the first is acknowledged alone: the second was missing, too.",
        "Lost acknowledgements look the same until the repair: then one copy would be acknowledged together with everything.",
        "At the receiver the answer simply breaks off and comes 0.25 s later.",
    ])
}

fn tail_windows() -> Case {
    let name = "rto-tail-windows-server";
    let sim = Sim::new(seed(name), 25)
        .stacks(Profile::windows(), Profile::windows())
        .path(S, |n| n.drop_data = vec![11])
        .download(&[(0, 12 * 1460)]);
    let capture = sim.capture(Point::Server);
    let span = capture.longest();
    Case::new(name, THEME, "sender", capture)
        .stall(Stall::new(Towards::Client, span, &["rto-tail", "ack-loss"])
            .sides(NETWORK)
            .not(NOT)
            .why("The last segment of the answer was lost and the timeout of 300 ms repaired it. Without timestamps and D-SACK a lost acknowledgement would look the same."))
        .readme(&[
            "A Windows server loses the last segment of an answer and repairs it by its timeout of 300 ms.",
            "The segment before it is acknowledged, the last one is not until its copy arrives.",
            "A lost acknowledgement of the last segment alone cannot be told from this at the sender.",
        ])
}

/// The lost tail of a request's answer, and a person thinks behind it.
fn tail_then_idle() -> Case {
    let name = "rto-tail-and-a-person-thinking-behind-it";
    let sim = Sim::new(seed(name), 40)
        .both(|p| p.recovery = Recovery::Sack)
        .path(S, |n| n.drop_data = vec![8, 9])
        .turns(&[(0, 300, 4, 10 * 1448), (3_400, 310, 4, 9_000)]);
    let capture = sim.capture(Point::Server);
    let span = capture.gaps(150).first().copied().unwrap_or((0, 0));
    Case::new(name, THEME, "sender", capture)
        .stall(loss(span, &["rto-tail"], &["policer", "congestion", "silent-path", "ack-loss"], "The last two segments of the first answer were lost, and the timeout repaired them."))
        .why("One stall of a quarter of a second. The 3.4 s behind it are a person's.")
        .readme(&[
            "The tail of an answer is lost and repaired by a timeout; then a person reads for 3.4 s and asks again.",
            "The short silence ends with a retransmission, the long one with a request.",
            "The longer silence is not the stall.",
        ])
}

fn probe(place: &'static str) -> Case {
    let name = format!("tail-loss-probe-{place}");
    let sim = Sim::new(seed(&name), 110)
        .path(S, |n| n.drop_data = vec![18, 19])
        .download(&[(0, 20 * 1448)]);
    let capture = sim.capture(at(S, place));
    let span = capture
        .gaps(180)
        .last()
        .copied()
        .unwrap_or_else(|| capture.longest());
    let seen = place == "sender";
    let causes: &[&str] = if seen {
        &["tail-loss-probe", "rto-tail"]
    } else {
        &[
            "tail-loss-probe",
            "rto-tail",
            "rto-other",
            "path-loss",
            "unknown",
        ]
    };
    let case = Case::new(&name, THEME, place, capture).stall(loss(
        span,
        causes,
        &["delay-spike", "silent-path"],
        "The last two segments were lost. After two round trips the sender sent the last one again (RFC 8985); its SACK started the repair of the other.",
    ));
    let case = if seen { case } else { case.partial() };
    case.readme(&[
        "The last two segments of an answer are lost on a path of 110 ms. Two round trips later the sender's tail loss probe repeats the last one.",
        "The probe is acknowledged by SACK, and the segment before it follows one round trip later.",
        "A timeout would repeat the first missing segment, and later.",
    ])
}

fn few(place: &'static str) -> Case {
    let name = format!("rto-few-duplicate-acks-{place}");
    let sim = Sim::new(seed(&name), 40)
        .both(|p| {
            p.sack = false;
            p.recovery = Recovery::NewReno;
        })
        .path(S, |n| n.drop_data = vec![17])
        .download(&[(0, 20 * 1448)]);
    let capture = sim.capture(at(S, place));
    let span = capture.longest();
    Case::new(&name, THEME, place, capture)
        .stall(loss(
            span,
            &["rto-few-dupacks"],
            &["rto-tail", "policer", "congestion", "silent-path", "delay-spike", "ack-loss"],
            "The third segment from the end was lost. The two behind it gave two duplicate acknowledgements, one too few for a repair without the timeout.",
        ))
        .readme(&[
            "A segment is lost with two segments behind it; SACK is off. Two duplicate acknowledgements do not start a repair.",
            "The acknowledgements repeat one number twice, then nothing for a timeout, then the repair acknowledges all of it.",
            "A lost tail has no duplicate acknowledgement.",
        ])
}

fn lost_repair(place: &'static str) -> Case {
    let name = format!("rto-lost-retransmission-{place}");
    let sim = Sim::new(seed(&name), 40)
        .both(|p| p.recovery = Recovery::Sack)
        .path(S, |n| n.drop_data = vec![14])
        .download(&[(0, 60_000)])
        .lose(S, 1, &[Why::Fast]);
    let capture = sim.capture(at(S, place));
    let span = capture.longest();
    let causes: &[&str] = if place == "receiver" {
        &[
            "rto-lost-retransmission",
            "rto-other",
            "path-loss",
            "unknown",
        ]
    } else {
        &["rto-lost-retransmission"]
    };
    Case::new(&name, THEME, place, capture)
        .stall(loss(
            span,
            causes,
            &["rto-tail", "rto-few-dupacks", "policer", "ack-loss", "silent-path", "delay-spike", "tail-loss-probe"],
            "A segment was lost, its fast retransmission too; this sender (RFC 6675) does not notice the second loss before its timeout.",
        ))
        .readme(&[
            "A segment in the middle of a flight is lost; SACK repairs it at once, and the repair is lost as well.",
            "SACK blocks grow until everything behind the hole has arrived, then nothing happens until the timeout sends the same segment for the third time.",
            "RACK would have found the second loss within a round trip.",
        ])
}

fn storm(place: &'static str) -> Case {
    let name = format!("rto-storm-{place}");
    let sim = Sim::new(seed(&name), 40)
        .both(|p| p.recovery = Recovery::Sack)
        .path(S, |n| n.drop_data = vec![14])
        .download(&[(0, 50_000)])
        .lose(S, 1, &[Why::Fast])
        .lose(S, 3, &[Why::Timeout]);
    let capture = sim.capture(at(S, place));
    let span = capture.from_first_to_last(150);
    let causes: &[&str] = if place == "sender" {
        &["rto-storm", "rto-lost-retransmission"]
    } else {
        &[
            "rto-storm",
            "rto-lost-retransmission",
            "rto-other",
            "path-loss",
            "silent-path",
            "unknown",
        ]
    };
    Case::new(&name, THEME, place, capture)
        .stall(loss(
            span,
            causes,
            &["rto-tail", "ack-loss", "delay-spike"],
            "One segment was lost five times in a row: fast repair and three timeouts' copies. Each wait was twice as long as the one before.",
        ))
        .readme(&[
            "A segment, its fast repair and the copies of three timeouts are lost. The fourth timeout brings it.",
            "The same sequence number leaves again after about 0.25, 0.5, 1 and 2 s. SACK blocks say that everything behind it had arrived.",
            "In an outage nothing at all arrives; in a path MTU black hole no segment of that size ever does. Here segments of the same size arrived before and behind it.",
        ])
}

fn outage(place: &'static str) -> Case {
    let name = format!("silent-path-{place}");
    let down = vec![(125 * MS, 1_900 * MS)];
    let sim = Sim::new(seed(&name), 40)
        .path(S, |n| n.outages.clone_from(&down))
        .path(C, |n| n.outages.clone_from(&down))
        .download(&[(0, 80_000)]);
    let capture = sim.capture(at(S, place));
    let span = capture.from_first_to_last(150);
    let causes: &[&str] = if place == "sender" {
        &["silent-path", "rto-storm"]
    } else {
        &[
            "silent-path",
            "rto-storm",
            "rto-tail",
            "rto-other",
            "rto-lost-retransmission",
            "unknown",
            "delay-spike",
        ]
    };
    let not: &[&str] = if place == "sender" {
        &["policer", "congestion", "rto-few-dupacks", "delay-spike"]
    } else {
        &["policer", "congestion", "rto-few-dupacks"]
    };
    Case::new(&name, THEME, place, capture)
        .stall(loss(span, causes, not, "Both directions were down for 1.8 s: nothing passed. The timeouts' copies in that time were lost too."))
        .partial()
        .readme(&[
            "A link is down for 1.8 s in the middle of a download, in both directions.",
            "At the sender: copies after a probe's time and doubled timeouts, and no packet of the peer. At the receiver: nothing at all.",
            "One segment that is lost again and again has answers in between (SACK, acknowledgements of others).",
        ])
}

/// An outage so short that SACK repairs it.
fn quick_outage() -> Case {
    let name = "silent-path-look-alike-short-burst-of-loss";
    let sim = Sim::new(seed(name), 30)
        .path(S, |n| n.drop_data = (24..30).collect())
        .download(&[(0, 90_000)]);
    Case::new(name, THEME, "sender", sim.capture(Point::Server))
        .why("For 2 ms nothing passed from the server: six segments in a row were lost, and repaired by SACK within a round trip or two; there is no silence.")
        .readme(&[
            "A gap of 2 ms in a link in the middle of a download.",
            "Several segments in a row are missing; the ones behind them report it, and all are repaired at once.",
            "No timer fires.",
        ])
}

fn spike(place: &'static str, stamps: bool) -> Case {
    let name = if stamps {
        format!("delay-spike-{place}")
    } else {
        format!("delay-spike-no-timestamps-{place}")
    };
    let mut s = Script::new(seed(&name), 40.0);
    if !stamps {
        s = s.no_timestamps();
    }
    let t = s.warm() + 0.4;
    let full = s.full();
    let first = s.next(S);
    let hold = 700.0;
    for n in 0..6_u32 {
        s.data(S, t + 0.12 * f64::from(n), full)
            .late(hold - 0.02 * f64::from(n));
    }
    for n in 0..3 {
        s.ack(C, t + 20.0 + hold + 0.2 + 0.2 * f64::from(n));
    }
    // The probe and two timeouts' copies are needless.
    s.again(S, t + 82.0, first + 5 * full, full)
        .late(hold - 80.0);
    s.ack(C, t + hold + 22.1)
        .sack(&[(first + 5 * full, first + 6 * full)]);
    s.again(S, t + 330.0, first, full).late(hold - 326.0);
    s.ack(C, t + hold + 24.1).sack(&[(first, first + full)]);
    let t = s.bulk(S, t + hold + 46.0, &[4, 6]);
    s.close(S, t + 1.0);
    let capture = s.capture(at(S, place));
    let span = capture.from_first_to_last(150);
    let causes: &[&str] = if stamps {
        &["delay-spike"]
    } else {
        &["delay-spike", "ack-loss"]
    };
    let not: &[&str] = if stamps {
        &[
            "rto-tail",
            "rto-few-dupacks",
            "path-loss",
            "congestion",
            "policer",
            "silent-path",
            "tail-loss-probe",
            "rto-lost-retransmission",
        ]
    } else {
        &["rto-few-dupacks", "path-loss", "congestion", "policer"]
    };
    Case::new(&name, THEME, place, capture)
        .stall(loss(span, causes, not, "Everything on the way was held up for 700 ms and then arrived in order, originals and needless copies."))
        .readme(&[
            "A radio link holds up all packets for 0.7 s, loses none and delivers all of them.",
            "The sender's probe and its timeout's copy were needless: D-SACKs report both, and the acknowledgements echo the timestamps of the originals.",
            "An outage loses what was sent; behind it copies would be acknowledged, and no D-SACK would come.",
            "At the receiver the originals arrive late in a heap, with old timestamps, and the copies right behind them.",
        ])
}

fn dies() -> Case {
    let name = "silent-path-receiver-vanishes-sender";
    let mut sim = Sim::new(seed(name), 40).download(&[(0, 400_000)]);
    sim.dies_ns[0] = Some(130 * MS);
    sim.until_ns = 9_000 * MS;
    let capture = sim.capture(Point::Server);
    let start = capture.gaps(150).first().map_or(0, |g| g.0);
    let end = capture.records.last().map_or(0, |r| r.time_ns);
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Client, (start, end), &["silent-path", "rto-storm"])
                .sides(&["network", "receiver", "unknown"])
                .not(&["application", "response-time", "receiver-window-closed", "pmtu-black-hole", "policer", "congestion", "ack-loss", "rto-few-dupacks"])
                .why("The receiving host lost its power. From then on no packet of it came, whatever the sender retransmitted."),
        )
        .partial()
        .readme(&[
            "The receiving host vanishes in the middle of a download.",
            "The sender retransmits with doubled timeouts until the capture ends; nothing is ever answered.",
            "An outage of the path looks the same; only full segments are retransmitted, as in a path MTU black hole, but segments of that size had arrived before.",
        ])
}

/// The sender's guest is stopped; its clock stands still meanwhile.
fn sender_stopped(place: &'static str) -> Case {
    let name = format!("host-stopped-sender-{place}");
    let mut s = Script::new(seed(&name), 20.0);
    let t = s.warm() + 0.4;
    let t = s.bulk(S, t, &[8, 10]);
    let full = s.full();
    let base = s.hosts[1].clock_base;
    // 1.6 s later it goes on; its clock has advanced by a millisecond.
    let wake = t + 1600.0;
    let frozen = base.wrapping_add(t as u32 + 1);
    let mut at_ms = wake;
    for round in 0..3_u32 {
        let value = frozen + 21 * round;
        for n in 0..6 {
            s.data(S, at_ms + 0.12 * f64::from(n), full).value(value);
            if n % 2 == 1 {
                s.ack(C, at_ms + 0.12 * f64::from(n) + 10.03);
            }
        }
        at_ms += 21.0;
    }
    let capture = s.capture(at(S, place));
    let span = capture.longest();
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Client, span, &["unknown", "application", "delay-spike"])
                .sides(&["sender", "unknown"])
                .not(&["ack-loss", "rto-tail", "path-loss", "congestion", "policer", "silent-path", "pmtu-black-hole", "receiver-window-closed", "delayed-ack", "response-time", "waiting-for-peer"])
                .why("The sender's guest was stopped for 1.6 s (migration): its own timestamp clock advanced by a millisecond only. All data had been acknowledged, and the window was open."),
        )
        .readme(&[
            "The virtual machine that sends is stopped for 1.6 s in the middle of a transfer and then goes on.",
            "The capture's clock says 1.6 s, the sender's TCP timestamps say one millisecond. The receiver's timestamps go on.",
            "An application's pause looks the same, but the sender's clock would have advanced by 1600.",
            "The capture \"at the sender\" is made on the host below the guest.",
        ])
}

/// The sender's host is stopped, and its clock runs on: an application's pause by all packets.
fn sender_stopped_clock_runs() -> Case {
    let name = "host-look-alike-application-pauses-with-its-clock";
    let mut s = Script::new(seed(name), 20.0);
    let t = s.warm() + 0.4;
    let t = s.bulk(S, t, &[8, 10]);
    let t = s.bulk(S, t + 1600.0, &[6, 6, 6]);
    s.close(S, t + 1.0);
    let capture = s.capture(Point::Middle);
    let span = capture.longest();
    Case::new(name, THEME, "middle", capture)
        .stall(
            Stall::new(Towards::Client, span, &["application"])
                .sides(&["sender"])
                .not(&["ack-loss", "rto-tail", "path-loss", "congestion", "silent-path", "delay-spike", "pmtu-black-hole", "receiver-window-closed"])
                .why("The sending application paused for 1.6 s with everything acknowledged and an open window; the host's clock went on."),
        )
        .readme(&[
            "As host-stopped-sender, but the sender's timestamps advance by 1600 across the silence: the host was awake.",
            "All data was acknowledged; new data ends the silence.",
            "The two differ in the sender's timestamps alone.",
        ])
}

/// The receiver's guest is stopped for 1.2 s.
fn receiver_stopped(place: &'static str) -> Case {
    let name = format!("host-stopped-receiver-{place}");
    let mut s = Script::new(seed(&name), 20.0);
    let t = s.warm() + 0.4;
    let full = s.full();
    let first = s.flight(S, t, 6, full);
    s.again(S, t + 43.0, first + 5 * full, full);
    for after in [268.0, 700.0] {
        s.again(S, t + after, first, full);
    }
    let wake = t + 1210.0;
    let frozen = s.hosts[0].clock_base.wrapping_add(t as u32 + 10);
    let echoes = [t, t + 43.0, t + 268.0, t + 700.0].map(|ms| s.stamp(S, ms));
    for n in 0..3_u32 {
        s.ack(C, wake + 0.03 * f64::from(n))
            .acks(first + 2 * full * u64::from(n + 1))
            .value(frozen)
            .echo(echoes[0]);
    }
    let last = (first + 5 * full, first + 6 * full);
    for (n, block) in [
        (1, last),
        (2, (first, first + full)),
        (3, (first, first + full)),
    ] {
        s.ack(C, wake + 0.08 + 0.02 * n as f64)
            .value(frozen)
            .sack(&[block])
            .echo(echoes[n]);
    }
    let mut at_ms = wake + 10.3;
    for round in 0..2_u32 {
        for n in 0..6 {
            s.data(S, at_ms + 0.12 * f64::from(n), full);
            if n % 2 == 1 {
                s.ack(C, at_ms + 0.12 * f64::from(n) + 10.03)
                    .value(frozen + 20 + 21 * round);
            }
        }
        at_ms += 21.0;
    }
    let capture = s.capture(at(S, place));
    let span = capture.from_first_to_last(150);
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Client, span, &["unknown", "delay-spike", "delayed-ack", "silent-path"])
                .sides(&["receiver", "unknown", "network"])
                .not(&["rto-tail", "rto-few-dupacks", "path-loss", "congestion", "policer", "pmtu-black-hole", "application", "response-time", "rto-lost-retransmission", "receiver-window-closed"])
                .why("The receiver's guest was stopped for 1.2 s. Its host kept the packets, and it answered all of them when it went on; its timestamp clock had stood still."),
        )
        .readme(&[
            "The virtual machine that receives is stopped for 1.2 s; its host queues the packets for it.",
            "Then it acknowledges everything at once, with D-SACKs for the copies. Its own timestamps have hardly advanced.",
            "A delay spike of the path looks the same but for the receiver's clock, which would have gone on.",
            "The capture \"at the receiver\" is made on the host below the guest: the data is there before the pause.",
        ])
}
