// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data that has arrived out of order, as ranges that neither touch nor
//! overlap, in order.

use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    ranges: VecDeque<(u64, u64)>,
}

/// The result of [`Ranges::take_up_to`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Merged {
    /// The byte after the data that is now in order.
    pub end: u64,
    /// Bytes that had already been stored.
    pub overlap_bytes: u64,
}

impl Ranges {
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds `start..end` and returns how many of its bytes were new. Finding the
    /// position is logarithmic; the ranges behind it are moved only where ranges
    /// are inserted or removed.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        let first = self.ranges.partition_point(|range| range.1 < start);
        let last = self.ranges.partition_point(|range| range.0 <= end);
        if first == last {
            self.ranges.insert(first, (start, end));
            return end - start;
        }
        let mut known = 0;
        let mut joined = (start, end);
        for range in self.ranges.range(first..last) {
            known += range.1.min(end).saturating_sub(range.0.max(start));
            joined = (joined.0.min(range.0), joined.1.max(range.1));
        }
        if let Some(range) = self.ranges.get_mut(first) {
            *range = joined;
        }
        self.ranges.drain(first + 1..last);
        end - start - known
    }

    /// Removes the ranges that lie below `end` or touch it, because all data before
    /// `end` is now in order.
    pub fn take_up_to(&mut self, end: u64) -> Merged {
        let mut merged = Merged {
            end,
            overlap_bytes: 0,
        };
        while let Some(&(start, stop)) = self.ranges.front() {
            if start > merged.end {
                break;
            }
            merged.overlap_bytes += stop.min(end) - start.min(end);
            merged.end = merged.end.max(stop);
            self.ranges.pop_front();
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(testkit::properties())]

        /// The ranges agree with a set of bytes.
        #[test]
        fn ranges_agree_with_a_set_of_bytes(inserts in prop::collection::vec((1u64..100, 1u64..20), 1..40), upto in 1u64..130) {
            let mut ranges = Ranges::default();
            let mut bytes = BTreeSet::new();
            for (start, len) in inserts {
                let before = bytes.len();
                bytes.extend(start..start + len);
                prop_assert_eq!(ranges.insert(start, start + len), (bytes.len() - before) as u64);
            }
            let overlap = bytes.range(..upto).count() as u64;
            let mut end = upto;
            while bytes.contains(&end) {
                end += 1;
            }
            let merged = ranges.take_up_to(upto);
            prop_assert_eq!(merged, Merged { end, overlap_bytes: overlap });
            let left: u64 = ranges.ranges.iter().map(|range| range.1 - range.0).sum();
            prop_assert_eq!(left, bytes.range(end..).count() as u64);
        }
    }
}
