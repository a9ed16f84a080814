// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set of byte offsets, stored as ranges that do not touch.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Disjoint ranges in order: the start and the end of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    list: BTreeMap<u64, u64>,
    bytes: u64,
}

impl Ranges {
    /// Returns the last range that begins at or below `at`, if it ends there or above.
    fn up_to(&self, at: u64) -> Option<(u64, u64)> {
        let (&from, &to) = self.list.range(..=at).next_back()?;
        (to >= at).then_some((from, to))
    }

    /// Returns whether `start..end` overlaps a range or is adjacent to one.
    pub(crate) fn touches(&self, start: u64, end: u64) -> bool {
        self.up_to(start).is_some() || self.list.range(start..=end).next().is_some()
    }

    /// Adds `start..end` and calls `fresh` with each part that was not there. O(log n) for the
    /// new range and for each range that it joins.
    pub(crate) fn insert(&mut self, start: u64, end: u64, mut fresh: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        let before = self.up_to(start);
        let (mut low, mut high, mut at) = (start, end, start);
        let mut next = before.or_else(|| self.first_in(start, end));
        while let Some((from, to)) = next {
            if at < from {
                self.bytes += from - at;
                fresh(at, from);
            }
            at = at.max(to);
            low = low.min(from);
            high = high.max(to);
            if before.is_none_or(|before| before.0 != from) {
                self.list.remove(&from);
            }
            next = self.first_in(at.max(from + 1), end);
        }
        if at < end {
            self.bytes += end - at;
            fresh(at, end);
        }
        self.list.insert(low, high);
    }

    /// Returns the first range that begins in `start..=end`.
    fn first_in(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        if start > end {
            return None;
        }
        let (&from, &to) = self.list.range(start..=end).next()?;
        Some((from, to))
    }

    /// Removes the bytes below `to` and returns how many there were. O(log n) for each range
    /// removed.
    pub(crate) fn drop_below(&mut self, to: u64) -> u64 {
        let mut dropped = 0;
        while let Some(first) = self.list.first_entry().filter(|first| *first.key() < to) {
            let (start, end) = first.remove_entry();
            dropped += end.min(to) - start;
            if end > to {
                self.list.insert(to, end);
            }
        }
        self.bytes -= dropped;
        dropped
    }

    /// Returns the number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the number of bytes in the set.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the byte after the last one, if there is one.
    pub(crate) fn end(&self) -> Option<u64> {
        self.list.last_key_value().map(|(_, &end)| end)
    }

    /// Returns how many bytes of the set lie at or above `from`. O(ranges there).
    pub(crate) fn bytes_from(&self, from: u64) -> u64 {
        let cut = self.up_to(from).map_or(0, |(_, to)| to - from);
        let above = self.list.range((Bound::Excluded(from), Bound::Unbounded));
        cut + above.map(|(start, end)| end - start).sum::<u64>()
    }

    /// Removes everything and frees the memory.
    pub(crate) fn release(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(testkit::properties())]

        #[test]
        fn it_is_the_set_of_its_bytes(
            ops in prop::collection::vec((0u64..200, 0u64..30, any::<bool>()), 0..60)
        ) {
            let mut ranges = Ranges::default();
            let mut bytes = std::collections::BTreeSet::new();
            for (start, length, drop) in ops {
                if drop {
                    let before = bytes.len();
                    bytes.retain(|&byte| byte >= start);
                    let gone = ranges.drop_below(start);
                    prop_assert_eq!(gone as usize, before - bytes.len());
                } else {
                    let mut fresh = Vec::new();
                    ranges.insert(start, start + length, |a, b| fresh.extend(a..b));
                    let new: Vec<u64> =
                        (start..start + length).filter(|&byte| bytes.insert(byte)).collect();
                    prop_assert_eq!(fresh, new);
                }
                prop_assert_eq!(ranges.bytes() as usize, bytes.len());
                prop_assert_eq!(ranges.end(), bytes.last().map(|last| last + 1));
                let above = bytes.range(100..).count();
                prop_assert_eq!(ranges.bytes_from(100) as usize, above);
                let runs = bytes.iter().filter(|&&byte| !bytes.contains(&(byte + 1))).count();
                prop_assert_eq!(ranges.len(), runs);
                let near = bytes.range(99..=110).next().is_some();
                prop_assert_eq!(ranges.touches(100, 110), near);
            }
        }
    }
}
