// SPDX-License-Identifier: MIT OR Apache-2.0
//! The SACK blocks that a receiver reports, newest first. Only `KEPT` of them are
//! kept: a block that was pushed out is not reported again until part of it arrives
//! anew.

use crate::tcp::segment::SackBlock;

/// Number of blocks for which an acknowledgement without timestamps has room.
const KEPT: usize = 4;

#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    blocks: [SackBlock; KEPT],
    count: usize,
}

impl Blocks {
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..self.count]
    }

    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds new data: the block that it touches grows and becomes the first,
    /// merging with the other blocks that it then touches. If it touches none, it
    /// becomes a new block.
    pub fn add(&mut self, new: SackBlock) {
        let mut first = new;
        let mut kept = [SackBlock::default(); KEPT];
        let mut count = 1;
        for &old in self.as_slice() {
            if first.start <= old.end && old.start <= first.end {
                first.start = first.start.min(old.start);
                first.end = first.end.max(old.end);
            } else if count < KEPT {
                kept[count] = old;
                count += 1;
            }
        }
        kept[0] = first;
        self.blocks = kept;
        self.count = count;
    }

    /// Removes the blocks that are acknowledged.
    pub fn drop_below(&mut self, next: u64) {
        let mut count = 0;
        for i in 0..self.count {
            let block = self.blocks[i];
            if block.end > next {
                self.blocks[count] = block;
                count += 1;
            }
        }
        self.count = count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u64, end: u64) -> SackBlock {
        SackBlock { start, end }
    }

    #[test]
    fn four_blocks_are_kept_the_newest_first() {
        let mut blocks = Blocks::default();
        for start in [10, 20, 30, 40, 50] {
            blocks.add(block(start, start + 1));
        }
        let starts: Vec<u64> = blocks.as_slice().iter().map(|b| b.start).collect();
        assert_eq!(starts, [50, 40, 30, 20]);
        blocks.add(block(31, 32));
        assert_eq!(blocks.as_slice()[0], block(30, 32));
        assert_eq!(blocks.as_slice().len(), 4);
    }

    #[test]
    fn a_filled_hole_joins_two_blocks() {
        let mut blocks = Blocks::default();
        blocks.add(block(10, 11));
        blocks.add(block(12, 13));
        blocks.add(block(11, 12));
        assert_eq!(blocks.as_slice(), [block(10, 13)]);
        blocks.drop_below(13);
        assert!(blocks.as_slice().is_empty());
    }
}
