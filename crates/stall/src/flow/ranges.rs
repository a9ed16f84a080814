// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set of bytes, as ranges that do not touch.

/// Disjoint ranges in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    list: Vec<(u64, u64)>,
    bytes: u64,
}

impl Ranges {
    /// Adds `start..end` and calls `fresh` with each part that was not there.
    /// O(log n), and n where ranges come or go in the middle.
    pub(crate) fn insert(&mut self, start: u64, end: u64, mut fresh: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        let first = self.list.partition_point(|range| range.1 < start);
        let (mut low, mut high, mut at, mut last) = (start, end, start, first);
        while let Some(&(from, to)) = self.list.get(last).filter(|range| range.0 <= end) {
            if at < from {
                self.bytes += from - at;
                fresh(at, from);
            }
            at = at.max(to);
            low = low.min(from);
            high = high.max(to);
            last += 1;
        }
        if at < end {
            self.bytes += end - at;
            fresh(at, end);
        }
        if last == first + 1 {
            self.list[first] = (low, high);
        } else {
            self.list.splice(first..last, [(low, high)]);
        }
    }

    /// Forgets what is below `to`; the answer is how many bytes that were.
    pub(crate) fn drop_below(&mut self, to: u64) -> u64 {
        if self.list.first().is_none_or(|range| range.0 >= to) {
            return 0;
        }
        let mut dropped = 0;
        let gone = self.list.partition_point(|range| range.1 <= to);
        for (start, end) in self.list.drain(..gone) {
            dropped += end - start;
        }
        if let Some(range) = self.list.first_mut().filter(|range| range.0 < to) {
            dropped += to - range.0;
            range.0 = to;
        }
        self.bytes -= dropped;
        dropped
    }

    /// Bytes in it.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Byte after the last one; 0 if there is none.
    pub(crate) fn end(&self) -> u64 {
        self.list.last().map_or(0, |range| range.1)
    }

    /// How many bytes of it lie at or above `from`.
    pub(crate) fn bytes_from(&self, from: u64) -> u64 {
        let first = self.list.partition_point(|range| range.1 <= from);
        let above = self.list.iter().skip(first);
        above.map(|range| range.1 - range.0.max(from)).sum()
    }

    /// Forgets everything, memory included.
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
                prop_assert_eq!(ranges.end(), bytes.last().map_or(0, |last| last + 1));
                let above = bytes.range(100..).count();
                prop_assert_eq!(ranges.bytes_from(100) as usize, above);
            }
        }
    }
}
