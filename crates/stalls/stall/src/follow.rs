// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges stalls while packets still come, in bounded memory.
//!
//! A pause is judged when nothing that is seen later changes what followed it: about two round
//! trips after its end. What needs the whole connection (slow phases, waits before the first
//! data) is judged when the connection ends, has been silent for long, or has to make room.

use std::sync::Arc;

use capture::segment::{EncapsulationId, Endpoint, Segment};
use rustc_hash::FxHashMap;
use units::time::NS_PER_S;

use crate::analysis::{self, Stall};
use crate::cause::Confidence;
use crate::clock::{Clock, EPOCH_NS};
use crate::conclude::{conclude, settled};
use crate::connection::{Connection, HALVES_MOST};
use crate::flow::at::At;
use crate::options::Options;

/// How long a connection that is over is kept, ns: copies of its last segments still belong to
/// it.
const LINGER_NS: u64 = 5 * NS_PER_S;
/// Least time between two sweeps through all connections, in ns of the capture, and least
/// segments for each connection that a sweep looks at: so it costs each segment little.
const SWEEP_NS: u64 = NS_PER_S;
const CONNECTIONS_PER_SEGMENT: usize = 4;

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most connections at a time; of more, those that were silent longest are ended.
    pub connections_most: usize,
    /// A connection that was silent for so long is ended.
    pub silent_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_most: 65_536,
            silent_ns: 600 * NS_PER_S,
        }
    }
}

/// Why a connection is no longer followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Because {
    Ended,
    /// It was silent for long.
    Silent,
    /// Others needed the room.
    Room,
    /// The capture is over.
    Capture,
}

/// Something to report.
#[derive(Clone, Debug)]
pub enum Report {
    /// A stall is over.
    Stall(Box<StallReport>),
    /// A connection is no longer followed.
    Connection(Box<ConnectionReport>),
}

/// A stall that is over.
#[derive(Clone, Debug)]
pub struct StallReport {
    /// Number of the connection, from 1.
    pub connection: u64,
    /// The end that sent the SYN, as far as that is known.
    pub client: Endpoint,
    /// The other end.
    pub server: Endpoint,
    /// VLANs and tunnels around the connection.
    pub encapsulation: EncapsulationId,
    pub stall: Stall,
}

/// A connection that is no longer followed.
#[derive(Clone, Debug)]
pub struct ConnectionReport {
    /// Its number, from 1.
    pub number: u64,
    /// Why it is no longer followed.
    pub because: Because,
    /// Its results, without the stalls, all of which were reported.
    pub connection: analysis::Connection,
    pub stalls: u64,
    /// Sum of their durations.
    pub time_lost_ns: u64,
}

type Key = (Endpoint, Endpoint, EncapsulationId);

#[derive(Debug)]
struct Followed {
    number: u64,
    connection: Connection,
    /// The key of its other direction, where that is inside other VLANs or tunnels.
    other_key: Option<Key>,
    stalls: u64,
    time_lost_ns: u64,
}

/// Judges connections while their segments come.
#[derive(Debug)]
pub struct Follower {
    options: Arc<Options>,
    limits: Limits,
    clock: Clock,
    now_ns: u64,
    connections: FxHashMap<Key, Box<Followed>>,
    /// For a direction that is inside other VLANs or tunnels than the connection's first segment:
    /// the connection's key.
    other_keys: FxHashMap<Key, Key>,
    /// For two ends: their last connections inside VLANs or tunnels.
    halves: FxHashMap<(Endpoint, Endpoint), Vec<Key>>,
    opened: u64,
    swept_ns: u64,
    since_sweep: usize,
    reports: Vec<Report>,
    confidence_most: Confidence,
}

impl Follower {
    /// Creates a follower that has seen no segment.
    pub fn new(options: Options, limits: Limits) -> Self {
        Self {
            options: Arc::new(options),
            limits,
            clock: Clock::default(),
            now_ns: 0,
            connections: FxHashMap::default(),
            other_keys: FxHashMap::default(),
            halves: FxHashMap::default(),
            opened: 0,
            swept_ns: 0,
            since_sweep: 0,
            reports: Vec::new(),
            confidence_most: Confidence::High,
        }
    }

    /// Returns the number of connections that are followed.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Returns the number of connections so far.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Returns the time of the first segment, in ns since the capture's epoch; all other times
    /// count from it.
    pub fn start_ns(&self) -> u64 {
        self.clock.start_ns()
    }

    /// Takes what there is to report.
    pub fn reports(&mut self) -> std::vec::Drain<'_, Report> {
        self.reports.drain(..)
    }

    /// Analyses one segment. Takes constant time in the mean, and time for the segments that it
    /// acknowledges.
    pub fn segment(&mut self, segment: &Segment) {
        let now_ns = self.clock.at(segment.time_ns);
        self.now_ns = self.now_ns.max(now_ns);
        let from = usize::from(segment.from > segment.to);
        let ends = match from {
            0 => [segment.from, segment.to],
            _ => [segment.to, segment.from],
        };
        let own = (ends[0], ends[1], segment.encapsulation);
        let mut key = self.key_of(own, from, segment);
        match self.connections.get(&key) {
            Some(known) if known.connection.is_replaced_by(from, segment) => {
                self.end(&key, Because::Ended);
                key = own;
                self.note_half(key);
            }
            Some(_) => {}
            None => self.note_half(key),
        }
        let (options, opened) = (&self.options, &mut self.opened);
        let at = At::new(now_ns, segment.number);
        let followed = self.connections.entry(key).or_insert_with(|| {
            *opened += 1;
            Box::new(Followed {
                number: *opened,
                connection: Connection::new(options, ends, own.2, at, None),
                other_key: None,
                stalls: 0,
                time_lost_ns: 0,
            })
        });
        followed.connection.confidence_most = self.confidence_most;
        followed.connection.segment(from, segment, now_ns);
        followed.judge(now_ns, &mut self.reports);
        self.since_sweep += 1;
        let is_due = self.now_ns.saturating_sub(self.swept_ns) >= SWEEP_NS
            && self.since_sweep * CONNECTIONS_PER_SEGMENT >= self.connections.len();
        if is_due || self.connections.len() > self.limits.connections_most {
            self.sweep();
        }
    }

    /// Returns the key of the connection that a segment belongs to. VLANs and tunnels may have
    /// other numbers in the two directions, as in the analysis of whole captures.
    fn key_of(&mut self, own: Key, from: usize, segment: &Segment) -> Key {
        if self.connections.contains_key(&own) {
            return own;
        }
        if let Some(key) = self.other_keys.get(&own) {
            return *key;
        }
        let plain = (own.0, own.1, 0);
        let halves = self.halves.get(&(own.0, own.1));
        let keys = halves.into_iter().flatten().copied().chain([plain]);
        for key in keys {
            if let Some(followed) = self.connections.get_mut(&key) {
                if followed.connection.is_answered_by(from, segment) {
                    followed.other_key = Some(own);
                    self.other_keys.insert(own, key);
                    return key;
                }
            }
        }
        own
    }

    /// Notes a connection that begins inside VLANs or tunnels: its other direction may be inside
    /// others.
    fn note_half(&mut self, key: Key) {
        if key.2 == 0 {
            return;
        }
        let halves = self.halves.entry((key.0, key.1)).or_default();
        if halves.len() >= HALVES_MOST {
            halves.remove(0);
        }
        halves.push(key);
    }

    /// Forgets what leads to a connection that is no longer followed.
    fn forget_keys(&mut self, key: &Key, other_key: Option<Key>) {
        if let Some(other_key) = other_key {
            self.other_keys.remove(&other_key);
        }
        let ends = (key.0, key.1);
        if let Some(halves) = self.halves.get_mut(&ends) {
            halves.retain(|half| half != key);
            if halves.is_empty() {
                self.halves.remove(&ends);
            }
        }
    }

    /// Believes no more of what the captures show from now on.
    pub fn believe_at_most(&mut self, most: Confidence) {
        self.confidence_most = self.confidence_most.min(most);
    }

    /// Judges every pause that is over, although what followed it is not known to its end:
    /// nothing comes any more.
    pub fn settle(&mut self) {
        for followed in self.connections.values_mut() {
            followed.judge(u64::MAX, &mut self.reports);
        }
        self.in_order();
    }

    /// Ends all connections, in the order in which they began.
    pub fn finish(&mut self) {
        let mut keys: Vec<_> = self
            .connections
            .iter()
            .map(|(key, f)| (f.number, *key))
            .collect();
        keys.sort_unstable();
        for (_, key) in keys {
            self.end(&key, Because::Capture);
        }
    }

    /// Judges what has settled by now, and ends connections that are over or silent, or for
    /// which there is no room.
    fn sweep(&mut self) {
        (self.swept_ns, self.since_sweep) = (self.now_ns, 0);
        let (now_ns, silent_ns) = (self.now_ns, self.limits.silent_ns);
        let mut over = Vec::new();
        for (key, followed) in &mut self.connections {
            followed.judge(now_ns, &mut self.reports);
            let quiet_ns = now_ns.saturating_sub(followed.connection.last.now);
            if followed.connection.is_over() && quiet_ns >= LINGER_NS {
                over.push((followed.number, *key, Because::Ended));
            } else if quiet_ns >= silent_ns {
                over.push((followed.number, *key, Because::Silent));
            }
        }
        self.in_order();
        self.end_all(over);
        let most = self.limits.connections_most;
        if self.connections.len() <= most {
            return;
        }
        // An eighth goes at once, so that room is made seldom.
        let surplus = self.connections.len() - (most - most / 8);
        let mut by_age: Vec<_> = self
            .connections
            .iter()
            .map(|(key, f)| (f.connection.last.now, f.number, *key))
            .collect();
        by_age.sort_unstable();
        by_age.truncate(surplus);
        let oldest = by_age.into_iter();
        self.end_all(
            oldest
                .map(|(_, number, key)| (number, key, Because::Room))
                .collect(),
        );
    }

    fn end_all(&mut self, mut over: Vec<(u64, Key, Because)>) {
        over.sort_unstable_by_key(|(number, ..)| *number);
        for (_, key, because) in over {
            self.end(&key, because);
        }
    }

    /// Sorts what there is to report: a table of connections has no order.
    fn in_order(&mut self) {
        self.reports.sort_by_key(|report| match report {
            Report::Stall(report) => (
                report.stall.start_ns + report.stall.duration_ns,
                report.connection,
            ),
            Report::Connection(report) => (u64::MAX, report.number),
        });
    }

    fn end(&mut self, key: &Key, because: Because) {
        let Some(mut followed) = self.connections.remove(key) else {
            return;
        };
        self.forget_keys(key, followed.other_key);
        followed.judge(u64::MAX, &mut self.reports);
        let Followed {
            number,
            connection,
            other_key: _,
            mut stalls,
            mut time_lost_ns,
        } = *followed;
        let mut connection = conclude(connection, EPOCH_NS, false);
        for stall in std::mem::take(&mut connection.stalls) {
            stalls += 1;
            time_lost_ns += stall.duration_ns;
            self.reports.push(Report::Stall(Box::new(StallReport {
                connection: number,
                client: connection.client,
                server: connection.server,
                encapsulation: connection.encapsulation,
                stall,
            })));
        }
        self.reports
            .push(Report::Connection(Box::new(ConnectionReport {
                number,
                because,
                connection,
                stalls,
                time_lost_ns,
            })));
    }
}

impl Followed {
    /// Judges the pauses that have settled by `now_ns`.
    fn judge(&mut self, now_ns: u64, reports: &mut Vec<Report>) {
        let connection = &mut self.connection;
        if !connection.flows.iter().any(|flow| flow.has_settled(now_ns)) {
            return;
        }
        let (stalls, [client, server]) = settled(connection, now_ns, EPOCH_NS);
        for stall in stalls {
            self.stalls += 1;
            self.time_lost_ns += stall.duration_ns;
            reports.push(Report::Stall(Box::new(StallReport {
                connection: self.number,
                client,
                server,
                encapsulation: connection.encapsulation,
                stall,
            })));
        }
    }
}
