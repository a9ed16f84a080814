// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures that miss packets, begin late, repeat packets or cut them; tags that differ; hosts that
//! hold both ends; ports that are used again.

use tcp_stacks::packet::{Ids, flag};
use tcp_stacks::profile::{MS, Recovery};
use tcp_stacks::world::Point;

use crate::case::{Case, Stall, Towards};
use crate::ends::{C, NETWORK, S, SENDER, seed};
use crate::record::Capture;
use crate::script::Script;
use crate::sim::Sim;

const THEME: &str = "partial-captures";

pub(super) fn cases() -> Vec<Case> {
    vec![
        no_handshake(),
        no_handshake_lost_tail(),
        lost_by_capture(),
        lost_by_capture_acks(),
        lost_by_capture_both(),
        hole_and_pause(),
        repair_not_captured(),
        sack_cut(),
        repeated(false),
        repeated(true),
        vlans(false),
        vlans(true),
        loopback(),
        loopback_pause(),
        tunnel_twice(),
        ports_again(),
        opened_again_after_reset(),
        ends_in_the_middle(),
        version_six(true),
        version_six(false),
    ]
}

fn application(span: (u64, u64), why: &str) -> Stall {
    Stall::new(Towards::Client, span, &["application"])
        .sides(SENDER)
        .not(&[
            "ack-loss",
            "silent-path",
            "delay-spike",
            "rto-tail",
            "rto-other",
            "path-loss",
            "pmtu-black-hole",
            "congestion",
            "policer",
            "receiver-window-closed",
            "delayed-ack",
        ])
        .why(why)
}

fn no_handshake() -> Case {
    let name = "partial-begins-in-the-middle-pause";
    let sim = Sim::new(seed(name), 30).download(&[(0, 45_000), (1_300, 25_000)]);
    let capture = sim.capture(Point::Middle).keep(|r| r.time_ns > 95 * MS);
    let span = capture.longest();
    Case::new(name, THEME, "middle", capture)
        .stall(application(span, "The server's application paused for 1.3 s with everything acknowledged.").optional())
        .readme(&[
            "The capture begins in the middle of a download; there is no handshake and no request. The server's application pauses once.",
            "All data is acknowledged before the pause; new data ends it.",
            "MSS, window scale and SACK are not known; the client cannot be known by the SYN.",
        ])
}

fn no_handshake_lost_tail() -> Case {
    let name = "partial-begins-in-the-middle-lost-tail";
    let sim = Sim::new(seed(name), 40)
        .both(|p| p.recovery = Recovery::Sack)
        .path(S, |n| n.drop_data = vec![28, 29])
        .download(&[(0, 30 * 1448)]);
    let capture = sim.capture(Point::Server).keep(|r| r.time_ns > 100 * MS);
    let span = capture.longest();
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Client, span, &["rto-tail"])
                .sides(NETWORK)
                .not(&["application", "response-time", "receiver-window-closed", "pmtu-black-hole", "ack-loss", "policer", "congestion"])
                .why("The last two segments of the answer were lost and repaired by the timeout."),
        )
        .readme(&[
            "As rto-tail, in a capture that begins in the middle of the download.",
            "The acknowledgements stop two segments before the end; the timeout's copies are acknowledged one after the other.",
            "Without the handshake the size of full segments must be taken from the segments themselves.",
        ])
}

fn steady(name: &str) -> Sim {
    Sim::new(seed(name), 24).download(&[(0, 58_000)])
}

fn lost_by_capture() -> Case {
    let name = "partial-capture-lost-data-packets";
    let capture = steady(name).capture(Point::Client);
    let drops: Vec<usize> = [12, 13, 14, 22, 27]
        .iter()
        .map(|n| capture.data(S, *n))
        .collect();
    Case::new(name, THEME, "receiver", capture.without(&drops))
        .why("The capture itself lost five data packets; the receiver had them, as its acknowledgements say at once. Nothing was repaired because nothing was missing.")
        .readme(&[
            "A capture that could not keep up lost five data packets of a clean download.",
            "The receiver acknowledges them in order at the usual time, without SACK blocks or duplicates (\"ACKed unseen segment\").",
            "A hole in the sequence numbers looks like loss; no repair follows here.",
        ])
}

fn lost_by_capture_acks() -> Case {
    let name = "partial-capture-lost-acknowledgements";
    let mut count = 0;
    let capture = steady(name).capture(Point::Server).keep(|r| {
        let counts = r.is_of(C) && r.is_pure_ack();
        count += u32::from(counts);
        !(counts && (5..14).contains(&count))
    });
    Case::new(name, THEME, "sender", capture)
        .why("The capture lost nine acknowledgements in a row; the sender got them, for it went on beyond what the file says is acknowledged.")
        .readme(&[
            "The capture lost a row of acknowledgements of a clean download.",
            "The sender goes on with new data without a timeout; the client's IP identifications have a hole of nine.",
            "Real loss of that many acknowledgements would let the sender stop at its window and time out.",
        ])
}

fn lost_by_capture_both() -> Case {
    let name = "partial-capture-lost-everything-for-400-ms";
    let mut sim = Sim::new(seed(name), 24).download(&[(0, 160_000)]);
    sim.paths[1].rate_bps = 1_600_000;
    let capture = sim
        .capture(Point::Client)
        .keep(|r| !(300 * MS..700 * MS).contains(&r.time_ns));
    let span = capture.longest();
    Case::new(name, THEME, "receiver", capture)
        .stall(
            Stall::new(Towards::Client, span, &["unknown"])
                .sides(&["unknown"])
                .not(&["silent-path", "delay-spike", "application", "rto-tail", "ack-loss", "path-loss", "congestion", "policer", "pmtu-black-hole", "receiver-window-closed", "response-time"])
                .why("Nothing stalled: the capture lost all packets for 400 ms. Sequence numbers, IP identifications and timestamps jump by what went on meanwhile.")
                .optional(),
        )
        .readme(&[
            "The capture lost everything for 400 ms in the middle of a steady download.",
            "Across the gap the sequence number jumps by 80 kB, the IP identifications of both hosts by dozens, and the first acknowledgement behind it covers data that is not in the file.",
            "A silent path leaves no jump: the next packet goes on where the last one was, or repeats it.",
        ])
}

fn hole_and_pause() -> Case {
    let name = "partial-capture-lost-packets-before-an-application-pause";
    let sim = Sim::new(seed(name), 24).download(&[(0, 36_000), (1_100, 30_000)]);
    let capture = sim.capture(Point::Server);
    let drops: Vec<usize> = [20, 21].iter().map(|n| capture.data(S, *n)).collect();
    let capture = capture.without(&drops);
    let span = capture.longest();
    Case::new(name, THEME, "sender", capture)
        .stall(application(span, "The server's application paused for 1.1 s. Two data packets before it are missing in the file alone: they were acknowledged, and no repair follows."))
        .readme(&[
            "Two data packets before an application's pause are missing in the sender's own capture; the receiver acknowledges them at once.",
            "No duplicate acknowledgement, no SACK block, no retransmission: the packets were not lost, the capture was.",
            "A hole followed by a silence looks like a loss that waits for its timeout. A timeout would end it with a retransmission; new data ends it here.",
        ])
}

fn repair_not_captured() -> Case {
    let name = "partial-capture-lost-the-repair";
    let sim = Sim::new(seed(name), 40)
        .both(|p| p.recovery = Recovery::Sack)
        .path(S, |n| n.drop_data = vec![9])
        .turns(&[(0, 260, 4, 10 * 1448), (1_200, 260, 4, 8_000)]);
    let capture = sim.capture(Point::Client);
    let repair = capture
        .records
        .iter()
        .position(|r| r.is_of(S) && r.is_data() && r.time_ns > 200 * MS);
    let capture = capture.without(&repair.map_or(Vec::new(), |at| vec![at]));
    let span = capture.gaps(150).first().copied().unwrap_or((0, 0));
    Case::new(name, THEME, "receiver", capture)
        .stall(
            Stall::new(Towards::Client, span, &["rto-tail", "rto-other", "path-loss", "silent-path", "unknown"])
                .sides(&["network", "unknown"])
                .not(&["application", "response-time", "ack-loss", "delayed-ack", "receiver-window-closed", "pmtu-black-hole", "policer", "congestion"])
                .why("The last segment of an answer was lost and repaired by the timeout. The capture missed the repair; the receiver's acknowledgement of it is there.")
                .optional(),
        )
        .partial()
        .readme(&[
            "An answer's last segment is lost, and the timeout repairs it after 0.25 s. The receiver's capture lost the repair.",
            "The acknowledgement jumps over data that is not in the file: it came, unseen.",
            "It looks like an acknowledgement that was held back for 0.25 s.",
        ])
}

/// Frames are cut behind 66 bytes: SACK blocks are not in the file.
fn sack_cut() -> Case {
    let name = "partial-snaplen-cuts-sack-blocks";
    let sim = Sim::new(seed(name), 40)
        .both(|p| p.recovery = Recovery::Sack)
        .path(S, |n| n.drop_data = vec![14])
        .download(&[(0, 60_000)])
        .lose(S, 1, &[tcp_stacks::ground_truth::Why::Fast]);
    let mut capture = sim.capture(Point::Server);
    capture.snap_bytes = 66;
    let span = capture.longest();
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Client, span, &["rto-lost-retransmission"])
                .sides(NETWORK)
                .not(&["application", "response-time", "ack-loss", "receiver-window-closed", "pmtu-black-hole", "rto-tail", "rto-few-dupacks", "silent-path"])
                .why("A segment and its fast retransmission were lost; the timeout repaired it. The file keeps 66 bytes of each frame: the duplicate acknowledgements are there, their SACK blocks are not."),
        )
        .readme(&[
            "As rto-lost-retransmission-sender, in a capture with 66 bytes of each frame: headers with timestamps fit, SACK blocks do not.",
            "Frames with SACK blocks are longer on the wire than what is in the file: 78 bytes and more.",
            "Without the blocks only the number of duplicate acknowledgements is left.",
        ])
}

/// Each packet is in the file twice, as a mirror port of both directions gives it.
fn repeated(with_loss: bool) -> Case {
    let name = if with_loss {
        "partial-mirror-shows-packets-twice-lost-tail"
    } else {
        "partial-mirror-shows-packets-twice"
    };
    let mut sim = Sim::new(seed(name), 30).both(|p| p.recovery = Recovery::Sack);
    if with_loss {
        sim = sim
            .path(S, |n| n.drop_data = vec![18, 19])
            .download(&[(0, 20 * 1448)]);
    } else {
        sim = sim.download(&[(0, 36_000)]);
    }
    let mut capture = sim.capture(Point::Server);
    let mut records = Vec::new();
    for record in capture.records {
        let mut copy = record.clone();
        copy.time_ns += 3_000;
        copy.hop_limit -= 1;
        records.extend([record, copy]);
    }
    records.sort_by_key(|r| r.time_ns);
    capture.records = records;
    let span = capture.longest();
    let case = Case::new(name, THEME, "sender", capture);
    let case = if with_loss {
        case.stall(
            Stall::new(Towards::Client, span, &["rto-tail"])
                .sides(NETWORK)
                .not(&["application", "response-time", "ack-loss", "receiver-window-closed", "pmtu-black-hole", "rto-lost-retransmission", "reordering", "rto-few-dupacks"])
                .why("The last two segments were lost and the timeout repaired them. Each packet is in the file twice, before and behind a router, 3 microseconds apart."),
        )
    } else {
        case.why("Each packet is in the file twice, 3 microseconds apart with one hop less; the transfer has no trouble.")
    };
    case.readme(&[
        "A mirror port copies packets on their way into a router and out of it: each is in the file twice.",
        "The copies have the same IP identification and timestamps, and a hop limit lower by one.",
        "They look like needless retransmissions and duplicate acknowledgements.",
    ])
}

/// Each direction has its own VLAN tag.
fn vlans(with_loss: bool) -> Case {
    let name = if with_loss {
        "partial-vlan-differs-by-direction-lost-tail"
    } else {
        "partial-vlan-differs-by-direction-pause"
    };
    let mut sim = Sim::new(seed(name), 30).both(|p| p.recovery = Recovery::Sack);
    if with_loss {
        sim = sim
            .path(S, |n| n.drop_data = vec![18, 19])
            .download(&[(0, 20 * 1448)]);
    } else {
        sim = sim.download(&[(0, 24_000), (1_250, 24_000)]);
    }
    let capture = sim
        .capture(Point::Server)
        .edit(|_, r| r.vlan = Some(if r.is_of(C) { 110 } else { 220 }));
    let span = capture.longest();
    let case = Case::new(name, THEME, "sender", capture);
    let case = if with_loss {
        case.stall(
            Stall::new(Towards::Client, span, &["rto-tail"])
                .sides(NETWORK)
                .not(&["application", "response-time", "ack-loss", "receiver-window-closed", "pmtu-black-hole", "silent-path"])
                .why("The last two segments were lost and the timeout repaired them; acknowledgements before and behind are in the file, under the other tag."),
        )
    } else {
        case.stall(application(span, "The server's application paused with everything acknowledged; the acknowledgements have the other VLAN's tag."))
    };
    case.readme(&[
        "An asymmetric design: packets of the client come in VLAN 110, those of the server leave in VLAN 220.",
        "Addresses, ports and numbers match: it is one connection.",
        "Whoever takes the tag for a part of the connection's name sees two captures of one direction each, without acknowledgements.",
    ])
}

fn local(name: &str, writes: &[(u64, u64)]) -> Capture {
    let mut sim = Sim::new(seed(name), 0).both(|p| {
        p.mss = 65_483;
        p.receive_bytes = 524_288;
        p.send_bytes = 2_000_000;
    });
    sim.ids = Ids {
        addresses: [[127, 0, 0, 1]; 2],
        ..sim.ids
    };
    for path in &mut sim.paths {
        path.rate_bps = 0;
        path.delay_ns = 9_000;
    }
    // One interface sees each packet once.
    sim.download(writes).capture(Point::Server)
}

fn loopback() -> Case {
    let name = "partial-loopback-clean";
    Case::new(name, THEME, "both", local(name, &[(0, 1_500_000)]))
        .why("Both ends are on one host: segments of 64 kB within microseconds, nothing lost, nothing late.")
        .readme(&[
            "A transfer over the loopback interface, with both addresses 127.0.0.1.",
            "The MSS is 65483; round trips take microseconds.",
            "There is no network between the ends that could be at fault.",
        ])
}

fn loopback_pause() -> Case {
    let name = "partial-loopback-application-pause";
    let capture = local(name, &[(0, 600_000), (800, 600_000)]);
    let span = capture.longest();
    Case::new(name, THEME, "both", capture)
        .stall(application(span, "The sending application paused for 0.8 s; everything had been acknowledged within microseconds."))
        .readme(&[
            "As partial-loopback-clean, with a pause of the application of 0.8 s.",
            "All data is acknowledged before the pause.",
            "Only the ports tell the two ends apart.",
        ])
}

/// Client and server on one host behind a tunnel device: packets are seen at both ends' times.
fn tunnel_twice() -> Case {
    let name = "partial-tun-and-ethernet-in-one-file";
    let sim = Sim::new(seed(name), 30).download(&[(0, 30_000), (900, 20_000)]);
    let inner = sim.capture(Point::Server);
    // The same packets on the next interface of that host, masqueraded.
    let mut outer = inner
        .clone()
        .edit(|_, r| r.time_ns += if r.is_of(S) { 25_000 } else { 0 });
    outer.connections[0].addresses[1] = [203, 0, 113, 77];
    let outer = outer.edit(|_, r| r.hop_limit -= u8::from(r.is_of(S)));
    let span = inner.longest();
    let mut inner = inner.edit(|_, r| r.time_ns += if r.is_of(C) { 25_000 } else { 0 });
    inner = inner.merge(outer);
    Case::new(name, THEME, "sender", inner)
        .stall(application(span, "The server's application paused for 0.9 s. The same connection is in the file twice, with the server's address before and behind its translation."))
        .readme(&[
            "A capture of all interfaces on a host that translates addresses: each packet is there twice, with two addresses of the server.",
            "Sequence numbers, timestamps and IP identifications are the same in both.",
            "Both show the same pause of the application.",
        ])
}

fn finished(seed: u64, ids: &Ids, from: f64, bursts: &[u64]) -> (Script, f64) {
    let mut s = Script::new(seed, 20.0);
    s.ids = ids.clone();
    let t = s.open(from);
    let t = s.burst(C, t + 0.2, 1, 210);
    let t = s.bulk(S, t + 0.5, bursts);
    (s, t)
}

/// The same ports are used again a second after the first connection was closed.
fn ports_again() -> Case {
    let name = "partial-ports-used-again";
    let mut ids = crate::sim::names(seed(name));
    let (mut first, t) = finished(seed(name), &ids, 0.0, &[4, 8]);
    first.close(C, t + 5.0);
    ids.initial = [
        ids.initial[0].wrapping_add(900_000_000),
        ids.initial[1].wrapping_sub(700_000_000),
    ];
    let (mut second, t) = finished(seed(name), &ids, 2_400.0, &[4, 8]);
    second.close(C, t + 5.0);
    let capture = first
        .capture(Point::Client)
        .merge(second.capture(Point::Client));
    Case::new(name, THEME, "client", capture)
        .why("Two connections with the same ports, one after the other: 2.3 s between a FIN and the next SYN are no silence of either.")
        .readme(&[
            "A client uses its port again 2.3 s after it closed the first connection: new SYN, new first sequence numbers.",
            "Both connections are complete, from SYN to FIN.",
            "Taken for one connection it stalls for 2.3 s and then sends numbers from nowhere.",
        ])
}

fn opened_again_after_reset() -> Case {
    let name = "partial-connection-opened-again-after-reset";
    let mut ids = crate::sim::names(seed(name));
    let (mut first, t) = finished(seed(name), &ids, 0.0, &[4, 8]);
    first.raw(C, t + 2.0, first.next(C), 0, flag::RST | flag::ACK);
    ids.initial = [
        ids.initial[0].wrapping_add(77_000_000),
        ids.initial[1].wrapping_add(1_300_000_000),
    ];
    let (mut second, t) = finished(seed(name), &ids, 1_500.0, &[4, 6]);
    second.close(C, t + 5.0);
    let capture = first
        .capture(Point::Client)
        .merge(second.capture(Point::Client));
    Case::new(name, THEME, "client", capture)
        .why("The client resets a connection and opens a new one with the same ports 1.4 s later. Nothing waited.")
        .readme(&[
            "A client resets its connection after an answer and opens another one with the same ports 1.4 s later.",
            "RST ends the first, a SYN with a new sequence number begins the second.",
            "Taken for one connection, it is silent for 1.4 s.",
        ])
}

fn ends_in_the_middle() -> Case {
    let name = "partial-ends-in-the-middle";
    let capture = steady(name)
        .capture(Point::Server)
        .keep(|r| r.time_ns < 78 * MS);
    Case::new(name, THEME, "sender", capture)
        .why("The capture was stopped in the middle of a download: its last segments are not acknowledged in the file, and nothing is known about what followed.")
        .readme(&[
            "Somebody stopped the capture in the middle of a transfer.",
            "The last flight has no acknowledgement in the file.",
            "A file that ends is no silence.",
        ])
}

/// The same causes over IPv6.
fn version_six(with_loss: bool) -> Case {
    let name = if with_loss {
        "partial-none-ipv6-lost-tail"
    } else {
        "partial-none-ipv6-pause"
    };
    let mut sim = Sim::new(seed(name), 30).both(|p| p.recovery = Recovery::Sack);
    if with_loss {
        sim = sim
            .path(S, |n| n.drop_data = vec![18, 19])
            .download(&[(0, 20 * 1428)]);
    } else {
        sim = sim.download(&[(0, 24_000), (1_250, 24_000)]);
    }
    let sim = sim.both(|p| p.mss = 1_440);
    let capture = sim.capture(Point::Server).in_ipv6();
    let span = capture.longest();
    let case = Case::new(name, THEME, "sender", capture);
    let case = if with_loss {
        case.stall(
            Stall::new(Towards::Client, span, &["rto-tail"])
                .sides(NETWORK)
                .not(&[
                    "application",
                    "response-time",
                    "ack-loss",
                    "receiver-window-closed",
                    "pmtu-black-hole",
                    "silent-path",
                ])
                .why("The last two segments were lost and the timeout repaired them."),
        )
    } else {
        case.stall(application(
            span,
            "The server's application paused with everything acknowledged.",
        ))
    };
    case.readme(&[
        "A whole capture of a connection over IPv6.",
        "TCP is the same; there are no IP identifications, and the MSS is 1440.",
        "Tools that tell the order or the loss of packets by IP identifications have none here.",
    ])
}
