// SPDX-License-Identifier: MIT OR Apache-2.0
//! From segments to connections.

use std::sync::Arc;

use capture::segment::{EncapsulationId, Endpoint, Segment};
use rustc_hash::FxHashMap;

use crate::analysis::Analysis;
use crate::conclude::conclude;
use crate::connection::Connection;
use crate::options::Options;
use crate::recorder::Recorder;

/// The first segment's time inside: 0 is never.
const EPOCH_NS: u64 = 1_000_000_000;
/// The latest time that counts, two years on: what a hostile file says beyond
/// must not overflow a sum.
const LATEST_NS: u64 = 1 << 56;

/// Connections of the same two ends that are looked at for another's other direction.
const HALVES_MOST: usize = 4;

/// Both ends, the lower one first.
type Key = (Endpoint, Endpoint, EncapsulationId);

/// Takes the segments of a capture one by one.
///
/// Memory grows with connections and with what each has under way, not with
/// packets: a connection that is over, or has nothing under way, keeps its
/// results alone.
#[derive(Debug)]
pub struct Analyser {
    /// One for all connections, which are many.
    options: Arc<Options>,
    start_ns: Option<u64>,
    by_key: FxHashMap<Key, usize>,
    /// Of two ends the last connections with VLANs or tunnels around them whose other
    /// direction may have others.
    halves: FxHashMap<(Endpoint, Endpoint), Vec<usize>>,
    /// Each by itself: a list that grows would move and double them all.
    connections: Vec<Box<Connection>>,
    /// Where the last segment went: the next one mostly goes there too.
    last: Option<(Key, usize)>,
}

impl Analyser {
    /// One that has seen nothing.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options: Arc::new(options),
            start_ns: None,
            by_key: FxHashMap::default(),
            halves: FxHashMap::default(),
            connections: Vec::new(),
            last: None,
        }
    }

    /// Takes one segment: constant time, but for what it acknowledges.
    pub fn segment(&mut self, segment: &Segment) {
        let start_ns = *self.start_ns.get_or_insert(segment.time_ns);
        let since_ns = segment.time_ns.saturating_sub(start_ns);
        let now = EPOCH_NS + since_ns.min(LATEST_NS);
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
            _ => self.open(key, ends, segment, now),
        };
        self.last = Some((key, index));
        if let Some(connection) = self.connections.get_mut(index) {
            connection.segment(from, segment, now);
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

    fn open(&mut self, key: Key, ends: [Endpoint; 2], segment: &Segment, now: u64) -> usize {
        let index = self.connections.len();
        let wanted = self.options.history_of == Some(index);
        let recorder = wanted.then(|| Recorder::new(self.options.history_most));
        let connection = Connection::new(&self.options, ends, segment, now, recorder);
        self.connections.push(Box::new(connection));
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

    /// VLANs and tunnels may have other numbers in the two directions. What acknowledges
    /// the numbers of a connection of which only the other direction was seen is its other
    /// half.
    fn other_half(&mut self, key: Key, from: usize, segment: &Segment) -> Option<usize> {
        if key.2 == 0 {
            return None;
        }
        let halves = self.halves.get_mut(&(key.0, key.1))?;
        let connections = &mut self.connections;
        let is_answered = |&index: &usize| {
            let connection = connections.get_mut(index);
            connection.is_some_and(|c| c.is_answered_by(from, segment))
        };
        let place = halves.iter().position(is_answered)?;
        let index = halves.remove(place);
        self.by_key.insert(key, index);
        Some(index)
    }

    /// Steps taken so far through what is under way: segments and ranges that
    /// were looked at or moved. They are what may cost more than constant time.
    #[must_use]
    pub fn steps(&self) -> u64 {
        let flows = self.connections.iter().flat_map(|c| &c.flows);
        flows.map(crate::flow::Flow::steps).sum()
    }

    /// What was found.
    #[must_use]
    pub fn finish(self) -> Analysis {
        let start_ns = self.start_ns.unwrap_or_default();
        let connections = self.connections.into_iter();
        let connections: Vec<_> = connections
            .map(|connection| conclude(*connection, EPOCH_NS))
            .collect();
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
