// SPDX-License-Identifier: MIT OR Apache-2.0
//! Subflows of Multipath TCP (RFC 8684): connections that carry one stream of data between them. What
//! one of them does not carry another does, so a pause of one is none of the whole while others carry
//! new data, and a pause of all counts once.

use std::collections::BTreeMap;

use capture::segment::{Flags, Mptcp, Segment};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use units::time::NS_PER_MS;

use crate::analysis::{Connection, Stall, StallKind};
use crate::clock::EPOCH_NS;
use crate::direction::Direction;
use crate::rules;
use crate::verdict::verdict;

/// New data that is no farther apart counts as carried without a pause.
const APART_NS: u64 = 10 * NS_PER_MS;
/// So many times are kept of a subflow's data; later ones count as carried without a pause.
const TIMES_MOST: usize = 1 << 14;

/// Which connections are subflows of which, and when each carried data. Those of plain TCP take
/// nothing.
#[derive(Debug, Default)]
pub(crate) struct Multipath {
    /// The first subflow and the end of it whose token this is.
    tokens: FxHashMap<u32, (usize, usize)>,
    subflows: FxHashMap<usize, Subflow>,
}

#[derive(Debug)]
struct Subflow {
    /// Index of the first subflow; of that one its own.
    first: usize,
    /// Whether its ends are those of the first one in the other order.
    is_turned: bool,
    /// Whether the key of each end is known.
    has_key: [bool; 2],
    /// By the first one's end that sends.
    carried: [Carried; 2],
}

/// When an end sent new data.
#[derive(Debug, Default)]
struct Carried {
    /// The number behind all that was sent.
    next: Option<u32>,
    /// Beginnings and ends, ascending.
    times: Vec<(u64, u64)>,
}

/// A pause of a subflow, and the end of the first subflow that was to send.
struct Pause {
    index: usize,
    end: usize,
    direction: Direction,
    start_ns: u64,
    duration_ns: u64,
}

impl Pause {
    /// Returns whether a pause of another subflow is most of it.
    fn is_that_of(&self, other: &Self) -> bool {
        let until_ns = (self.start_ns + self.duration_ns).min(other.start_ns + other.duration_ns);
        let both_ns = until_ns.saturating_sub(self.start_ns.max(other.start_ns));
        other.index != self.index && other.end == self.end && both_ns > self.duration_ns / 2
    }

    fn is_of(&self, stall: &Stall) -> bool {
        let times = (stall.start_ns, stall.duration_ns);
        stall.kind != StallKind::Slow
            && stall.direction == self.direction
            && times == (self.start_ns, self.duration_ns)
    }
}

impl Subflow {
    fn new(first: usize, is_turned: bool) -> Self {
        Self {
            first,
            is_turned,
            has_key: [false; 2],
            carried: Default::default(),
        }
    }

    /// Returns the end of the first subflow that an end of this one is.
    fn end(&self, end: usize) -> usize {
        if self.is_turned { 1 - end } else { end }
    }
}

impl Carried {
    fn on_data(&mut self, segment: &Segment, now: u64) {
        let after = segment.seq.wrapping_add(segment.payload_bytes);
        let is_new = self.next.is_none_or(|next| {
            let ahead = after.wrapping_sub(next);
            ahead > 0 && ahead < 1 << 31
        });
        if !is_new {
            return;
        }
        self.next = Some(after);
        let is_full = self.times.len() >= TIMES_MOST;
        match self.times.last_mut() {
            Some((_, end)) if is_full || now.saturating_sub(*end) <= APART_NS => {
                *end = now.max(*end);
            }
            _ => self.times.push((now, now)),
        }
    }
}

/// Returns what names the end with this key: RFC 8684, 3.2.
fn token(key: u64) -> u32 {
    let digest = Sha256::digest(key.to_be_bytes());
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
}

impl Multipath {
    /// Returns whether no connection is a subflow.
    pub(crate) fn is_empty(&self) -> bool {
        self.subflows.is_empty()
    }

    /// Returns whether a connection is a subflow.
    pub(crate) fn has(&self, index: usize) -> bool {
        self.subflows.contains_key(&index)
    }

    /// Notes a segment of a connection, sent by the end `from` of its two.
    pub(crate) fn segment(&mut self, index: usize, from: usize, segment: &Segment, now: u64) {
        match segment.mptcp {
            Some(Mptcp::Key(key)) => {
                let new = || Subflow::new(index, false);
                let subflow = self.subflows.entry(index).or_insert_with(new);
                if !std::mem::replace(&mut subflow.has_key[from], true) {
                    self.tokens.insert(token(key), (index, from));
                }
            }
            Some(Mptcp::Join(token)) if segment.flags.any(Flags::SYN) => {
                if let Some(&(first, end)) = self.tokens.get(&token) {
                    let new = || Subflow::new(first, from == end);
                    self.subflows.entry(index).or_insert_with(new);
                }
            }
            _ => {}
        }
        if segment.payload_bytes == 0 {
            return;
        }
        if let Some(subflow) = self.subflows.get_mut(&index) {
            let end = subflow.end(from);
            subflow.carried[end].on_data(segment, now);
        }
    }

    /// Leaves each pause of the whole once in the results, and notes what is not listed. Takes
    /// O(stalls x subflows x log) of each connection of Multipath TCP.
    pub(crate) fn join(&self, connections: &mut [Connection]) {
        let mut all: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (&index, subflow) in &self.subflows {
            all.entry(subflow.first).or_default().push(index);
        }
        for mut subflows in all.into_values() {
            subflows.sort_unstable();
            if subflows.len() > 1 {
                self.join_one(&subflows, connections);
            }
            for &index in &subflows {
                connections.get_mut(index).into_iter().for_each(merged);
            }
        }
    }

    fn join_one(&self, subflows: &[usize], connections: &mut [Connection]) {
        let mut left_out: BTreeMap<usize, [u64; 2]> = BTreeMap::new();
        let mut pauses = Vec::new();
        for &index in subflows {
            let Some((connection, subflow)) =
                connections.get_mut(index).zip(self.subflows.get(&index))
            else {
                continue;
            };
            let low = usize::from(connection.client > connection.server);
            connection.stalls.retain(|stall| {
                let sender = match stall.direction {
                    Direction::ToServer => low,
                    Direction::ToClient => 1 - low,
                };
                let end = subflow.end(sender);
                if stall.kind == StallKind::Slow {
                    return true;
                }
                let is_carried =
                    self.silence_ns(subflows, index, end, stall) < stall.duration_ns / 2;
                if is_carried {
                    left_out.entry(index).or_default()[0] += 1;
                } else {
                    pauses.push(Pause {
                        index,
                        end,
                        direction: stall.direction,
                        start_ns: stall.start_ns,
                        duration_ns: stall.duration_ns,
                    });
                }
                !is_carried
            });
        }
        // The shortest first: the whole pauses once the last subflow does.
        pauses.sort_by_key(|pause| (pause.duration_ns, pause.index, pause.start_ns));
        let mut kept: Vec<Pause> = Vec::new();
        for pause in pauses {
            if !kept.iter().any(|shorter| pause.is_that_of(shorter)) {
                kept.push(pause);
                continue;
            }
            left_out.entry(pause.index).or_default()[1] += 1;
            if let Some(connection) = connections.get_mut(pause.index) {
                connection.stalls.retain(|stall| !pause.is_of(stall));
            }
        }
        for &index in subflows {
            if let Some(connection) = connections.get_mut(index) {
                let [carried, listed] = left_out.get(&index).copied().unwrap_or_default();
                note(connection, subflows.len(), carried, listed);
            }
        }
    }

    /// Returns the longest time within a pause in which no other subflow carried new data.
    fn silence_ns(&self, subflows: &[usize], index: usize, end: usize, stall: &Stall) -> u64 {
        let (begin_ns, end_ns) = (
            stall.start_ns + EPOCH_NS,
            stall.start_ns + stall.duration_ns + EPOCH_NS,
        );
        let mut within: Vec<(u64, u64)> = Vec::new();
        let others = subflows.iter().filter(|other| **other != index);
        for subflow in others.filter_map(|other| self.subflows.get(other)) {
            let times = &subflow.carried[end].times;
            let from = times.partition_point(|&(_, until)| until < begin_ns);
            let upto = times.partition_point(|&(since, _)| since <= end_ns);
            within.extend(times.get(from..upto).unwrap_or_default());
        }
        within.sort_unstable();
        let (mut longest_ns, mut covered_ns) = (0, begin_ns);
        for (since, until) in within {
            longest_ns = since.saturating_sub(covered_ns).max(longest_ns);
            covered_ns = until.max(covered_ns);
        }
        end_ns.saturating_sub(covered_ns).max(longest_ns)
    }
}

/// Merges consecutive pauses of one cause, in each direction.
fn merged(connection: &mut Connection) {
    let (mut there, mut back): (Vec<Stall>, Vec<Stall>) = connection
        .stalls
        .drain(..)
        .partition(|stall| stall.direction == Direction::ToServer);
    for (stalls, flow) in [&mut there, &mut back]
        .into_iter()
        .zip(connection.flows.iter())
    {
        rules::merge(stalls, flow.rtt.smoothed_ns.unwrap_or(0));
    }
    connection.stalls.extend(there.into_iter().chain(back));
    connection.stalls.sort_by_key(|stall| stall.start_ns);
    connection.verdict = verdict(connection);
}

/// Notes whose subflow it is, and what is not listed.
fn note(connection: &mut Connection, subflows: usize, carried: u64, listed: u64) {
    let mut note = format!("one of {subflows} captured subflows of a connection of Multipath TCP");
    let mut pauses = |count: u64, why: &str| {
        if count > 0 {
            let (noun, verb) = if count == 1 {
                ("pause", "is")
            } else {
                ("pauses", "are")
            };
            note += &format!("; {} {noun} {verb} not listed: {why}", count);
        }
    };
    pauses(carried, "another subflow carried new data meanwhile");
    pauses(listed, "it is that of another subflow, and counts there");
    connection.notes.push(note);
}
