// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells messages that each side sends by its own clock from answers that come late: keep-alives of
//! BGP, heartbeats of FIX. They keep their interval, whenever the other side sent its own.

use units::time::{NS_PER_MS, NS_PER_S};

use super::finding::Context;
use crate::flow::facts::{Closed, Facts};

/// Shorter intervals are those of work that repeats, not of heartbeats.
const INTERVAL_LEAST_NS: u64 = 5 * NS_PER_S;
/// Intervals that differ by less than this part are equal.
const ALIKE: u64 = 50;
/// A late answer of always the same length keeps its interval, too, if the other side asks as soon
/// as it can. A clock is known by what the other side does: between a heartbeat and its last message
/// before lies at least this part of the interval, or not always the same time; or the other side
/// answers each after a constant time that is short beside the interval.
const APART: u64 = 10;

/// Returns of each pause whether it ended with a heartbeat.
pub(super) fn of(facts: &[Facts], context: &Context<'_>) -> Vec<bool> {
    let mut beats = vec![false; facts.len()];
    if !context.knows_roles || context.is_client {
        return beats; // a client's pauses are its own affair
    }
    for (place, three) in facts.windows(3).enumerate() {
        if let [a, b, c] = three {
            let intervals_ns = [b.end_ns - a.end_ns, c.end_ns - b.end_ns];
            let is_regular = three.iter().all(is_message)
                && intervals_ns[0] >= INTERVAL_LEAST_NS
                && are_alike(intervals_ns[0], intervals_ns[1]);
            if is_regular && (is_apart(a, b) && is_apart(b, c) || is_own_clock(a, b, c)) {
                beats[place..place + 3].fill(true);
            }
        }
    }
    beats
}

/// Returns whether the pause ended with a small message of this side.
fn is_message(facts: &Facts) -> bool {
    let bytes = facts.after.burst_bytes;
    facts.closed == Closed::NewData && bytes > 0 && bytes < facts.mss_bytes / 2
}

/// Returns how long before a message the other side had sent one, and how long that came after this
/// side's message before.
fn around(first: &Facts, second: &Facts) -> (u64, u64) {
    let (peer_ns, _) = second.peer_data;
    (
        second.end_ns.saturating_sub(peer_ns),
        peer_ns.saturating_sub(first.end_ns),
    )
}

/// Returns whether the second message answers nothing at once, and what the other side sent
/// between the two did not, either.
fn is_apart(first: &Facts, second: &Facts) -> bool {
    let part_ns = second.end_ns.saturating_sub(first.end_ns) / APART;
    let (waited_ns, asked_ns) = around(first, second);
    waited_ns >= part_ns && asked_ns >= part_ns.max(10 * NS_PER_MS)
}

/// Returns whether messages keep their interval by a clock of this side: the other side's come at
/// other times, or each a constant short time after this side's, as answers do.
fn is_own_clock(a: &Facts, b: &Facts, c: &Facts) -> bool {
    let (first, second) = (around(a, b), around(b, c));
    // Where the other side asks by a clock of its own, both differ by as much.
    let interval_ns = b.end_ns - a.end_ns;
    let differ_ns = interval_ns.abs_diff(c.end_ns - b.end_ns);
    let is_unsteady = first.0.abs_diff(second.0) > 4 * differ_ns + 10 * NS_PER_MS;
    let answers = 10 * NS_PER_MS..interval_ns / APART;
    let are_answers = answers.contains(&first.1) && first.1.abs_diff(second.1) <= NS_PER_MS;
    is_unsteady || are_answers
}

/// Returns whether the first message of all, which nobody had asked for, came one interval before
/// others that keep it.
pub(super) fn begin_with(first_ns: u64, facts: &[Facts]) -> bool {
    let [a, b, ..] = facts else { return false };
    let intervals_ns = [a.end_ns.saturating_sub(first_ns), b.end_ns - a.end_ns];
    intervals_ns[0] >= INTERVAL_LEAST_NS && are_alike(intervals_ns[0], intervals_ns[1])
}

fn are_alike(a_ns: u64, b_ns: u64) -> bool {
    a_ns.abs_diff(b_ns) <= a_ns / ALIKE
}
