// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event queue: for each source of events, the instant of its next event, or
//! none.
//!
//! It is a heap of sources rather than of events. Setting a source's instant moves
//! its entry, so no entry in the heap is ever out of date, its size is the number
//! of sources and not of packets in flight, and nothing is allocated after the
//! start. Of events at the same instant, that of the source with the smaller number
//! comes first.

use units::clock::Time;

const FAN_OUT: usize = 4;
const ABSENT: u32 = u32::MAX;

/// The instant of the next event, by source. Setting one is O(log sources), reading
/// the first O(1).
#[derive(Debug)]
pub struct EventQueue {
    /// A 4-ary heap by time, then source.
    heap: Vec<(Time, u32)>,
    /// By source: its index in the heap, or [`ABSENT`].
    places: Vec<u32>,
}

impl EventQueue {
    /// Makes a queue for sources 0 to `sources - 1`, none of which has an event.
    pub fn new(sources: u32) -> Self {
        Self {
            heap: Vec::with_capacity(sources as usize),
            places: vec![ABSENT; sources as usize],
        }
    }

    /// Returns the earliest instant and its source.
    pub fn first(&self) -> Option<(Time, u32)> {
        self.heap.first().copied()
    }

    /// Sets the instant of the next event of `source`, or cancels it. A source that
    /// does not exist is ignored.
    pub fn set(&mut self, source: u32, at: Option<Time>) {
        let Some(&place) = self.places.get(source as usize) else {
            return;
        };
        match (place, at) {
            (ABSENT, None) => {}
            (ABSENT, Some(at)) => {
                self.heap.push((at, source));
                self.up(self.heap.len() - 1, (at, source));
            }
            (place, Some(at)) => {
                let place = place as usize;
                if at < self.heap[place].0 {
                    self.up(place, (at, source));
                } else {
                    self.down(place, (at, source));
                }
            }
            (place, None) => self.remove(place as usize),
        }
    }

    fn remove(&mut self, place: usize) {
        self.places[self.heap[place].1 as usize] = ABSENT;
        let Some(last) = self.heap.pop().filter(|_| place < self.heap.len()) else {
            return;
        };
        if last < self.heap[place] {
            self.up(place, last);
        } else {
            self.down(place, last);
        }
    }

    fn put(&mut self, place: usize, entry: (Time, u32)) {
        self.heap[place] = entry;
        // There are no more entries than sources, which are counted in 32 bits.
        self.places[entry.1 as usize] = place as u32;
    }

    fn up(&mut self, mut place: usize, entry: (Time, u32)) {
        while place > 0 {
            let parent = (place - 1) / FAN_OUT;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn down(&mut self, mut place: usize, entry: (Time, u32)) {
        loop {
            let first = place * FAN_OUT + 1;
            let last = (first + FAN_OUT).min(self.heap.len());
            let Some(child) = (first..last).min_by_key(|i| self.heap[*i]) else {
                break;
            };
            if entry <= self.heap[child] {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn ties_go_to_the_smaller_number() {
        let mut event_queue = EventQueue::new(9);
        for source in [7, 3, 8, 0, 5] {
            event_queue.set(source, Some(Time::from_ps(4)));
        }
        event_queue.set(6, Some(Time::from_ps(3)));
        let mut order = vec![];
        while let Some((_, source)) = event_queue.first() {
            order.push(source);
            event_queue.set(source, None);
        }
        assert_eq!(order, [6, 0, 3, 5, 7, 8]);
        event_queue.set(9, Some(Time::START));
        assert_eq!(event_queue.first(), None);
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        /// The queue agrees with an ordered set.
        #[test]
        fn the_queue_agrees_with_an_ordered_set(steps in proptest::collection::vec((0u32..40, proptest::option::of(0u64..50)), 1..300)) {
            let mut event_queue = EventQueue::new(40);
            let mut set = BTreeSet::new();
            for (source, at) in steps {
                let at = at.map(Time::from_ps);
                set.retain(|(_, s)| *s != source);
                set.extend(at.map(|at| (at, source)));
                event_queue.set(source, at);
                prop_assert_eq!(event_queue.first(), set.first().copied());
            }
        }
    }
}
