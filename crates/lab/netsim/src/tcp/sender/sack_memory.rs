// SPDX-License-Identifier: MIT OR Apache-2.0
//! State kept from the SACK blocks of one acknowledgement for the next.

use crate::tcp::segment::SackBlock;
use crate::tcp::variant::SackSort;

/// Largest number of SACK blocks in one acknowledgement.
pub(super) const BLOCKS: usize = 4;

/// State kept from the SACK blocks of one acknowledgement for the next.
#[derive(Clone, Debug, Default)]
pub(super) struct SackMemory {
    /// The last blocks, in wire order.
    pub(super) cache: [SackBlock; BLOCKS],
    /// The packet from which the next scan continues.
    pub(super) hint: Option<u64>,
    /// Lowest `sent_nxt` of the retransmitted packets (2.6.24 only).
    pub(super) lost_low: Option<u64>,
}

impl SackMemory {
    pub fn forget_hint(&mut self) {
        self.hint = None;
    }

    /// Replaces the cache, or if `keep` is set as much of it as there are blocks. Returns
    /// whether nothing changed except the end of the first block.
    pub(super) fn exchange(&mut self, blocks: &[SackBlock], keep: bool) -> bool {
        let same = |(i, block): (usize, &SackBlock)| {
            let old = self.cache[i];
            old.start == block.start && (i == 0 || old.end == block.end)
        };
        let only_first = blocks.iter().enumerate().all(same);
        if !keep {
            self.cache = [SackBlock::default(); BLOCKS];
        }
        self.replace(blocks);
        only_first
    }

    pub fn known(&self) -> [SackBlock; BLOCKS] {
        self.cache
    }

    pub fn remember(&mut self, blocks: &[SackBlock]) {
        self.cache = [SackBlock::default(); BLOCKS];
        self.replace(blocks);
    }

    fn replace(&mut self, blocks: &[SackBlock]) {
        for (slot, block) in self.cache.iter_mut().zip(blocks) {
            *slot = *block;
        }
    }
}

/// Sorts the blocks by start, in place; `wire` holds them in the order of the
/// segment. Returns where the segment's first block should be then.
pub(super) fn sort(blocks: &mut [SackBlock], wire: &[SackBlock], how: SackSort) -> usize {
    let mut first = 0;
    for last in (1..blocks.len()).rev() {
        for i in 0..last {
            if blocks[i].start <= blocks[i + 1].start {
                continue;
            }
            if i == first {
                first = i + 1;
            }
            match how {
                SackSort::Right => blocks.swap(i, i + 1),
                SackSort::LosesBlocks => {
                    blocks[i] = wire[i + 1];
                    blocks[i + 1] = wire[i];
                }
            }
        }
    }
    first
}
