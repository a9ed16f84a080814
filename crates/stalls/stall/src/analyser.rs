// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sorts the segments of a capture into connections.

use std::collections::VecDeque;
use std::sync::Arc;

use capture::segment::{EncapsulationId, Endpoint, Flags, Segment};
use rustc_hash::FxHashMap;
use units::time::NS_PER_S;

use crate::analysis::{self, Analysis};
use crate::cause::Confidence;
use crate::clock::{Clock, EPOCH_NS, Moment};
use crate::conclude::{believed, conclude};
use crate::connection::{Connection, HALVES_MOST};
use crate::flow::at::At;
use crate::multipath::Multipath;
use crate::opening::Opening;
use crate::options::Options;
use crate::parallel::in_parallel;
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
    /// Number of the packet that each began with.
    first_packets: Vec<u64>,
    /// The connection of the last segment: most often the next segment belongs to it too.
    last: Option<Last>,
    confidence_most: Confidence,
    /// Connections that are over, and since when.
    over: VecDeque<(u64, usize)>,
    multipath: Multipath,
}

/// How long a connection that is over is kept as it is, ns: copies of its last segments still belong
/// to it.
const LINGER_NS: u64 = 5 * NS_PER_S;

/// A segment's ends and what is around it, and the connection that it belongs to.
#[derive(Clone, Copy, Debug)]
struct Last {
    ends: [Endpoint; 2],
    encapsulation: EncapsulationId,
    index: usize,
}

impl Last {
    /// Returns which of the ends sent a segment, if it is of the same connection.
    #[inline]
    fn from(&self, segment: &Segment) -> Option<usize> {
        let [low, high] = &self.ends;
        // Ports differ more often than addresses do.
        let is_between = |from: &Endpoint, to: &Endpoint| {
            (segment.from.port, segment.to.port) == (from.port, to.port)
                && segment.encapsulation == self.encapsulation
                && segment.from.address == from.address
                && segment.to.address == to.address
        };
        if is_between(low, high) {
            Some(0)
        } else {
            is_between(high, low).then_some(1)
        }
    }
}

/// A connection, boxed: a vector that grows would otherwise move them all, and need twice their
/// memory meanwhile.
#[derive(Debug)]
enum Entry {
    /// Next to nothing was captured of it.
    Opening(Box<Opening>),
    Open(Box<Connection>),
    /// It was over, and so long ago that nothing more belongs to it.
    Done(Box<analysis::Connection>),
}

impl Entry {
    /// Returns the connection, which is opened if it was not yet; `None` if it is done.
    fn open(&mut self, options: &Arc<Options>) -> Option<&mut Box<Connection>> {
        if let Self::Opening(opening) = self {
            *self = Self::Open(Box::new(opening.open(options)));
        }
        match self {
            Self::Open(connection) => Some(connection),
            Self::Opening(_) | Self::Done(_) => None,
        }
    }

    fn is_replaced_by(&self, from: usize, segment: &Segment) -> bool {
        match self {
            Self::Opening(opening) => opening.is_replaced_by(from, segment),
            Self::Open(connection) => connection.is_replaced_by(from, segment),
            Self::Done(_) => segment.flags.any(Flags::SYN) && !segment.flags.any(Flags::ACK),
        }
    }

    fn close(&mut self) {
        if let Self::Open(connection) = self {
            connection.close();
        }
    }

    /// Draws the conclusions, if the connection was opened.
    fn conclude(&mut self, is_subflow: bool) {
        let Self::Open(of) = self else {
            return;
        };
        let nothing = Opening::new(of.ends, of.encapsulation, of.last);
        let nothing = Self::Opening(Box::new(nothing));
        if let Self::Open(connection) = std::mem::replace(self, nothing) {
            *self = Self::Done(Box::new(conclude(*connection, EPOCH_NS, is_subflow)));
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
            first_packets: Vec::new(),
            last: None,
            confidence_most: Confidence::High,
            over: VecDeque::new(),
            multipath: Multipath::default(),
        }
    }

    /// Analyses one segment. Takes constant time, and time for the segments that it
    /// acknowledges.
    pub fn segment(&mut self, segment: &Segment) {
        let moment = self.clock.moment(segment.time_ns);
        self.segment_at(segment, moment);
    }

    /// Analyses one segment of some: other analysers have those of other connections.
    pub(crate) fn segment_at(&mut self, segment: &Segment, moment: Moment) {
        let Moment { now, latest } = moment;
        while let Some(&(over_ns, index)) = self.over.front() {
            if latest.saturating_sub(over_ns) < LINGER_NS {
                break;
            }
            self.over.pop_front();
            self.end(index);
        }
        let last = self
            .last
            .as_ref()
            .and_then(|last| Some((last.from(segment)?, last.index)));
        let (from, index) = match last {
            Some((from, index)) if !self.is_replaced(index, from, segment) => (from, index),
            _ => self.find(segment, now),
        };
        if segment.mptcp.is_some() || !self.multipath.is_empty() {
            self.multipath.segment(index, from, segment, now);
        }
        let Some(entry) = self.connections.get_mut(index) else {
            return;
        };
        let connection = match entry {
            Entry::Open(connection) => connection,
            Entry::Opening(opening) => {
                if opening.keep(from, segment, now) {
                    return;
                }
                let Some(connection) = entry.open(&self.options) else {
                    return;
                };
                connection
            }
            Entry::Done(done) => {
                // What still comes is counted, as a repeated FIN is.
                done.packets += 1;
                let begin_ns = done.start_ns + EPOCH_NS;
                done.duration_ns = done.duration_ns.max(now.saturating_sub(begin_ns));
                return;
            }
        };
        let was_over = connection.is_over();
        connection.segment(from, segment, now);
        if connection.is_over() && !was_over {
            self.over.push_back((now, index));
        }
    }

    /// Joins analysers of different connections of one capture, whose clock this is. One that
    /// keeps a history is none of them.
    pub(crate) fn join(analysers: Vec<Self>, options: Options, clock: Clock) -> Self {
        let mut all = Self::new(options);
        all.clock = clock;
        let mut order = Vec::new();
        for (number, analyser) in analysers.iter().enumerate() {
            let firsts = analyser.first_packets.iter().enumerate();
            order.extend(firsts.map(|(index, &first)| (first, number, index)));
        }
        order.sort_unstable();
        let mut places: Vec<Vec<usize>> = Vec::new();
        places.extend(analysers.iter().map(|of| vec![0; of.connections.len()]));
        for (place, &(first, number, index)) in order.iter().enumerate() {
            places[number][index] = place;
            all.first_packets.push(first);
        }
        let mut entries = Vec::new();
        for (of, places) in analysers.into_iter().zip(&places) {
            let place = |index: usize| places[index];
            let by_key = of.by_key.into_iter();
            all.by_key
                .extend(by_key.map(|(key, index)| (key, place(index))));
            for (ends, halves) in of.halves {
                let halves = halves.into_iter().map(place).collect();
                all.halves.insert(ends, halves);
            }
            let joined = of.joined.into_iter();
            all.joined
                .extend(joined.map(|(index, keys)| (place(index), keys)));
            let over = of.over.into_iter();
            all.over
                .extend(over.map(|(over_ns, index)| (over_ns, place(index))));
            entries.push(of.connections.into_iter());
        }
        all.over.make_contiguous().sort_unstable();
        let in_order = order
            .into_iter()
            .filter_map(|(_, number, _)| entries[number].next());
        all.connections.extend(in_order);
        all
    }

    /// Draws the conclusions of a connection that is over: its results take less than its state.
    fn end(&mut self, index: usize) {
        let Some(entry) = self.connections.get_mut(index) else {
            return;
        };
        if matches!(entry, Entry::Open(of) if of.is_over() && of.recorder.is_none()) {
            entry.conclude(self.multipath.has(index));
        }
    }

    /// Returns the end that sent a segment, and the connection that it belongs to, which may begin
    /// with it.
    fn find(&mut self, segment: &Segment, now: u64) -> (usize, usize) {
        let from = usize::from(segment.from > segment.to);
        let ends = if from == 0 {
            [segment.from, segment.to]
        } else {
            [segment.to, segment.from]
        };
        let key = (ends[0], ends[1], segment.encapsulation);
        let known = self.by_key.get(&key).copied();
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
        self.last = Some(Last {
            ends,
            encapsulation: segment.encapsulation,
            index,
        });
        (from, index)
    }

    #[inline]
    fn is_replaced(&mut self, index: usize, from: usize, segment: &Segment) -> bool {
        // Only a SYN begins another connection.
        segment.flags.any(Flags::SYN) && self.is_replaced_by_syn(index, from, segment)
    }

    fn is_replaced_by_syn(&mut self, index: usize, from: usize, segment: &Segment) -> bool {
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
        self.first_packets.push(segment.number);
        let at = At::new(now, segment.number);
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
            entry
                .and_then(|entry| entry.open(options))
                .is_some_and(|open| open.is_answered_by(from, segment))
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
            Entry::Done(done) => done.encapsulation,
        };
        self.joined.insert(index, [key, (key.0, key.1, first)]);
        Some(index)
    }

    /// Returns the steps taken so far through outstanding data: segments and ranges that were
    /// looked at or moved. Only these can take more than constant time.
    pub fn steps(&self) -> u64 {
        let opened = self.connections.iter().filter_map(|entry| match entry {
            Entry::Open(connection) => Some(connection),
            Entry::Opening(_) | Entry::Done(_) => None,
        });
        let flows = opened.flat_map(|connection| &connection.flows);
        flows.map(crate::flow::Flow::steps).sum()
    }

    /// Believes no more of what the capture shows.
    pub fn believe_at_most(&mut self, most: Confidence) {
        self.confidence_most = self.confidence_most.min(most);
    }

    /// Ends the analysis and returns its results.
    pub fn finish(mut self) -> Analysis {
        let start_ns = self.clock.start_ns();
        drop(self.by_key);
        let (multipath, most) = (&self.multipath, self.confidence_most);
        let conclude = |index, entry: &mut Entry| {
            if let Entry::Open(connection) = entry {
                connection.confidence_most = most;
                entry.conclude(multipath.has(index));
            }
        };
        in_parallel(&mut self.connections, &conclude);
        let mut connections: Vec<analysis::Connection> = Vec::with_capacity(self.connections.len());
        for (index, mut entry) in self.connections.into_iter().enumerate() {
            // Of a flood only one at a time is opened.
            entry.open(&self.options);
            conclude(index, &mut entry);
            let Entry::Done(done) = entry else {
                continue;
            };
            let mut connection = believed(*done, most);
            if let Some(before) = connections.last() {
                connection.flows.share(&before.flows);
            }
            connections.push(connection);
        }
        self.multipath.join(&mut connections);
        let stalls = connections.iter_mut().flat_map(|c| &mut c.stalls);
        stalls
            .zip(1..)
            .for_each(|(stall, n)| stall.number = Some(n));
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
