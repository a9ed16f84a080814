// SPDX-License-Identifier: MIT OR Apache-2.0
//! A long list of segments in order, stored in chunks. An insertion in the middle moves only a
//! part of one chunk, and memory is freed as segments are removed.

use std::collections::VecDeque;

use super::sent::Sent;

/// Most segments in a chunk.
const CHUNK: usize = 64;

/// Index of a segment. After an insertion or a removal it may be the index of another segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    chunk: usize,
    index: usize,
}

/// Room for so many segments is kept in an empty queue: a flow that sends a few at a time needs no
/// new allocation for each round, and leaves no memory in pieces behind.
const KEPT: usize = 32;

/// Segments in order of their bytes. Only a chunk that is the only one may be empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    chunks: VecDeque<VecDeque<Sent>>,
    len: usize,
    /// Number of segments moved by insertions.
    moved: u64,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn moved(&self) -> u64 {
        self.moved
    }

    pub(super) fn front(&self) -> Option<&Sent> {
        self.chunks.front()?.front()
    }

    pub(super) fn front_mut(&mut self) -> Option<&mut Sent> {
        self.chunks.front_mut()?.front_mut()
    }

    pub(super) fn back(&self) -> Option<&Sent> {
        self.chunks.back()?.back()
    }

    pub(super) fn back_mut(&mut self) -> Option<&mut Sent> {
        self.chunks.back_mut()?.back_mut()
    }

    /// Adds a segment behind all others.
    pub(super) fn push_back(&mut self, sent: Sent) {
        match self.chunks.back_mut().filter(|chunk| chunk.len() < CHUNK) {
            Some(chunk) => chunk.push_back(sent),
            None => {
                // The first chunk grows as needed; later ones will be full.
                let room = if self.chunks.is_empty() { 4 } else { CHUNK };
                let mut chunk = VecDeque::with_capacity(room);
                chunk.push_back(sent);
                self.chunks.push_back(chunk);
            }
        }
        self.len += 1;
    }

    /// Removes the first segment.
    pub(super) fn pop_front(&mut self) {
        let Some(chunk) = self.chunks.front_mut() else {
            return;
        };
        if chunk.pop_front().is_none() {
            return;
        }
        self.len -= 1;
        if !chunk.is_empty() {
            return;
        }
        if self.len > 0 {
            self.chunks.pop_front();
        } else if chunk.capacity() > KEPT || self.chunks.capacity() > KEPT {
            *self = Self {
                moved: self.moved,
                ..Self::default()
            };
        }
    }

    /// Returns the index of the first segment that ends above `at`. O(log n).
    pub(super) fn find(&self, at: u64) -> Place {
        let ends_below = |chunk: &VecDeque<Sent>| chunk.back().is_none_or(|last| last.end <= at);
        let chunk = self.chunks.partition_point(ends_below);
        let index = self
            .chunks
            .get(chunk)
            .map_or(0, |chunk| chunk.partition_point(|sent| sent.end <= at));
        Place { chunk, index }
    }

    pub(super) fn get(&self, place: Place) -> Option<&Sent> {
        self.chunks.get(place.chunk)?.get(place.index)
    }

    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut Sent> {
        self.chunks.get_mut(place.chunk)?.get_mut(place.index)
    }

    /// Returns the index after `place`.
    pub(super) fn next(&self, place: Place) -> Place {
        let Place { chunk, index } = place;
        let len = self.chunks.get(chunk).map_or(0, VecDeque::len);
        if index + 1 < len {
            Place {
                chunk,
                index: index + 1,
            }
        } else {
            Place {
                chunk: chunk + 1,
                index: 0,
            }
        }
    }

    /// Inserts a segment behind the one at `place`. O(length of a chunk), and O(number of
    /// chunks) where the chunk is full.
    pub(super) fn insert_behind(&mut self, place: Place, sent: Sent) {
        let Some(chunk) = self.chunks.get_mut(place.chunk) else {
            return;
        };
        let (mut number, mut at) = (place.chunk, (place.index + 1).min(chunk.len()));
        if chunk.len() >= CHUNK {
            // Each half takes CHUNK / 2 insertions to be full again. Spread over these, a split
            // costs each insertion one chunk's share of the moves.
            let half = chunk.split_off(CHUNK / 2);
            let behind = number + 1;
            self.moved += behind.min(self.chunks.len() - behind) as u64 + half.len() as u64;
            self.chunks.insert(behind, half);
            if at > CHUNK / 2 {
                (number, at) = (behind, at - CHUNK / 2);
            }
        }
        if let Some(chunk) = self.chunks.get_mut(number) {
            self.moved += at.min(chunk.len() - at) as u64;
            chunk.insert(at, sent);
            self.len += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(testkit::properties())]

        /// Against a plain list.
        #[test]
        fn it_is_a_list(ops in prop::collection::vec((0u8..8, any::<prop::sample::Index>()), 0..600)) {
            let mut queue = Queue::default();
            let mut list: Vec<(u64, u64)> = Vec::new();
            let mut end = 0;
            for (what, at) in ops {
                match what {
                    0..3 => {
                        queue.push_back(Sent::new(end, end + 1000, 0, 0, 1));
                        list.push((end, end + 1000));
                        end += 1000;
                    }
                    3 if !list.is_empty() => {
                        queue.pop_front();
                        list.remove(0);
                    }
                    _ if !list.is_empty() => {
                        // Split in the middle.
                        let number = at.index(list.len());
                        let (from, to) = list[number];
                        let middle = from.midpoint(to);
                        if middle > from {
                            let place = queue.find(middle);
                            queue.get_mut(place).unwrap().end = middle;
                            queue.insert_behind(place, Sent::new(middle, to, 0, 0, 1));
                            list[number].1 = middle;
                            list.insert(number + 1, (middle, to));
                        }
                    }
                    _ => {}
                }
                prop_assert_eq!(queue.len(), list.len());
                prop_assert_eq!(queue.front().map(|s| s.start), list.first().map(|r| r.0));
                prop_assert_eq!(queue.back().map(|s| s.end), list.last().map(|r| r.1));
            }
            let mut place = queue.find(0);
            for range in &list {
                let sent = queue.get(place).unwrap();
                prop_assert_eq!((sent.start, sent.end), *range);
                let found = queue.get(queue.find(range.0)).unwrap();
                prop_assert_eq!(found.start, range.0);
                place = queue.next(place);
            }
            prop_assert!(queue.get(place).is_none());
        }
    }
}
