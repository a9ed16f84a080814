// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is remembered of the SACK blocks of one acknowledgement for the next.

use crate::tcp::segment::SackBlock;
use crate::tcp::variant::SackSort;

/// Blocks of one acknowledgement.
pub(super) const BLOCKS: usize = 4;

/// What is remembered from one acknowledgement's blocks for the next's.
#[derive(Clone, Debug, Default)]
pub(super) struct SackMemory {
    /// The last blocks, in wire order.
    pub(super) cache: [SackBlock; BLOCKS],
    /// The packet to go on from.
    pub(super) hint: Option<u64>,
    /// No retransmitted packet remembers less (2.6.24 only).
    pub(super) lost_low: Option<u64>,
}

impl SackMemory {
    pub fn forget_hint(&mut self) {
        self.hint = None;
    }

    /// Replaces the cache. Whether all that changed is the end of the first
    /// block.
    pub(super) fn exchange(&mut self, blocks: &[SackBlock]) -> bool {
        let same = |(i, block): (usize, &SackBlock)| {
            let old = self.cache[i];
            old.start == block.start && (i == 0 || old.end == block.end)
        };
        let only_first = blocks.iter().enumerate().all(same);
        self.remember(blocks);
        only_first
    }

    pub fn known(&self) -> [SackBlock; BLOCKS] {
        self.cache
    }

    pub fn remember(&mut self, blocks: &[SackBlock]) {
        self.cache = [SackBlock::default(); BLOCKS];
        for (slot, block) in self.cache.iter_mut().zip(blocks) {
            *slot = *block;
        }
    }
}

/// By start, in place; `wire` is the order they came in.
pub(super) fn sort(blocks: &mut [SackBlock], wire: &[SackBlock], how: SackSort) {
    for last in (1..blocks.len()).rev() {
        for i in 0..last {
            if blocks[i].start <= blocks[i + 1].start {
                continue;
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
}
