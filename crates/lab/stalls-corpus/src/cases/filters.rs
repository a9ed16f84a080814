// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures that a filter thinned out, or that have one direction alone.

use tcp_stacks::ground_truth::Why;
use tcp_stacks::world::Point;

use crate::case::{Case, Stall, Towards};
use crate::ends::{C, S, at, seed};
use crate::record::Record;
use crate::sim::Sim;

const THEME: &str = "filtered-captures";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for place in ["sender", "receiver", "middle"] {
        cases.push(only_data(place));
        cases.push(data_direction(place));
    }
    cases.extend([
        no_acks_of_receiver(),
        acks_direction("receiver"),
        acks_direction("sender"),
        data_direction_with_loss(),
        acks_direction_with_loss(),
        person(),
        real_loss(),
    ]);
    cases
}

/// A download with a pause of the server's application.
fn paused(name: &str) -> Sim {
    Sim::new(seed(name), 30).download(&[(0, 24_000), (1400, 24_000), (700, 16_000)])
}

fn application(span: (u64, u64)) -> Stall {
    Stall::new(Towards::Client, span, &["application", "unknown"])
        .sides(&["sender", "unknown"])
        .not(&["ack-loss", "silent-path", "delay-spike", "rto-tail", "rto-other", "path-loss", "pmtu-black-hole", "congestion", "policer", "receiver-window-closed", "delayed-ack"])
        .why("The server's application paused. All data had arrived; the acknowledgements are missing in the file alone, because a filter left them out.")
}

fn only_data(place: &'static str) -> Case {
    let name = format!("filter-only-data-packets-{place}");
    let capture = paused(&name).capture(at(S, place)).keep(Record::is_data);
    let gaps = capture.gaps(400);
    Case::new(&name, THEME, place, capture)
        .stalls(&gaps, application)
        .readme(&[
            "The file was written through the filter \"tcp.len > 0\": there is no handshake and no packet without data. The server's application pauses for 1.4 s and for 0.7 s.",
            "Nothing is retransmitted, and each pause ends with new data. A sender without acknowledgements could not go on beyond its window: they came, and the filter took them.",
            "It looks like lost acknowledgements. After those, a timeout retransmits.",
        ])
}

fn no_acks_of_receiver() -> Case {
    let name = "filter-no-pure-acknowledgements-of-the-receiver";
    let capture = paused(name)
        .capture(Point::Server)
        .keep(|r| !(r.is_of(C) && r.is_pure_ack()));
    let gaps = capture.gaps(400);
    Case::new(name, THEME, "sender", capture)
        .stalls(&gaps, application)
        .readme(&[
            "A download whose handshake and request are in the file; a display filter left out the client's pure acknowledgements. The server's application pauses twice.",
            "The client's only packets are SYN, request and FIN. The server goes on with new data far beyond what is acknowledged in the file.",
            "Lost acknowledgements look the same up to the timeout, which does not come here.",
        ])
}

fn data_direction(place: &'static str) -> Case {
    let name = format!("filter-data-direction-alone-{place}");
    let capture = paused(&name).capture(at(S, place)).keep(|r| r.is_of(S));
    let gaps = capture.gaps(400);
    Case::new(&name, THEME, place, capture)
        .stalls(&gaps, application)
        .readme(&[
            "A tap that sees one direction (an optical splitter with one fibre): the server's packets alone. Its application pauses twice.",
            "Nothing is retransmitted; new data ends each pause.",
            "Whether acknowledgements came late cannot be known. That a sender without any would have retransmitted is known.",
        ])
}

fn acks_direction(place: &'static str) -> Case {
    let name = format!("filter-acknowledgements-alone-{place}");
    let capture = paused(&name).capture(at(S, place)).keep(|r| r.is_of(C));
    let gaps = capture.gaps(400);
    Case::new(&name, THEME, place, capture)
        .stalls(&gaps, |span| application(span).optional())
        .readme(&[
            "One direction alone: the client's packets, all but the request acknowledgements. The server's application pauses twice.",
            "No acknowledgement is repeated, and none has SACK blocks: nothing was lost. The acknowledgements stop and go on.",
            "Who stopped cannot be known from this direction; that nothing was lost can.",
        ])
}

fn data_direction_with_loss() -> Case {
    let name = "filter-data-direction-alone-with-a-lost-tail";
    let sim = Sim::new(seed(name), 40)
        .stack(S, |p| p.recovery = tcp_stacks::profile::Recovery::Sack)
        .path(S, |n| n.drop_data = vec![14, 15])
        .download(&[(0, 16 * 1448), (900, 20_000)]);
    let capture = sim.capture(Point::Server).keep(|r| r.is_of(S));
    let gaps = capture.gaps(150);
    let span = gaps.first().copied().unwrap_or((0, 0));
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Client, span, &["rto-tail", "rto-other", "ack-loss", "unknown"])
                .sides(&["network", "unknown"])
                .not(&["application", "response-time", "receiver-window-closed", "pmtu-black-hole", "policer", "congestion"])
                .why("The last two segments before a pause of the application were lost; the timeout repaired them."),
        )
        .partial()
        .readme(&[
            "The server's direction alone. The last two segments of a write are lost; the sender's timeout of 240 ms fires, then it repairs.",
            "The packets of the file show two retransmissions behind a silence as long as a timeout. The acknowledgements of them are not in the file.",
            "It looks like a pause of the application up to the retransmission; what ends the silence tells.",
        ])
}

fn acks_direction_with_loss() -> Case {
    let name = "filter-acknowledgements-alone-with-a-lost-retransmission";
    let sim = Sim::new(seed(name), 40)
        .stack(S, |p| p.recovery = tcp_stacks::profile::Recovery::Sack)
        .path(S, |n| n.drop_data = vec![12])
        .download(&[(0, 60_000)])
        .lose(S, 1, &[Why::Fast]);
    let capture = sim.capture(Point::Client).keep(|r| r.is_of(C));
    let span = capture.longest();
    Case::new(name, THEME, "receiver", capture)
        .stall(
            Stall::new(Towards::Client, span, &["rto-lost-retransmission", "rto-other", "path-loss", "silent-path", "unknown"])
                .sides(&["network", "unknown"])
                .not(&["application", "response-time", "receiver-window-closed", "ack-loss", "pmtu-black-hole", "delayed-ack"])
                .why("A segment and its retransmission were lost: the acknowledgement number stands still with growing SACK blocks, then nothing for a timeout, then it jumps."),
        )
        .partial()
        .readme(&[
            "The client's direction alone. A segment of the server is lost, and so is its repair; only the timeout brings it.",
            "The acknowledgements repeat one number with SACK blocks that grow; after a silence the number jumps over all of it.",
            "An idle server looks like the silence alone: but then there would be no SACK blocks before it.",
        ])
}

fn person() -> Case {
    let name = "filter-only-data-packets-of-a-person";
    let sim = Sim::new(seed(name), 30).turns(&[
        (0, 300, 12, 9_000),
        (4200, 320, 9, 12_000),
        (7800, 280, 15, 7_000),
    ]);
    let capture = sim.capture(Point::Client).keep(Record::is_data);
    Case::new(name, THEME, "client", capture)
        .why("A person reads for seconds between three requests; each request is answered at once. The file has the packets with data alone.")
        .readme(&[
            "A person asks for three pages and reads each for seconds. A filter kept the packets with data.",
            "Each silence begins behind an answer and ends with a request: nobody waited for the network.",
            "Without the acknowledgements the last segments before each silence are not acknowledged in the file until the next request does it.",
        ])
}

fn real_loss() -> Case {
    let name = "filter-only-data-packets-with-acknowledgements-lost";
    let mut s = crate::script::Script::new(seed(name), 30.0);
    let t = s.warm() + 0.4;
    let full = s.full();
    let first = s.flight(S, t, 4, full);
    for n in 0..4_u32 {
        s.again(
            S,
            t + 240.0 + 0.05 * f64::from(n),
            first + full * u64::from(n),
            full,
        );
    }
    s.ack(C, t + 256.0);
    let t = s.bulk(S, t + 272.0, &[4, 4]);
    s.close(S, t);
    let capture = s.capture(Point::Client).keep(Record::is_data);
    let span = capture.longest();
    Case::new(name, THEME, "receiver", capture)
        .stall(
            Stall::new(Towards::Client, span, &["ack-loss", "rto-other", "unknown"])
                .sides(&["network", "unknown", "receiver"])
                .not(&["application", "response-time", "rto-tail", "path-loss", "congestion", "policer", "pmtu-black-hole", "silent-path", "rto-few-dupacks", "rto-lost-retransmission", "tail-loss-probe"])
                .why("The receiver's capture has all four segments before the silence, and all four again behind it: the data was there, and the sender had not learnt of it."),
        )
        .readme(&[
            "The receiver's capture through the filter \"tcp.len > 0\". Its acknowledgements of four segments got lost; the timeout sends all four again.",
            "Each segment is in the file twice, in order: the first copies arrived.",
            "A lost tail would be there once in the receiver's capture.",
        ])
}
