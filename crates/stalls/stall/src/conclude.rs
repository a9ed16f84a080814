// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the conclusions from a connection once all of it was read.

use capture::segment::Endpoint;

use crate::analysis::{self, Place, Stall};
use crate::cause::Confidence;
use crate::connection::Connection;
use crate::direction::Direction;
use crate::flow::Flow;
use crate::roles;
use crate::rules::{self, Context, Origin};
use crate::vantage::{self, View};
use crate::verdict::verdict;

/// A client that sends so many times what it receives sends a file.
const UPLOAD_SHARE: u64 = 4;
/// Less than this is no file worth speaking of.
const UPLOAD_LEAST_BYTES: u64 = 10_000;
/// Segments that no receiver leaves without an acknowledgement of their own.
const FILTERED_LEAST: u64 = 6;

/// Where a connection was captured, as seen from both flows, the client's first.
fn views(vantage: &analysis::Vantage) -> [View; 2] {
    let place = match vantage.confidence {
        Confidence::Low => Place::Unknown,
        _ => vantage.place,
    };
    [true, false].map(|is_client| View::of(place, is_client))
}

/// Judges the pauses of which nothing more can be learnt at time `now_ns`, by what is known of
/// the connection so far, and forgets them. Returns the stalls among them, in order, and the
/// client's and the server's end.
pub(crate) fn settled(
    connection: &mut Connection,
    now_ns: u64,
    start_ns: u64,
) -> (Vec<Stall>, [Endpoint; 2]) {
    let client = roles::client(connection);
    let ends = [client, 1 - client];
    let facts = ends.map(|end| connection.flows[end].take_settled(now_ns));
    let vantage = vantage::find(connection, client);
    let flows = ends.map(|end| &connection.flows[end]);
    let origins = flows.map(rules::origin);
    let contexts = contexts(connection, flows, &origins, views(&vantage), start_ns);
    let mut stalls = Vec::new();
    for (facts, context) in facts.iter().zip(&contexts) {
        stalls.extend(rules::pauses(facts, context).0);
    }
    leave_out_short(&mut stalls, flows[0].least_ns());
    weigh(&mut stalls, &vantage, connection.confidence_most);
    (stalls, ends.map(|end| connection.ends[end]))
}

fn leave_out_short(stalls: &mut Vec<Stall>, least_ns: Option<u64>) {
    stalls.retain(|stall| stall.duration_ns >= least_ns.unwrap_or(0));
}

const DIRECTIONS: [Direction; 2] = [Direction::ToServer, Direction::ToClient];

/// Returns what the rules look at besides facts, of the client's and of the server's flow.
fn contexts<'a>(
    connection: &Connection,
    flows: [&'a Flow; 2],
    origins: &'a [Option<Origin>; 2],
    views: [View; 2],
    start_ns: u64,
) -> [Context<'a>; 2] {
    let knows_roles = roles::are_known(connection);
    let bytes = |flow: &Flow| flow.counts().bytes;
    let first_ns = |flow: &Flow| flow.first_data().map_or(u64::MAX, |first| first.at.now);
    let has_client_begun =
        connection.handshake.syn.is_some() && first_ns(flows[0]) < first_ns(flows[1]);
    std::array::from_fn(|index| Context {
        flow: flows[index],
        receiver_clock: &flows[1 - index].sender_clock,
        direction: DIRECTIONS[index],
        view: views[index],
        origin: origins[index].as_ref(),
        is_client: index == 0,
        is_upload: index == 0
            && bytes(flows[0]) >= (UPLOAD_SHARE * bytes(flows[1])).max(UPLOAD_LEAST_BYTES),
        knows_roles,
        has_client_begun,
        start_ns,
        is_patchy: is_patchy(flows[index]),
        is_filtered: is_filtered(flows[index]),
        is_subflow: false,
    })
}

/// Orders stalls by time, and believes them less where the place of the capture is not sure, or the
/// capture says that it is not to be relied on.
fn weigh(stalls: &mut [Stall], vantage: &analysis::Vantage, most: Confidence) {
    for stall in stalls.iter_mut() {
        stall.confidence = stall.confidence.min(most);
    }
    if vantage.confidence < Confidence::High {
        stalls.iter_mut().for_each(believe_less);
    }
    stalls.sort_by_key(|stall| {
        (
            stall.start_ns,
            stall.direction,
            stall.duration_ns,
            stall.cause,
        )
    });
}

/// Believes no more of results that were drawn before it was known how far the capture goes.
pub(crate) fn believed(mut of: analysis::Connection, most: Confidence) -> analysis::Connection {
    if of.stalls.iter().any(|stall| stall.confidence > most) {
        for stall in &mut of.stalls {
            stall.confidence = stall.confidence.min(most);
        }
        of.verdict = verdict(&of);
    }
    of
}

/// Returns the results of a connection. Times count from `start_ns`.
/// `is_subflow`: whether others carry data of the same stream.
pub(crate) fn conclude(
    mut connection: Connection,
    start_ns: u64,
    is_subflow: bool,
) -> analysis::Connection {
    connection.end();
    let client = roles::client(&connection);
    let vantage = vantage::find(&connection, client);
    let ends = [client, 1 - client];
    let flows = ends.map(|end| &connection.flows[end]);
    let origins = flows.map(rules::origin);
    let mut summaries = flows.map(Flow::summary);
    let views = views(&vantage);
    let mut contexts = contexts(&connection, flows, &origins, views, start_ns);
    for context in &mut contexts {
        context.is_subflow = is_subflow;
    }
    let mut stalls = rules::waits(&connection, flows, views, start_ns);
    for (context, summary) in contexts.iter().zip(&mut summaries) {
        let (found, idle) = rules::stalls(context.flow, context);
        stalls.extend(found);
        summary.idle = idle;
    }
    let least_ns = flows[0].least_ns();
    leave_out_short(&mut stalls, least_ns);
    weigh(&mut stalls, &vantage, connection.confidence_most);
    let notes = notes(&connection, flows, &vantage);
    let mut result = analysis::Connection {
        client: connection.ends[client],
        server: connection.ends[1 - client],
        encapsulation: connection.encapsulation,
        start_ns: connection.first_ns.saturating_sub(start_ns),
        duration_ns: connection.last.now.saturating_sub(connection.first_ns),
        packets: connection.packets,
        begin_seen: connection.handshake.client.is_some(),
        end_seen: connection.reset.is_some() || connection.fins == [true; 2],
        vantage,
        verdict: String::new(),
        flows: summaries.into(),
        stalls,
        notes,
        least_ns,
        passing_bps: [0, 1].map(|index: usize| origins[index].as_ref()?.rate_bps),
        history: history(&mut connection, client, start_ns),
    };
    result.verdict = verdict(&result);
    result
}

fn history(connection: &mut Connection, client: usize, start_ns: u64) -> Option<crate::History> {
    let mut history = connection.recorder.take()?.finish(start_ns);
    if client == 1 {
        for event in &mut history.events {
            event.direction = match event.direction {
                Direction::ToServer => Direction::ToClient,
                Direction::ToClient => Direction::ToServer,
            };
        }
    }
    Some(history)
}

/// Lowers the confidence of causes that depend on the place of the capture, because that place
/// is not sure.
fn believe_less(stall: &mut Stall) {
    if stall.cause.follows_from_place() {
        stall.confidence = stall.confidence.min(Confidence::Medium);
    }
}

/// Returns whether the capture lacks packets of the flow: more than one byte in a thousand.
fn is_patchy(flow: &Flow) -> bool {
    let counts = flow.counts();
    counts.unseen_bytes > 0 && counts.unseen_bytes * 1000 > counts.bytes
}

/// Returns whether the capture was written through a filter that took the receiver's
/// acknowledgements without data away, such as the name of a protocol above TCP: it has none of
/// them, and data was answered later than any receiver holds an acknowledgement back, or far less
/// often than each second segment (RFC 9293, 3.8.6.3).
fn is_filtered(flow: &Flow) -> bool {
    let counts = flow.counts();
    let seldom = counts.data_packets >= 3 * counts.acks + FILTERED_LEAST;
    counts.acks > 0 && counts.pure_acks == 0 && (counts.late_answers > 0 || seldom)
}

fn notes(connection: &Connection, flows: [&Flow; 2], vantage: &analysis::Vantage) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |applies: bool, text: String| {
        if applies {
            notes.push(text);
        }
    };
    note(
        vantage.place == Place::Unknown,
        "where it was captured is not known: causes that depend on it are less sure".to_owned(),
    );
    note(
        connection.backwards > 0,
        format!(
            "{} packets have times before the packet ahead of them",
            connection.backwards
        ),
    );
    for (flow, to) in flows.into_iter().zip(["server", "client"]) {
        notes.extend(filter_note(flow, to));
        notes.extend(flow_notes(flow, to));
    }
    notes
}

fn filter_note(flow: &Flow, to: &str) -> Option<String> {
    is_filtered(flow).then(|| {
        format!(
            "no acknowledgement without data from the {to} was captured, as through a display \
             filter: only repairs and late answers to the {to} are judged"
        )
    })
}

fn flow_notes(flow: &Flow, to: &str) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |applies: bool, text: String| {
        if applies {
            notes.push(text);
        }
    };
    let counts = flow.counts();
    let data = flow.has_data();
    note(
        data && !flow.scale_known() && counts.acks > 0,
        format!(
            "window scale of the {to} not known (not both SYNs were captured with all their \
             options): only closed windows are judged"
        ),
    );
    note(
        counts.unseen_bytes > 0,
        format!(
            "{} bytes to the {to} were acknowledged and never captured: the capture lost \
             packets",
            counts.unseen_bytes
        ),
    );
    note(
        data && counts.acks == 0,
        format!("no acknowledgement from the {to} was captured: one direction only"),
    );
    note(
        counts.forgotten > 0,
        format!(
            "{} segments to the {to} were too many under way to remember",
            counts.forgotten
        ),
    );
    note(
        counts.reports_beyond > 0,
        format!(
            "{} SACK blocks from the {to} made more ranges than are remembered: what they \
             report counts as lost until it is acknowledged",
            counts.reports_beyond
        ),
    );
    note(
        counts.repeats_beyond > 0,
        format!(
            "{} retransmissions to the {to} repeat more segments than one is noted of: the \
             rest counts as sent once",
            counts.repeats_beyond
        ),
    );
    note(
        counts.jumps > 0,
        format!(
            "{} segments to or from the {to} have numbers out of all windows",
            counts.jumps
        ),
    );
    note(
        counts.ce_marked > 0,
        format!(
            "{} segments to the {to} were marked \"congestion experienced\" before the capture: a \
             queue on the way asked the sender to slow down",
            counts.ce_marked
        ),
    );
    note(
        counts.ecn_echoes > 0,
        format!(
            "{} acknowledgements from the {to} echo marks of congestion: a queue on the way asked \
             the sender to slow down",
            counts.ecn_echoes
        ),
    );
    note(
        counts.copies > 0,
        format!(
            "{} packets to the {to} are in the capture twice",
            counts.copies
        ),
    );
    note(
        counts.options_cut > 0,
        format!(
            "TCP options of {} segments from the {to} were cut off: SACK blocks and \
             timestamps may be missing",
            counts.options_cut
        ),
    );
    note(
        flow.dropped() > 0,
        format!(
            "{} shorter stops to the {to} are not listed",
            flow.dropped()
        ),
    );
    notes
}
