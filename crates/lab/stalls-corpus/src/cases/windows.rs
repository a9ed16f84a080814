// SPDX-License-Identifier: MIT OR Apache-2.0
//! Windows of the receiver, buffers of the sender.

use tcp_stacks::ground_truth::Why;
use tcp_stacks::profile::{MS, Profile};
use tcp_stacks::world::Point;

use crate::case::{Case, Stall, Towards};
use crate::ends::{C, RECEIVER, S, SENDER, at, seed};
use crate::script::Script;
use crate::sim::Sim;

const THEME: &str = "windows";
const NOT: &[&str] = &[
    "application",
    "response-time",
    "ack-loss",
    "rto-tail",
    "path-loss",
    "congestion",
    "policer",
    "pmtu-black-hole",
    "silent-path",
    "delay-spike",
    "send-buffer",
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, profile) in [
        ("linux", Profile::linux()),
        ("freebsd", Profile::freebsd()),
        ("windows", Profile::windows()),
    ] {
        for place in ["sender", "receiver"] {
            cases.push(closed(kind, place, &profile));
        }
    }
    for place in ["sender", "receiver", "middle"] {
        cases.push(update_lost(place));
    }
    for place in ["sender", "receiver"] {
        cases.push(small(place));
        cases.push(send_buffer(place));
    }
    cases.extend([
        reads_slowly(),
        silly(),
        slow_start(),
        shrinks_and_recovers(),
        scale_unseen(),
        closed_for_long("sender"),
        closed_for_long("receiver"),
        ample(),
    ]);
    cases
}

/// The client does not read for 2.5 s, with a small buffer.
fn unread(name: &str, profile: &Profile) -> Sim {
    Sim::new(seed(name), 30)
        .stack(S, |p| *p = profile.clone())
        .stack(C, |p| {
            p.receive_bytes = if profile.name == "linux" {
                23_168
            } else {
                24_000
            }
        })
        .download(&[(0, 80_000)])
        .not_reading(C, &[(16_000, 2_500)])
}

fn closed(kind: &str, place: &'static str, profile: &Profile) -> Case {
    let name = format!("window-closed-{kind}-probes-{place}");
    let capture = unread(&name, profile).capture(at(S, place));
    let gaps = capture.from_first_to_last(150);
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Client, gaps, &["receiver-window-closed"])
                .sides(RECEIVER)
                .not(NOT)
                .why("The receiver's application did not read for 2.5 s: its window was announced as closed, or as less than a segment, and opened by a window update when it read again."),
        )
        .readme(&[
            "The receiving application does not read for 2.5 s. Its buffer of 24 KB fills, and its TCP announces a window of 0 or of a few hundred bytes, which a sender does not fill (RFC 1122, 4.2.3.4).",
            "The sender probes: Linux with empty segments below the window, first after 0.2 s, Windows and BSD with one byte of new data, BSD not before 5 s.",
            "An update without being asked opens the window. A probe of one byte looks like a retransmission or like new data that is not acknowledged.",
        ])
}

/// Long enough for the persist timer of BSD, and its probes of one byte.
fn closed_for_long(place: &'static str) -> Case {
    let name = format!("window-closed-freebsd-for-long-{place}");
    let sim = Sim::new(seed(&name), 30)
        .stack(S, |p| *p = Profile::freebsd())
        .stack(C, |p| p.receive_bytes = 23_168)
        .download(&[(0, 60_000)])
        .not_reading(C, &[(16_000, 18_000)]);
    let capture = sim.capture(at(S, place));
    let gaps = capture.from_first_to_last(150);
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Client, gaps, &["receiver-window-closed"])
                .sides(RECEIVER)
                .not(NOT)
                .why("The receiver's application did not read for 18 s. The sender's probes of one byte, after 5 s and doubled, are answered with a closed window; a window update ends it."),
        )
        .readme(&[
            "The receiving application does not read for 18 s. FreeBSD probes after 5 s and 10 s with one byte of new data.",
            "Each probe is answered by an acknowledgement with a closed window, which does not take the byte.",
            "The same byte leaves again and again: it looks like timeouts of a lost segment, with doubled waits.",
        ])
}

fn update_lost(place: &'static str) -> Case {
    let name = format!("window-update-lost-{place}");
    let sim = Sim::new(seed(&name), 30)
        .stack(C, |p| p.receive_bytes = 24_000)
        .stack(S, |p| {
            p.persist_min_ns = 1000 * MS;
        })
        .download(&[(0, 80_000)])
        .not_reading(C, &[(16_000, 300)])
        .lose_acks(C, 1, &[Why::WindowUpdate]);
    let capture = sim.capture(at(S, place));
    // The probe fills the last bytes of the old window; full segments come behind its answer.
    let (start, probed) = capture.from_first_to_last(150);
    let full = capture
        .records
        .iter()
        .find(|r| r.is_of(S) && r.packet.payload_bytes > 1000 && r.time_ns > probed);
    let gaps = (start, full.map_or(probed, |r| r.time_ns));
    let causes: &[&str] = if place == "receiver" {
        &["zero-window-probe", "receiver-window-closed", "ack-loss"]
    } else {
        &["zero-window-probe", "receiver-window-closed"]
    };
    let not: Vec<&str> = NOT
        .iter()
        .copied()
        .filter(|n| !(place == "receiver" && *n == "ack-loss"))
        .collect();
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Client, gaps, causes)
                .sides(&["receiver", "network"])
                .not(&not)
                .why("The window was closed for 0.3 s. The update that opened it was lost; only the probe, a second after the window had closed, found it open."),
        )
        .readme(&[
            "The receiver's window closes for 0.3 s. The window update is lost on the way back.",
            "At the receiver the update is in the capture, and nothing follows it for most of a second. At the sender a probe is answered with an open window.",
            "A receiver that did not read for a whole second looks the same at the sender, but its answer to the probe follows a window update or closes the window again.",
        ])
}

/// The client reads 8 KB each 0.35 s.
fn reads_slowly() -> Case {
    let name = "window-reads-slowly-sender";
    let mut sim = Sim::new(seed(name), 30)
        .stack(C, |p| p.receive_bytes = 16_384)
        .download(&[(0, 60_000)]);
    sim.readers[0].chunk_bytes = 8_192;
    sim.readers[0].every_ns = 350 * MS;
    let capture = sim.capture(Point::Server);
    // Behind the last data only the reader goes on.
    let last = capture.whole(S).1;
    let mut gaps = capture.gaps(150);
    gaps.retain(|gap| gap.1 <= last);
    Case::new(name, THEME, "sender", capture)
        .stalls(&gaps, |span| {
            Stall::new(Towards::Client, span, &["receiver-window-closed", "receiver-window-small"])
                .sides(RECEIVER)
                .not(NOT)
                .why("The receiver's application takes 8 KB each 0.35 s: its window is full again and again.")
        })
        .partial()
        .readme(&[
            "A receiving application reads 8 KB every 0.35 s, into a buffer of 16 KB.",
            "The window closes behind each burst and opens by a piece when the application reads.",
            "The rate is the reader's, not the path's; nothing is lost.",
        ])
}

fn small(place: &'static str) -> Case {
    let name = format!("window-small-on-a-long-path-{place}");
    let sim = Sim::new(seed(&name), 140)
        .stack(C, |p| p.receive_bytes = 5_840)
        .download(&[(0, 70_000)]);
    let capture = sim.capture(at(S, place));
    let whole = capture.whole(S);
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Client, whole, &["receiver-window-small"])
                .sides(RECEIVER)
                .not(NOT)
                .why("The receiver announces 5840 bytes and no more, with everything read at once: four segments in each round trip of 140 ms."),
        )
        .readme(&[
            "An embedded receiver has a buffer of four segments, on a path of 140 ms.",
            "In each round trip four segments leave, then all is acknowledged. The window never closes and never grows.",
            "A sender with a small congestion window or send buffer sends the same pattern into a window that has room.",
        ])
}

fn send_buffer(place: &'static str) -> Case {
    let name = format!("send-buffer-small-on-a-long-path-{place}");
    let sim = Sim::new(seed(&name), 140)
        .stack(S, |p| p.send_bytes = 8_688)
        .download(&[(0, 90_000)]);
    let capture = sim.capture(at(S, place));
    let whole = capture.whole(S);
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Client, whole, &["send-buffer"])
                .sides(SENDER)
                .not(&["application", "response-time", "ack-loss", "rto-tail", "path-loss", "congestion", "policer", "pmtu-black-hole", "silent-path", "delay-spike", "receiver-window-closed", "receiver-window-small"])
                .why("The sender's socket holds 8688 bytes: six segments in each round trip, though the receiver's window has room for 128 KB and nothing is lost."),
        )
        .readme(&[
            "The sending application set SO_SNDBUF to six segments, on a path of 140 ms.",
            "The bytes in flight are the same in each round trip, far below the window, and there is no loss.",
            "A small receive window gives the same pattern at the window's edge; slow start would grow from round to round.",
        ])
}

/// The receiver opens its window byte by byte, and the sender fills it (RFC 813).
fn silly() -> Case {
    let name = "window-silly-window-syndrome";
    let mut s = Script::new(seed(name), 40.0).no_timestamps().no_sack();
    s.hosts[0].scale = None;
    s.hosts[0].window = 4_096;
    let t = s.open(0.0);
    let t = s.burst(C, t + 0.2, 1, 120);
    let full = 1_024;
    s.flight(S, t + 0.5, 4, full);
    s.ack(C, t + 21.0).window(0);
    let mut at_ms = t + 240.0;
    let first = t + 20.5;
    for _ in 0..18 {
        s.ack(C, at_ms).window(64);
        s.data(S, at_ms + 20.1, 64);
        s.ack(C, at_ms + 40.2).window(0);
        at_ms += 190.0;
    }
    let capture = s.capture(Point::Server);
    let span = (
        crate::script::nanos(first),
        crate::script::nanos(at_ms - 150.0),
    );
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Client, span, &["receiver-window-closed", "receiver-window-small"])
                .sides(RECEIVER)
                .not(&["application", "response-time", "ack-loss", "rto-tail", "path-loss", "congestion", "policer", "pmtu-black-hole", "silent-path", "delay-spike", "send-buffer", "delayed-ack"])
                .why("The receiving application reads 64 bytes each 190 ms and its TCP announces each of them: neither end avoids silly windows (RFC 1122, 4.2.3.3 and 4.2.3.4)."),
        )
        .readme(&[
            "Two old stacks without avoidance of silly windows. The receiver reads 64 bytes at a time, opens its window by 64 bytes, and the sender fills them at once.",
            "The window goes 0, 64, 0, 64; data comes in segments of 64 bytes.",
            "Small segments look like an application that writes little; here the window has no more room.",
        ])
}

fn slow_start() -> Case {
    let name = "window-look-alike-slow-start-on-a-long-path";
    let sim = Sim::new(seed(name), 180)
        .stack(S, |p| p.initial_window = 2)
        .download(&[(0, 80_000)]);
    Case::new(name, THEME, "sender", sim.capture(Point::Server))
        .why("A new connection on a path of 180 ms: the congestion window doubles in each round trip, and the transfer ends before the path is full. No round trip is longer than another.")
        .readme(&[
            "A short download on a path of 180 ms, first congestion window of two segments.",
            "Flights of 2, 4, 8, ... segments; between them the sender waits for acknowledgements, as it must.",
            "A small window gives silences of the same length with flights that do not grow.",
        ])
}

/// A window that is nearly full for a moment: nothing waits.
fn shrinks_and_recovers() -> Case {
    let name = "window-look-alike-dips-without-closing";
    let mut s = Script::new(seed(name), 20.0);
    let t = s.warm() + 0.4;
    let full = s.full();
    let mut at_ms = t;
    for round in 0..8_u32 {
        for n in 0..6 {
            s.data(S, at_ms + 0.12 * f64::from(n), full);
            if n % 2 == 1 {
                let window = if round == 4 { 20_000 } else { 120_000 };
                s.ack(C, at_ms + 0.12 * f64::from(n) + 10.03).window(window);
            }
        }
        at_ms += 20.7;
    }
    s.close(S, at_ms);
    Case::new(name, THEME, "sender", s.capture(Point::Server))
        .why("The window dips to 20 KB for a round trip while 8.7 KB are in flight: the sender never had to wait for it.")
        .readme(&[
            "The receiver's window falls from 120 KB to 20 KB for one round trip and grows again.",
            "The sender has 8.7 KB in flight; the window has room all the time.",
            "A falling window alone limits nothing.",
        ])
}

/// Without the handshake the scale of the window is unknown: small fields are no small window.
fn scale_unseen() -> Case {
    let name = "window-look-alike-scale-unseen";
    let sim = Sim::new(seed(name), 60).download(&[(0, 40_000), (1_100, 40_000)]);
    let capture = sim.capture(Point::Server).keep(|r| r.packet.flags & 2 == 0);
    let span = capture.longest();
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Client, span, &["application", "unknown"])
                .sides(&["sender", "unknown"])
                .not(&["receiver-window-closed", "receiver-window-small", "ack-loss", "silent-path", "delay-spike", "rto-tail", "congestion", "policer"])
                .why("The server's application paused with all data acknowledged. The window fields of about 1000 are in units of 128 bytes, as the missing handshake would have said."),
        )
        .readme(&[
            "A capture that begins behind the handshake: the window scale is not in it, and the window fields look like 1000 bytes.",
            "More data than 1000 bytes is in flight at once, so the fields are scaled. The server's application pauses for 1.1 s.",
            "Whoever takes the fields for bytes sees a window that is too small for a single segment.",
        ])
}

fn ample() -> Case {
    let name = "window-look-alike-receiver-reads-in-time";
    let mut sim = Sim::new(seed(name), 30)
        .stack(C, |p| p.receive_bytes = 65_536)
        .download(&[(0, 70_000)]);
    sim.readers[0].chunk_bytes = 4_096;
    sim.readers[0].every_ns = MS;
    Case::new(name, THEME, "sender", sim.capture(Point::Server))
        .why("The application reads 4 KB each millisecond: the window moves, and it is never the limit.")
        .readme(&[
            "A receiver that reads in small pieces, but fast enough.",
            "The window is below its largest value most of the time and never near what is in flight.",
            "Nothing waits.",
        ])
}
