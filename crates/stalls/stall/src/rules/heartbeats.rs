// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells messages that each side sends by its own clock from answers that come late: keep-alives of
//! BGP, heartbeats of FIX. They keep their interval, whenever the other side sent its own.

use units::time::{NS_PER_MS, NS_PER_S};

use super::finding::Context;
use crate::flow::Flow;
use crate::flow::facts::{Closed, Facts};

/// Shorter intervals are those of work that repeats, not of heartbeats.
const INTERVAL_LEAST_NS: u64 = 5 * NS_PER_S;
/// Smallest size of a full segment (RFC 9293, 3.7.1): without the SYN, the largest one seen is no other.
const MSS_LEAST_BYTES: u64 = 536;
/// Intervals that differ by less than this part are equal.
const ALIKE: u64 = 50;
/// A late answer of always the same length keeps its interval, too, if the other side asks as soon
/// as it can. A clock is known by what the other side does: between a heartbeat and its last message
/// before lies at least this part of the interval, or not always the same time; or the other side
/// answers each after a constant time that is short beside the interval.
const APART: u64 = 10;

/// A message of the side: when it came, when the other side had sent its last before, and whether
/// it is a small one.
struct Event {
    at_ns: u64,
    peer_ns: u64,
    is_small: bool,
}

/// Whether a message is a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Beat {
    No,
    /// It keeps its interval, and the other side asks as soon as it can: a timer's, or an answer that
    /// always takes as long.
    Perhaps,
    Yes,
}

/// Returns of each pause whether it ended with a heartbeat.
pub(super) fn of(facts: &[Facts], context: &Context<'_>) -> Vec<Beat> {
    if !context.knows_roles || context.is_client {
        return vec![Beat::No; facts.len()]; // a client's pauses are its own affair
    }
    let mut beats = beats(&events(context.flow, facts));
    beats.drain(..beats.len() - facts.len());
    beats
}

/// Returns whether the first message of a server is one of others that keep their interval.
pub(super) fn begin(flow: &Flow) -> bool {
    let facts = flow.stalls();
    let events = events(flow, &facts);
    let Some(first) = flow.first_data().filter(|_| events.len() > facts.len()) else {
        return false;
    };
    match (first.asked, events.as_slice()) {
        // Nobody had asked for it.
        (None, [a, b, c, ..]) => are_regular([a, b, c]),
        _ => beats(&events)[0] == Beat::Yes,
    }
}

/// Returns the messages that ended pauses, and before them the first message of all, which ended none.
fn events(flow: &Flow, facts: &[Facts]) -> Vec<Event> {
    let first = flow.first_data().map(|first| Event {
        at_ns: first.at.now,
        peer_ns: first.asked.map_or(0, |asked| asked.now),
        is_small: true,
    });
    let begin_ns = facts.first().map_or(u64::MAX, |facts| facts.end_ns);
    let first = first.filter(|first| first.at_ns < begin_ns);
    let others = facts.iter().map(|facts| Event {
        at_ns: facts.end_ns,
        peer_ns: facts.peer.data_ns(),
        is_small: is_message(facts),
    });
    first.into_iter().chain(others).collect()
}

fn beats(events: &[Event]) -> Vec<Beat> {
    let mut beats = vec![Beat::No; events.len()];
    for (place, three) in events.windows(3).enumerate() {
        if let [a, b, c] = three {
            let is_small = three.iter().all(|event| event.is_small);
            let is_own = || is_apart(a, b) && is_apart(b, c) || is_own_clock(a, b, c);
            let beat = if !are_regular([a, b, c]) {
                Beat::No
            } else if is_small && is_own() {
                Beat::Yes
            } else if is_asked_soon(a, b) && is_asked_soon(b, c) {
                Beat::Perhaps
            } else {
                Beat::No
            };
            let three = beats[place..place + 3].iter_mut();
            three.for_each(|before| *before = beat.max(*before));
        }
    }
    beats
}

/// Returns whether three messages keep an interval that is long enough.
fn are_regular([a, b, c]: [&Event; 3]) -> bool {
    let intervals_ns = [b.at_ns - a.at_ns, c.at_ns - b.at_ns];
    intervals_ns[0] >= INTERVAL_LEAST_NS && are_alike(intervals_ns[0], intervals_ns[1])
}

/// Returns whether the pause ended with a small message of this side.
fn is_message(facts: &Facts) -> bool {
    let bytes = facts.after.burst_bytes;
    facts.closed == Closed::NewData
        && bytes > 0
        && bytes < facts.data.mss_bytes.max(MSS_LEAST_BYTES) / 2
}

/// Returns how long before a message the other side had sent one, and how long that came after this
/// side's message before.
fn around(first: &Event, second: &Event) -> (u64, u64) {
    (
        second.at_ns.saturating_sub(second.peer_ns),
        second.peer_ns.saturating_sub(first.at_ns),
    )
}

/// Returns whether the second message answers nothing at once, and what the other side sent
/// between the two did not, either.
fn is_apart(first: &Event, second: &Event) -> bool {
    let part_ns = second.at_ns.saturating_sub(first.at_ns) / APART;
    let (waited_ns, asked_ns) = around(first, second);
    waited_ns >= part_ns && asked_ns >= part_ns.max(10 * NS_PER_MS)
}

/// Returns whether the other side's last message came soon after the first one.
fn is_asked_soon(first: &Event, second: &Event) -> bool {
    around(first, second).1 <= second.at_ns.saturating_sub(first.at_ns) / APART
}

/// Returns whether messages keep their interval by a clock of this side: the other side's come at
/// other times, or each a constant short time after this side's, as answers do.
fn is_own_clock(a: &Event, b: &Event, c: &Event) -> bool {
    let (first, second) = (around(a, b), around(b, c));
    // Where the other side asks by a clock of its own, both differ by as much.
    let interval_ns = b.at_ns - a.at_ns;
    let differ_ns = interval_ns.abs_diff(c.at_ns - b.at_ns);
    let is_unsteady = first.0.abs_diff(second.0) > 4 * differ_ns + 10 * NS_PER_MS;
    let answers = 10 * NS_PER_MS..interval_ns / APART;
    let are_answers = answers.contains(&first.1) && first.1.abs_diff(second.1) <= NS_PER_MS;
    is_unsteady || are_answers
}

fn are_alike(a_ns: u64, b_ns: u64) -> bool {
    a_ns.abs_diff(b_ns) <= a_ns / ALIKE
}
