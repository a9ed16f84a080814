// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recovery without SACK: duplicate acknowledgements are counted in place of SACKed
//! packets (RFC 6582, as Linux does it).

use super::Sender;
use super::ack::AckFacts;

impl Sender {
    /// Counts a duplicate acknowledgement: one more packet has arrived, but it is
    /// unknown which.
    pub(super) fn count_duplicate(&mut self) {
        self.dupacks += 1;
        self.limit_duplicates(0);
    }

    /// Limits the duplicates to the number of packets that can have arrived. If
    /// there were more, some packet was reordered. `acked` segments left the queue just
    /// now.
    fn limit_duplicates(&mut self, acked: u32) {
        let out = self.queue.len();
        let holes = self.queue.lost().max(1).min(out);
        if self.dupacks + holes > out {
            self.dupacks = out - holes;
            self.note_reordering(out + acked);
        }
    }

    /// Uncounts duplicates after a partial acknowledgement: one of the acknowledged
    /// packets was the hole, the others had been counted as duplicates.
    pub(super) fn uncount_duplicates(&mut self, news: &AckFacts) {
        if news.acked_segments > 0 {
            self.dupacks = self.dupacks.saturating_sub(news.acked_segments - 1);
        }
        self.limit_duplicates(news.acked_segments);
    }

    /// Raises the reordering estimate to `segments`. Reordering in excess of the estimate
    /// turns forward acknowledgement off.
    pub(super) fn note_reordering(&mut self, segments: u32) {
        if segments > self.reordering {
            self.reordering = segments.min(super::REORDERING_MAX);
            self.fack = false;
        }
    }
}
