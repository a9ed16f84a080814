// SPDX-License-Identifier: MIT OR Apache-2.0
//! Acknowledgements that are lost, late, outside the window, or were never sent.

use tcp_stacks::profile::{MS, Profile};
use tcp_stacks::world::Point;

use crate::case::{Case, Stall, Towards};
use crate::ends::{C, NETWORK, S, at, seed};
use crate::script::Script;
use crate::sim::Sim;

const THEME: &str = "acknowledgements";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, place, sack, stamps) in [
        ("sender", "sender", true, true),
        ("sender-no-timestamps", "sender", true, false),
        ("sender-no-sack", "sender", false, true),
        ("middle", "middle", true, true),
        ("receiver", "receiver", true, true),
        ("receiver-no-timestamps", "receiver", true, false),
    ] {
        cases.push(lost(name, place, sack, stamps));
    }
    for place in ["sender", "receiver", "middle"] {
        cases.push(way_back_down(place));
        cases.push(late(place));
    }
    cases.extend([
        late_without_timestamps(),
        never_sent(true),
        never_sent(false),
        outside("sender"),
        outside("receiver"),
        bunches(),
        thinned(),
        one_of_many(),
    ]);
    cases
}

/// The tail arrived; its acknowledgements are lost until the timeout's copy is answered.
fn lost(name: &str, place: &'static str, sack: bool, stamps: bool) -> Case {
    let name = format!("ack-lost-tail-{name}");
    let mut s = Script::new(seed(&name), 30.0);
    if !stamps {
        s = s.no_timestamps();
    }
    if !sack {
        s = s.no_sack();
    }
    let t = s.warm() + 0.4;
    let full = s.full();
    let first = s.flight(S, t, 3, full);
    s.ack(C, t + 15.2).lost();
    s.ack(C, t + 15.3).lost();
    // The timeout's copy is needless: the receiver says so with a D-SACK (RFC 2883).
    let copy = t + 243.0;
    s.again(S, copy, first, full);
    s.ack(C, copy + 15.03).sack(&[(first, first + full)]);
    let t = s.bulk(S, copy + 30.2, &[2, 4]);
    s.close(S, t + 1.0);
    let capture = s.capture(at(S, place));
    let span = capture.longest();
    let provable = sack || place != "sender";
    let causes: &[&str] = if provable {
        &["ack-loss"]
    } else {
        &["ack-loss", "rto-tail", "rto-other", "unknown"]
    };
    let not: &[&str] = if provable {
        &[
            "rto-tail",
            "rto-few-dupacks",
            "path-loss",
            "congestion",
            "policer",
            "tail-loss-probe",
            "application",
            "pmtu-black-hole",
            "delayed-ack",
        ]
    } else {
        &[
            "application",
            "response-time",
            "pmtu-black-hole",
            "receiver-window-closed",
            "delayed-ack",
        ]
    };
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Client, span, causes)
                .sides(NETWORK)
                .not(not)
                .why("The three segments arrived at once; the two acknowledgements of them were lost, so the sender retransmitted after its timeout what the receiver had."),
        )
        .readme(&[
            "The last three segments of a flight arrive, and the acknowledgements of them are lost on the way back. The sender's timeout fires after 243 ms.",
            "One copy ends it: its acknowledgement covers all three segments, and with SACK its first block lies below the acknowledgement (D-SACK): the receiver had that segment.",
            "At the receiver the acknowledgements are in the capture before the pause.",
            "A lost tail looks the same at the sender, but there a copy of the first segment alone is acknowledged alone.",
        ])
}

/// The way back is down for a time.
fn way_back_down(place: &'static str) -> Case {
    let name = format!("ack-way-back-down-{place}");
    let sim = Sim::new(seed(&name), 40)
        .path(C, |n| n.outages = vec![(130 * MS, 900 * MS)])
        .download(&[(0, 90_000)]);
    let capture = sim.capture(at(S, place));
    let span = capture.from_first_to_last(150);
    let seen = place == "receiver";
    let causes: &[&str] = if seen {
        &["ack-loss"]
    } else {
        &[
            "ack-loss",
            "silent-path",
            "rto-tail",
            "rto-storm",
            "rto-lost-retransmission",
            "rto-other",
            "tail-loss-probe",
            "unknown",
        ]
    };
    let not: &[&str] = if seen {
        &[
            "policer",
            "congestion",
            "path-loss",
            "rto-tail",
            "pmtu-black-hole",
            "application",
            "receiver-window-closed",
            "delayed-ack",
        ]
    } else {
        &[
            "policer",
            "congestion",
            "pmtu-black-hole",
            "application",
            "response-time",
            "receiver-window-closed",
            "delayed-ack",
        ]
    };
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Client, span, causes)
                .sides(NETWORK)
                .not(not)
                .why("From 130 to 900 ms nothing passes from the client to the server. Data arrives all the while, its acknowledgements do not."),
        )
        .readme(&[
            "Only the way back is down for 0.8 s: the client receives everything, and the server hears nothing.",
            "At the receiver the proof is complete: each copy of the server's segments arrives there and was there before, and each is acknowledged.",
            "At the sender it cannot be told from an outage of both directions.",
        ])
}

/// The acknowledgements are held up, not lost.
fn late(place: &'static str) -> Case {
    let name = format!("ack-late-not-lost-{place}");
    let mut s = Script::new(seed(&name), 24.0);
    let t = s.warm() + 0.4;
    let full = s.full();
    let first = s.flight(S, t, 6, full);
    for n in 0..3 {
        let sent = t + 12.0 + 0.15 + 0.24 * f64::from(n);
        s.ack(C, sent).late(420.0 + 0.1 * f64::from(n));
    }
    let probe = t + 50.0;
    s.again(S, probe, first + 5 * full, full);
    let dsack = [(first + 5 * full, first + 6 * full)];
    s.ack(C, probe + 12.03).sack(&dsack).late(383.0);
    s.again(S, t + 282.0, first, full);
    s.ack(C, t + 294.03)
        .sack(&[(first, first + full)])
        .late(152.0);
    let t = s.bulk(S, t + 480.0, &[4, 4]);
    s.close(S, t + 1.0);
    let capture = s.capture(at(S, place));
    let start = capture.records[capture.data(S, 15)].time_ns;
    let end = capture.gaps(100).last().map_or(0, |g| g.1);
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Client, (start, end), &["delay-spike", "ack-loss"])
                .sides(NETWORK)
                .not(&["rto-tail", "rto-few-dupacks", "rto-lost-retransmission", "path-loss", "congestion", "policer", "tail-loss-probe", "application", "pmtu-black-hole", "delayed-ack"])
                .why("All data arrived within 13 ms and was acknowledged at once; the acknowledgements were held up by 420 ms and then came in one heap."),
        )
        .readme(&[
            "Something on the way back holds every packet for 420 ms and then lets all of them go (a radio link, a busy host).",
            "At the sender the first acknowledgement after the pause echoes the timestamp of the original segment, not of the copies: it answers the original. The IP identifications of the client have no hole.",
            "The probe and the timeout's copy were needless; D-SACKs say so. Lost acknowledgements would leave a hole in the identifications, and the pause would end with a D-SACK at once.",
        ])
}

fn late_without_timestamps() -> Case {
    let name = "ack-late-no-timestamps-sender";
    let sim = Sim::new(seed(name), 30)
        .stacks(Profile::windows(), Profile::windows())
        .path(C, |n| n.holds = vec![(150 * MS, 480 * MS)])
        .download(&[(0, 60_000)]);
    let capture = sim.capture(Point::Server);
    let gaps = capture.from_first_to_last(100);
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Client, gaps, &["delay-spike", "ack-loss", "rto-tail", "rto-other", "silent-path", "unknown"])
                .sides(NETWORK)
                .not(&["application", "response-time", "pmtu-black-hole", "policer", "receiver-window-closed", "delayed-ack"])
                .why("The way back held all packets for a third of a second. Without timestamps only the number of acknowledgements in the heap tells it from a loss."),
        )
        .readme(&[
            "Two Windows hosts without timestamps. The way back holds everything for up to 330 ms.",
            "The acknowledgements come in a heap, one for each pair of segments: none is missing.",
            "A lost tail would be repaired segment by segment; here one timeout's copy is followed by acknowledgements of the originals.",
        ])
}

/// At the receiver's own host: no acknowledgement was ever sent.
fn never_sent(stamps: bool) -> Case {
    let name = if stamps {
        "ack-never-sent-receiver"
    } else {
        "ack-never-sent-receiver-no-timestamps"
    };
    let mut s = Script::new(seed(name), 20.0);
    if !stamps {
        s = s.no_timestamps();
    }
    let t = s.warm() + 0.4;
    let full = s.full();
    let first = s.next(S);
    s.data(S, t, full);
    s.data(S, t + 0.12, full);
    // The host does not process what its network card (and the capture) has.
    s.again(S, t + 224.0, first, full);
    s.again(S, t + 664.0, first, full);
    let wake = t + 980.0;
    // Each acknowledgement echoes the packet that it answers.
    let echoes = [t, t + 0.12, t + 224.0, t + 664.0].map(|ms| s.stamp(S, ms));
    s.ack(C, wake).acks(first + full).echo(echoes[0]);
    s.ack(C, wake + 0.04).acks(first + 2 * full).echo(echoes[1]);
    for (n, echo) in [(0.08, echoes[2]), (0.12, echoes[3])] {
        s.ack(C, wake + n).sack(&[(first, first + full)]).echo(echo);
    }
    let t = s.bulk(S, wake + 11.0, &[4, 4]);
    s.close(S, t + 1.0);
    let capture = s.capture(Point::Client);
    let span = capture.from_first_to_last(150);
    Case::new(name, THEME, "receiver", capture)
        .stall(
            Stall::new(Towards::Client, span, &["delayed-ack", "unknown", "rto-other", "delay-spike"])
                .sides(&["receiver", "unknown"])
                .not(&["ack-loss", "rto-tail", "path-loss", "congestion", "policer", "silent-path", "pmtu-black-hole", "application", "response-time", "rto-lost-retransmission"])
                .why("The capture is the receiver's own: the data came in, and for 980 ms no acknowledgement left. None was lost; the host did not send any."),
        )
        .readme(&[
            "The receiving host is stopped for a second behind its network card: the capture has the segments and their copies, but the host answers none of them.",
            "When it goes on, it answers all four packets one after the other, with D-SACKs for the copies.",
            "It looks like lost acknowledgements from the sender's side. In the receiver's own capture a lost one would be there.",
        ])
}

/// The receiver's acknowledgements carry a sequence number outside the sender's window.
fn outside(place: &'static str) -> Case {
    let name = format!("ack-outside-the-window-{place}");
    let mut s = Script::new(seed(&name), 30.0);
    let t = s.warm() + 0.4;
    let full = s.full();
    let first = s.flight(S, t, 4, full);
    let good = s.next(C);
    for n in 1..3 {
        s.raw(
            C,
            t + 15.2 + 0.24 * f64::from(n - 1),
            good + 5_000_000,
            0,
            16,
        );
    }
    // RFC 9293, 3.10.7.4: not acceptable, so it is answered by an acknowledgement and dropped.
    s.ack(S, t + 30.25);
    s.again(S, t + 250.0, first, full);
    s.raw(C, t + 265.03, good, 0, 16)
        .sack(&[(first, first + full)]);
    let mut t = t + 280.2;
    for _ in 0..2 {
        s.flight(S, t, 2, full);
        s.raw(C, t + 15.2, good, 0, 16);
        t += 30.3;
    }
    s.raw(S, t, s.next(S), 0, 17);
    let capture = s.capture(at(S, place));
    let span = capture.longest();
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Client, span, &["rto-other", "unknown", "ack-loss"])
                .sides(&["unknown", "network", "receiver"])
                .not(&["rto-tail", "rto-few-dupacks", "path-loss", "congestion", "policer", "application", "pmtu-black-hole", "silent-path", "delayed-ack", "delay-spike"])
                .why("The acknowledgements reached the sender with a sequence number far beyond its receive window. A TCP must drop such a segment (RFC 9293, 3.10.7.4), acknowledgement number and all."),
        )
        .readme(&[
            "A device on the way rewrites the client's sequence numbers wrongly for a moment: two acknowledgements are 5 MB beyond the server's receive window.",
            "The server answers with an acknowledgement of its own and drops both, so it does not learn that its data arrived; its timeout follows.",
            "The acknowledgement numbers alone say that all was well. Whoever ignores the sequence numbers of pure acknowledgements finds no reason for the timeout.",
            "The D-SACK behind the copy says that no data was lost.",
        ])
}

/// Acknowledgements in bunches each 200 ms (a cable modem or radio scheduler).
fn bunches() -> Case {
    let name = "ack-in-bunches-sender";
    let mut s = Script::new(seed(name), 20.0);
    let mut t = s.warm() + 0.4;
    let full = s.full();
    for _ in 0..5 {
        for n in 0..8 {
            let sent = t + 0.12 * f64::from(n);
            s.data(S, sent, full);
            if n % 2 == 1 {
                let there = sent + 10.03;
                s.ack(C, there)
                    .late(180.0 - (sent - t) + 0.02 * f64::from(n));
            }
        }
        t += 200.6;
    }
    s.close(S, t + 1.0);
    let capture = s.capture(Point::Server);
    let gaps = capture.gaps(150);
    Case::new(name, THEME, "sender", capture)
        .stalls(&gaps, |span| {
            Stall::new(Towards::Client, span, &["ack-loss", "delay-spike"])
                .sides(NETWORK)
                .not(&["rto-tail", "path-loss", "congestion", "policer", "application", "pmtu-black-hole", "receiver-window-closed"])
                .why("The way back gathers acknowledgements for 180 ms and delivers them in one heap; the congestion window allows no more data before.")
        })
        .partial()
        .readme(&[
            "Each flight of eight segments is acknowledged 200 ms later, by four acknowledgements that come within 60 microseconds.",
            "They left the client 240 microseconds apart, 10 ms after the data, as its timestamps say: the way back gathered them.",
            "A delayed acknowledgement would be a single one, and its timestamp would be late too.",
        ])
}

/// A device removes most acknowledgements: nothing stalls.
fn thinned() -> Case {
    let name = "ack-look-alike-thinned-out-middle";
    let mut s = Script::new(seed(name), 30.0);
    let t = s.warm() + 0.4;
    let t = s.bulk(S, t, &[12, 16, 16]);
    s.close(S, t + 1.0);
    let mut count = 0;
    let capture = s.capture(Point::Middle).keep(|r| {
        let counts = r.is_of(C) && r.is_pure_ack();
        count += u32::from(counts);
        !counts || count % 4 == 0
    });
    Case::new(name, THEME, "middle", capture)
        .why("Each fourth acknowledgement passes, and acknowledgements are cumulative: the sender always goes on within a round trip.")
        .readme(&[
            "A modem sends on only each fourth acknowledgement; the capture is behind it.",
            "The client's IP identifications have holes of three. The data goes on round trip by round trip.",
            "It looks like loss of acknowledgements, and it is, but nothing waits for it.",
        ])
}

/// One acknowledgement is lost, the next one covers it.
fn one_of_many() -> Case {
    let name = "ack-look-alike-one-lost-sender";
    let sim = Sim::new(seed(name), 30)
        .path(C, |n| n.drop_acks = vec![8, 12])
        .download(&[(0, 60_000)]);
    Case::new(name, THEME, "sender", sim.capture(Point::Server))
        .why("Two acknowledgements of many are lost; the next ones cover them before any timer.")
        .readme(&[
            "Two single acknowledgements get lost in the middle of a transfer.",
            "The next acknowledgement, 0.3 ms later, covers twice as much. No timer fires.",
            "The identifications of the client's packets have two holes; the transfer has none.",
        ])
}
