// SPDX-License-Identifier: MIT OR Apache-2.0
//! htb: a hierarchy of classes, each with a rate, which borrow from their ancestors
//! up to a ceil and share the excess bandwidth by their quanta.
//!
//! The rules are those of Linux (tc-htb(8)). A class sends on its own tokens; when
//! it has none, on those of the nearest ancestor that has some, as long as neither
//! the class nor any between them is above its ceil. Lower levels are served first,
//! then smaller prio; classes of equal rank are served in deficit round robin.
//! Unlike in Linux, tokens are exact rather than in whole nanoseconds, and each
//! decision examines every leaf. With a rate table a frame costs what it did in
//! kernels before 3.8.

use units::clock::Time;

use super::answer::{Next, Verdict, classify};
use super::fifo::{Fifo, Limit};
use super::rate_table::RateTable;
use crate::filter::Filter;
use crate::packet::{Header, Packet};
use crate::rate_arithmetic::Bucket;

/// Levels of classes, as in Linux.
const LEVELS: usize = 8;

/// Options of a class, as in tc-htb(8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtbClass {
    /// Minor number.
    pub minor: u32,
    /// Minor number of the parent class, which must come first in the list; `None`:
    /// none.
    pub parent: Option<u32>,
    /// Guaranteed rate, bit/s.
    pub rate_bps: u64,
    /// Highest rate including what it borrows, bit/s. Below the rate, it is what the class gets.
    pub ceil_bps: u64,
    /// Depth of the rate's bucket.
    pub burst_bytes: u64,
    /// Depth of the ceil's bucket.
    pub cburst_bytes: u64,
    /// Bytes that a leaf may send in its round.
    pub quantum_bytes: u32,
    /// Priority: a smaller number is served first.
    pub prio: u32,
    /// Bytes added to the length of each frame.
    pub overhead_bytes: u32,
    /// Minimum length that a frame counts, overhead included, bytes.
    pub mpu_bytes: u32,
    /// Limit of a leaf's queue.
    pub limit: Limit,
    /// Frames cost what a table says; without one, what they take.
    pub table: Option<RateTable>,
}

impl HtbClass {
    /// Takes from a bucket of this rate what a packet costs.
    fn charge(&self, bucket: &mut Bucket, rate_bps: u64, packet: &Packet) {
        let counted = (packet.frame_bytes + self.overhead_bytes).max(self.mpu_bytes);
        match self.table {
            Some(table) => bucket.take_span(table.span(counted, rate_bps)),
            None => bucket.take(counted),
        }
    }
}

/// Options of the qdisc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HtbConfig {
    /// Major number of its classes.
    pub major: u32,
    /// Minor number of the class of packets that no filter matches.
    pub default: u32,
    /// Classes; parents come before their children.
    pub classes: Vec<HtbClass>,
    /// Filters, in order of preference.
    pub filters: Vec<Filter>,
    /// Number of packets without a class that may wait; they are sent before all
    /// others.
    pub direct_packets: u32,
}

#[derive(Debug)]
struct Class {
    config: HtbClass,
    parent: Option<usize>,
    rate: Bucket,
    ceil: Bucket,
    /// The packets of a leaf.
    queue: Fifo,
    deficit: [i64; LEVELS],
}

#[derive(Debug)]
pub struct Htb {
    major: u32,
    default: u32,
    filters: Vec<Filter>,
    classes: Vec<Class>,
    leaves: Vec<usize>,
    direct: Fifo,
    /// By level: index in `leaves` of the next leaf in the round.
    next_leaf: [usize; LEVELS],
    packets: usize,
}

/// A leaf that may send, and the level of the class whose tokens it uses.
#[derive(Clone, Copy)]
struct Offer {
    level: usize,
    prio: u32,
    place: usize,
}

impl Htb {
    /// Makes an empty qdisc with full buckets. If a class's parent does not come
    /// before it in the list, the class has no parent.
    pub fn new(config: HtbConfig) -> Self {
        let mut classes: Vec<Class> = Vec::with_capacity(config.classes.len());
        for class in &config.classes {
            let parent = class
                .parent
                .and_then(|minor| classes.iter().position(|c| c.config.minor == minor));
            classes.push(Class {
                config: *class,
                parent,
                rate: Bucket::full(class.rate_bps, class.burst_bytes),
                ceil: Bucket::full(class.ceil_bps, class.cburst_bytes),
                queue: Fifo::new(class.limit),
                deficit: [0; LEVELS],
            });
        }
        let is_leaf = |index: &usize| classes.iter().all(|c| c.parent != Some(*index));
        let leaves = (0..classes.len()).filter(is_leaf).collect();
        Self {
            major: config.major,
            default: config.default,
            filters: config.filters,
            classes,
            leaves,
            direct: Fifo::new(Limit::Packets(config.direct_packets)),
            next_leaf: [0; LEVELS],
            packets: 0,
        }
    }

    /// Enqueues a packet. O(classes + filters).
    pub(super) fn enqueue(&mut self, packet: Packet, header: &Header) -> Verdict {
        let leaf = |minor: u32| {
            let found = |i: &&usize| self.classes[**i].config.minor == minor;
            self.leaves.iter().find(found).copied()
        };
        let exists = |minor| leaf(minor).is_some();
        let (filters, default) = (&self.filters, self.default);
        let minor = classify(self.major, &packet, header, filters, default, exists);
        let queue = match leaf(minor) {
            Some(index) => &mut self.classes[index].queue,
            None => &mut self.direct,
        };
        let verdict = queue.enqueue(packet);
        self.packets += usize::from(verdict == Verdict::Queued);
        verdict
    }

    /// Decides what to send at `now`. O(leaves x levels).
    pub(super) fn next(&mut self, now: Time) -> Next {
        if let Some(packet) = self.direct.pop() {
            self.packets -= 1;
            return Next::Send(packet);
        }
        if self.packets == 0 {
            return Next::Idle;
        }
        for class in &mut self.classes {
            class.rate.fill(now);
            class.ceil.fill(now);
        }
        let mut best: Option<Offer> = None;
        let mut earliest = Time::from_ps(u64::MAX);
        for place in 0..self.leaves.len() {
            let index = self.leaves[place];
            if self.classes[index].queue.is_empty() {
                continue;
            }
            let (at, level) = self.may_send(index, now);
            earliest = earliest.min(at);
            if at > now {
                continue;
            }
            let offer = Offer {
                level,
                prio: self.classes[index].config.prio,
                place,
            };
            if best.is_none_or(|best| self.rank(offer) < self.rank(best)) {
                best = Some(offer);
            }
        }
        best.map_or(Next::Wait(earliest), |offer| self.send(offer))
    }

    /// Returns the rank of an offer: level, prio, and distance from the next leaf
    /// in the round.
    fn rank(&self, offer: Offer) -> (usize, u32, usize) {
        let count = self.leaves.len();
        let steps_to = (offer.place + count - self.next_leaf[offer.level]) % count;
        (offer.level, offer.prio, steps_to)
    }

    /// Returns when the leaf may send, and the level of the class that then lends
    /// to it.
    fn may_send(&self, leaf: usize, now: Time) -> (Time, usize) {
        let mut best = (Time::from_ps(u64::MAX), 0);
        // When no class up to this level is above its ceil.
        let mut below_ceil = now;
        let mut at = Some(leaf);
        for level in 0..LEVELS {
            let Some(class) = at.map(|index| &self.classes[index]) else {
                break;
            };
            below_ceil = below_ceil.max(class.ceil.when(0));
            let can = below_ceil.max(class.rate.when(0));
            if can < best.0 {
                best = (can, level);
            }
            at = class.parent;
        }
        best
    }

    fn send(&mut self, offer: Offer) -> Next {
        let leaf = self.leaves[offer.place];
        let Some(packet) = self.classes[leaf].queue.pop() else {
            return Next::Idle;
        };
        self.packets -= 1;
        let class = &mut self.classes[leaf];
        let deficit = &mut class.deficit[offer.level];
        *deficit -= i64::from(packet.frame_bytes);
        let is_over = *deficit < 0;
        if is_over {
            *deficit += i64::from(class.config.quantum_bytes);
        }
        if is_over || class.queue.is_empty() {
            self.next_leaf[offer.level] = (offer.place + 1) % self.leaves.len();
        } else {
            self.next_leaf[offer.level] = offer.place;
        }
        let mut at = Some(leaf);
        let mut level = 0;
        while let Some(index) = at {
            let class = &mut self.classes[index];
            let HtbClass {
                rate_bps, ceil_bps, ..
            } = class.config;
            if level >= offer.level {
                class.config.charge(&mut class.rate, rate_bps, &packet);
            }
            class.config.charge(&mut class.ceil, ceil_bps, &packet);
            at = class.parent;
            level += 1;
        }
        Next::Send(packet)
    }

    pub(super) fn len(&self) -> usize {
        self.packets
    }
}
