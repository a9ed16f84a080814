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
/// as it can: between a heartbeat and the other side's last message before it lies at least this
/// part of the interval, and the other side's does not follow this side's at once.
const APART: u64 = 10;

/// Returns of each pause whether it ended with a heartbeat.
pub(super) fn of(facts: &[Facts], context: &Context<'_>) -> Vec<bool> {
    let mut beats = vec![false; facts.len()];
    if !context.knows_roles || context.is_client {
        return beats; // a client's pauses are its own affair
    }
    for (place, three) in facts.windows(3).enumerate() {
        if let [a, b, c] = three {
            if is_beat(a, b) && is_beat(b, c) && are_alike(b.end_ns - a.end_ns, c.end_ns - b.end_ns)
            {
                beats[place..place + 3].fill(true);
            }
        }
    }
    beats
}

/// Returns whether both ended with small messages of this side, of which the second does not
/// answer at once.
fn is_beat(first: &Facts, second: &Facts) -> bool {
    let is_message = |facts: &Facts| {
        let bytes = facts.after.burst_bytes;
        facts.closed == Closed::NewData && bytes > 0 && bytes < facts.mss_bytes / 2
    };
    let interval_ns = second.end_ns.saturating_sub(first.end_ns);
    let (peer_ns, _) = second.peer_data;
    let asked_ns = peer_ns.saturating_sub(first.end_ns);
    is_message(first)
        && is_message(second)
        && interval_ns >= INTERVAL_LEAST_NS
        && second.end_ns.saturating_sub(peer_ns) >= interval_ns / APART
        && asked_ns >= (interval_ns / APART).max(10 * NS_PER_MS)
}

fn are_alike(a_ns: u64, b_ns: u64) -> bool {
    a_ns.abs_diff(b_ns) <= a_ns / ALIKE
}
