// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sorts the segments of a capture into connections.

use std::sync::Arc;

use capture::segment::{EncapsulationId, Endpoint, Segment};
use rustc_hash::FxHashMap;

use crate::analysis::{self, Analysis};
use crate::cause::Confidence;
use crate::clock::{Clock, EPOCH_NS};
use crate::conclude::conclude;
use crate::connection::{Connection, HALVES_MOST};
use crate::flow::at::At;
use crate::opening::Opening;
use crate::options::Options;
use crate::recorder::Recorder;

/// Both ends, the lower one first, and the VLANs and tunnels around them.
type Key = (Endpoint, Endpoint, EncapsulationId);

/// Analyses the segments of a capture one by one.
///
/// Memory grows with the number of connections and with what each has outstanding, not with
/// packets: a connection that has ended, or has nothing outstanding, keeps only its results.
#[derive(Debug)]
pub struct Analyser {
    /// The options, shared by all connections, which may be many.
    options: Arc<Options>,
    clock: Clock,
    by_key: FxHashMap<Key, usize>,
    /// For two ends: their last connections inside VLANs or tunnels. The other direction of
    /// such a connection may be in other VLANs or tunnels.
    halves: FxHashMap<(Endpoint, Endpoint), Vec<usize>>,
    /// Of a connection that two keys lead to: both.
    joined: FxHashMap<usize, [Key; 2]>,
    connections: Vec<Entry>,
    /// The connection of the last segment: most often the next segment belongs to it too.
    last: Option<(Key, usize)>,
    confidence_most: Confidence,
}

/// A connection, boxed: a vector that grows would otherwise move them all, and need twice their
/// memory meanwhile.
#[derive(Debug)]
enum Entry {
    /// Next to nothing was captured of it.
    Opening(Box<Opening>),
    Open(Box<Connection>),
}

impl Entry {
    /// Returns the connection, which is opened if it was not yet.
    fn open(&mut self, options: &Arc<Options>) -> &mut Connection {
        if let Self::Opening(opening) = self {
            *self = Self::Open(Box::new(opening.open(options)));
        }
        match self {
            Self::Open(connection) => connection,
            Self::Opening(_) => unreachable!("it was opened"),
        }
    }

    fn is_replaced_by(&self, from: usize, segment: &Segment) -> bool {
        match self {
            Self::Opening(opening) => opening.is_replaced_by(from, segment),
            Self::Open(connection) => connection.is_replaced_by(from, segment),
        }
    }

    fn close(&mut self) {
        if let Self::Open(connection) = self {
            connection.close();
        }
    }
}

impl Analyser {
    /// Creates an analyser that has seen no segment.
    pub fn new(options: Options) -> Self {
        Self {
            options: Arc::new(options),
            clock: Clock::default(),
            by_key: FxHashMap::default(),
            halves: FxHashMap::default(),
            joined: FxHashMap::default(),
            connections: Vec::new(),
            last: None,
            confidence_most: Confidence::High,
        }
    }

    /// Analyses one segment. Takes constant time, and time for the segments that it
    /// acknowledges.
    pub fn segment(&mut self, segment: &Segment) {
        let now = self.clock.at(segment.time_ns);
        let from = usize::from(segment.from > segment.to);
        let ends = if from == 0 {
            [segment.from, segment.to]
        } else {
            [segment.to, segment.from]
        };
        let key = (ends[0], ends[1], segment.encapsulation);
        let known = match self.last {
            Some((last, index)) if last == key => Some(index),
            _ => self.by_key.get(&key).copied(),
        };
        let known = known.or_else(|| self.other_half(key, from, segment));
        let index = match known {
            Some(index) if !self.is_replaced(index, from, segment) => index,
            replaced => {
                if let Some(old) = replaced {
                    self.forget(old);
                }
                self.open(key, ends, segment, now)
            }
        };
        self.last = Some((key, index));
        let Some(entry) = self.connections.get_mut(index) else {
            return;
        };
        let is_kept = match entry {
            Entry::Opening(opening) => opening.keep(from, segment, now),
            Entry::Open(_) => false,
        };
        if !is_kept {
            entry.open(&self.options).segment(from, segment, now);
        }
    }

    fn is_replaced(&mut self, index: usize, from: usize, segment: &Segment) -> bool {
        let Some(connection) = self.connections.get_mut(index) else {
            return true;
        };
        let replaced = connection.is_replaced_by(from, segment);
        if replaced {
            connection.close();
        }
        replaced
    }

    /// No key leads to a connection any more that is replaced: its other direction's key would take
    /// the answers to the next one.
    fn forget(&mut self, old: usize) {
        for key in self.joined.remove(&old).into_iter().flatten() {
            if self.by_key.get(&key) == Some(&old) {
                self.by_key.remove(&key);
            }
        }
    }

    fn open(&mut self, key: Key, ends: [Endpoint; 2], segment: &Segment, now: u64) -> usize {
        let index = self.connections.len();
        let at = At {
            now,
            packet: segment.number,
        };
        self.connections
            .push(if self.options.history_of == Some(index) {
                let recorder = Some(Recorder::new(self.options.history_most));
                let connection = Connection::new(&self.options, ends, key.2, at, recorder);
                Entry::Open(Box::new(connection))
            } else {
                Entry::Opening(Box::new(Opening::new(ends, key.2, at)))
            });
        self.by_key.insert(key, index);
        if key.2 != 0 {
            let halves = self.halves.entry((key.0, key.1)).or_default();
            if halves.len() >= HALVES_MOST {
                halves.remove(0);
            }
            halves.push(index);
        }
        index
    }

    /// Finds the connection whose other direction this segment belongs to. VLANs and tunnels
    /// may have other numbers in the two directions, or be around one of them alone: a connection
    /// of which only one direction was captured is the right one if the numbers of the segment
    /// fit it.
    fn other_half(&mut self, key: Key, from: usize, segment: &Segment) -> Option<usize> {
        let ends = (key.0, key.1);
        let (connections, options) = (&mut self.connections, &self.options);
        let mut is_answered = |&index: &usize| {
            let entry = connections.get_mut(index);
            entry.is_some_and(|entry| entry.open(options).is_answered_by(from, segment))
        };
        let plain = self.by_key.get(&(key.0, key.1, 0)).copied();
        let mut found = plain.filter(|index| key.2 != 0 && is_answered(index));
        if found.is_none() {
            let halves = self.halves.get_mut(&ends)?;
            let place = halves.iter().position(is_answered)?;
            found = Some(halves.remove(place));
        }
        let index = found?;
        self.by_key.insert(key, index);
        let first = match &self.connections[index] {
            Entry::Opening(opening) => opening.encapsulation,
            Entry::Open(connection) => connection.encapsulation,
        };
        self.joined.insert(index, [key, (key.0, key.1, first)]);
        Some(index)
    }

    /// Returns the steps taken so far through outstanding data: segments and ranges that were
    /// looked at or moved. Only these can take more than constant time.
    pub fn steps(&self) -> u64 {
        let opened = self.connections.iter().filter_map(|entry| match entry {
            Entry::Open(connection) => Some(connection),
            Entry::Opening(_) => None,
        });
        let flows = opened.flat_map(|connection| &connection.flows);
        flows.map(crate::flow::Flow::steps).sum()
    }

    /// Believes no more of what the capture shows.
    pub fn believe_at_most(&mut self, most: Confidence) {
        self.confidence_most = self.confidence_most.min(most);
    }

    /// Ends the analysis and returns its results.
    pub fn finish(self) -> Analysis {
        let start_ns = self.clock.start_ns();
        drop(self.by_key);
        let mut connections: Vec<analysis::Connection> = Vec::with_capacity(self.connections.len());
        for entry in self.connections {
            let mut connection = match entry {
                Entry::Open(connection) => *connection,
                Entry::Opening(opening) => opening.open(&self.options),
            };
            connection.confidence_most = self.confidence_most;
            let mut connection = conclude(connection, EPOCH_NS);
            if let Some(before) = connections.last() {
                connection.flows.share(&before.flows);
            }
            connections.push(connection);
        }
        let stalls = connections.iter_mut().flat_map(|c| &mut c.stalls);
        stalls.zip(1..).for_each(|(stall, n)| stall.number = n);
        let mut notes = Vec::new();
        if connections.is_empty() {
            notes.push("no TCP segment was found".to_owned());
        }
        Analysis {
            start_ns,
            connections,
            notes,
        }
    }
}
