// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds waits before the first data: for the connection, for the first request, and for the
//! first answer.

use units::time::NS_PER_MS;

use super::finding::in_order;
use super::{heartbeats, idle};
use crate::analysis::{Stall, StallKind};
use crate::cause::{Cause, Confidence, Side};
use crate::connection::Connection;
use crate::direction::Direction;
use crate::flow::Flow;
use crate::flow::at::At;
use crate::flow::facts::Packets;
use crate::flow::state::data::FirstData;
use crate::roles;
use crate::vantage::{View, ms};

/// Shortest time after which a SYN is retransmitted; a sooner repeat has a reason of its own.
const REPEATED_NS: u64 = 100 * NS_PER_MS;

/// Returns all waits of a connection. `flows` and `views` are the client's and the server's, in
/// this order.
pub(crate) fn waits(
    connection: &Connection,
    flows: [&Flow; 2],
    views: [View; 2],
    start_ns: u64,
) -> Vec<Stall> {
    let mut waits: Vec<Stall> = repeated(connection, flows, start_ns)
        .or_else(|| slow_handshake(connection, flows, views, start_ns))
        .into_iter()
        .collect();
    waits.extend(first_request(connection, flows, start_ns));
    waits.extend(first_response(connection, flows, views, start_ns));
    waits
}

/// A wait, without the round trip between the capture and the side that was waited for.
struct Span {
    took_ns: u64,
    /// The packet that began the wait; below, the one that ended it.
    from: u64,
    to: At,
}

fn wait(
    span: &Span,
    direction: Direction,
    cause: (Cause, Side, Confidence),
    explanation: String,
    start_ns: u64,
) -> Stall {
    let (cause, side, confidence) = cause;
    Stall {
        direction,
        start_ns: (span.to.now - span.took_ns).saturating_sub(start_ns),
        duration_ns: span.took_ns,
        kind: StallKind::Wait,
        bytes_cost: None,
        cause,
        root: None,
        side,
        confidence,
        evidence: in_order(vec![span.from, span.to.packet.get()]),
        count: 1,
        explanation,
        advice: cause.advice().to_owned(),
        asked: crate::predictions::Answers::default(),
        number: None,
    }
}

/// Returns the round trip from the capture to the server and back, as data shows it.
fn server_way_ns(flows: [&Flow; 2]) -> Option<u64> {
    let answered_ns = flows[0].trips.measured_receiver_rtt_ns();
    answered_ns.or(flows[1].trips.sender_side.min())
}

/// Finds one SYN whose one answer came far later than data is acknowledged afterwards.
fn slow_handshake(
    connection: &Connection,
    flows: [&Flow; 2],
    views: [View; 2],
    start_ns: u64,
) -> Option<Stall> {
    let (syn, answer) = connection.handshake.syn.zip(connection.handshake.syn_ack)?;
    let took_ns = answer.now.saturating_sub(syn.now);
    let rtt_ns = server_way_ns(flows)?;
    if took_ns < rtt_ns.saturating_add(idle::wait_least_ns(Some(rtt_ns))) {
        return None;
    }
    // The handshake was one round trip, and a host on the way acknowledges data.
    let beyond = flows[1].first_data().map(|first| {
        let asked_ns = first.asked.map_or(0, |asked| asked.now);
        let times_ns = (asked_ns, first.settled_ns, first.at.now);
        idle::Beyond::of(times_ns, Some(took_ns), flows[1])
    });
    if beyond == Some(idle::Beyond::Nothing) {
        return None;
    }
    let text = format!(
        "the SYN was answered after {}, where data was later answered within {}",
        ms(took_ns),
        ms(rtt_ns)
    );
    let span = Span {
        took_ns,
        from: syn.packet.get(),
        to: answer,
    };
    // At the server only the server lies between the two packets, or what answers for it: a
    // tunnel's end answers when the far end has.
    let confidence = match views[1] {
        _ if beyond == Some(idle::Beyond::Little) => Confidence::Low,
        View::Sender => Confidence::Medium,
        _ => Confidence::High,
    };
    let cause = (Cause::ConnectionSetup, Side::Unknown, confidence);
    Some(wait(&span, Direction::ToClient, cause, text, start_ns))
}

/// Finds a client that sent its first request late after the connection was set up.
fn first_request(connection: &Connection, flows: [&Flow; 2], start_ns: u64) -> Option<Stall> {
    let ready = connection.handshake.ack?;
    let FirstData {
        at: first, asked, ..
    } = flows[0].first_data()?;
    let way_ns = flows[0].trips.sender_rtt_ns().unwrap_or(0);
    let took_ns = first.now.saturating_sub(ready.now);
    if asked.is_some() || took_ns < idle::wait_least_ns(Some(way_ns)) {
        return None;
    }
    // Browsers and pools of connections set one up before they need it.
    let confidence = Confidence::Low;
    let text = format!(
        "the client sent its first data {} after the connection was set up",
        ms(took_ns)
    );
    let span = Span {
        took_ns,
        from: ready.packet.get(),
        to: first,
    };
    let cause = (Cause::Application, Side::Sender, confidence);
    Some(wait(&span, Direction::ToServer, cause, text, start_ns))
}

/// Finds a server whose first data came late, after a request or without one.
fn first_response(
    connection: &Connection,
    flows: [&Flow; 2],
    views: [View; 2],
    start_ns: u64,
) -> Option<Stall> {
    let FirstData {
        at: first,
        asked,
        settled_ns,
    } = flows[1].first_data()?;
    if !roles::are_known(connection) || asked.is_some_and(|asked| settled_ns < asked.now) {
        return None; // the client's next request looks the same, or the request had not arrived
    }
    if heartbeats::begin(flows[1]) {
        return None;
    }
    let handshake_ns = flows[1].trips.handshake_sender_ns;
    let beyond = asked.map_or(idle::Beyond::Unknown, |asked| {
        idle::Beyond::of((asked.now, settled_ns, first.now), handshake_ns, flows[1])
    });
    if beyond == idle::Beyond::Nothing {
        return None;
    }
    let ready = connection.handshake.ack;
    let from = asked.or(ready)?;
    let way_ns = server_way_ns(flows).or(flows[1].trips.sender_rtt_ns());
    let way_ns = way_ns.unwrap_or(0);
    let took_ns = first.now.saturating_sub(from.now).saturating_sub(way_ns);
    if took_ns < idle::wait_least_ns(Some(way_ns)) {
        return None;
    }
    let is_way = asked.is_some_and(|asked| idle::was_way_late(asked.now, settled_ns, first.now));
    let after = match asked {
        None => "the connection was set up",
        Some(_) => "the request",
    };
    let text = format!("the server's first data came {} after {after}", ms(took_ns));
    // Without the handshake, what the capture begins with need not be the first request.
    // What is acknowledged late, or by its answer alone, may have come late.
    let had_it = asked.is_none() || first.now.saturating_sub(settled_ns) >= took_ns / 2;
    let confidence = match views[1] {
        _ if connection.handshake.client.is_none() => Confidence::Low,
        View::Sender => Confidence::High,
        _ if !had_it || beyond == idle::Beyond::Little => Confidence::Low,
        _ => Confidence::Medium,
    };
    let span = Span {
        took_ns,
        from: from.packet.get(),
        to: first,
    };
    let cause = if is_way {
        // Its host's acknowledgement was as late.
        (Cause::DelaySpike, Side::Network, Confidence::Low)
    } else {
        (Cause::ResponseTime, Side::Sender, confidence)
    };
    Some(wait(&span, Direction::ToClient, cause, text, start_ns))
}

/// Returns when the setup was over, as far as the capture shows: the client's first
/// acknowledgement, else a reset before anything else, else the last packet of the handshake.
/// Where one direction alone was captured, that is the least that the setup took.
fn setup_end(connection: &Connection, flows: [&Flow; 2]) -> Option<At> {
    let handshake = &connection.handshake;
    if handshake.ack.is_some() {
        return handshake.ack;
    }
    let own = handshake.syns.count() + handshake.syn_acks.count();
    let nothing_else = flows.iter().all(|flow| flow.first_data().is_none())
        && connection.packets <= own.saturating_add(1);
    let last = handshake.last_syn.into_iter().chain(handshake.last_syn_ack);
    let last = last.max_by_key(|at| at.packet);
    handshake.reset.filter(|_| nothing_else).or(last)
}

/// Finds a SYN, or an answer to it, that was sent more than once.
fn repeated(connection: &Connection, flows: [&Flow; 2], start_ns: u64) -> Option<Stall> {
    let handshake = &connection.handshake;
    let begun = handshake.syn.or(handshake.syn_ack)?;
    let second = handshake.syns.iter().nth(1).unwrap_or(u64::MAX);
    if handshake
        .reset
        .is_some_and(|reset| reset.packet.get() < second)
        && handshake.syn_ack.is_none()
    {
        return None; // it was refused at once, and the client tries again by itself
    }
    let (syns, answers) = (handshake.syns.count(), handshake.syn_acks.count());
    let ended = setup_end(connection, flows)?;
    // What was sent again after the end is of no account: its answer had been lost.
    let again = |packets: &Packets| {
        packets
            .iter()
            .nth(1)
            .is_some_and(|p| p <= ended.packet.get())
    };
    if !again(&handshake.syns) && !again(&handshake.syn_acks) {
        return None;
    }
    let duration_ns = ended.now.saturating_sub(begun.now);
    if duration_ns < REPEATED_NS {
        return None;
    }
    let explanation = match (answers, handshake.ack) {
        (0, _) if handshake.reset.is_some() => {
            format!("{syns} SYNs, then a reset after {}", ms(duration_ns))
        }
        (0, _) if connection.packets > syns => format!(
            "{syns} SYNs in {}; what answered them is not in the capture",
            ms(duration_ns)
        ),
        (0, _) => format!("{syns} SYNs in {}, and no answer", ms(duration_ns)),
        (_, Some(_)) => format!(
            "set up after {}, with {syns} SYNs and {answers} answers to them",
            ms(duration_ns)
        ),
        (_, None) => format!(
            "{syns} SYNs and {answers} answers in {}, and no acknowledgement of the client in the \
             capture",
            ms(duration_ns)
        ),
    };
    let mut packets: Vec<u64> = handshake
        .syns
        .iter()
        .chain(handshake.syn_acks.iter())
        .collect();
    packets.push(ended.packet.get());
    packets.retain(|&packet| packet <= ended.packet.get());
    // A client that asks once has the answer: the acknowledgement of that was lost, and the
    // server waits. From the server's packets alone the client's are not to be told.
    let (direction, confidence) = match (syns, handshake.ack) {
        (0, _) => (Direction::ToClient, Confidence::Low),
        (1, Some(_)) => (Direction::ToClient, Confidence::High),
        (1, None) => (Direction::ToClient, Confidence::Medium),
        _ => (Direction::ToServer, Confidence::High),
    };
    Some(Stall {
        direction,
        start_ns: begun.now.saturating_sub(start_ns),
        duration_ns,
        kind: StallKind::Silence,
        bytes_cost: None,
        cause: Cause::ConnectionSetup,
        root: None,
        side: Side::Unknown,
        confidence,
        evidence: in_order(packets),
        count: 1,
        explanation,
        advice: Cause::ConnectionSetup.advice().to_owned(),
        asked: crate::predictions::Answers::default(),
        number: None,
    })
}
