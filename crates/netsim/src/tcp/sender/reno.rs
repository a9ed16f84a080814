// SPDX-License-Identifier: MIT OR Apache-2.0
//! Without SACK: duplicate acknowledgements counted in place of SACKed packets
//! (RFC 6582, as Linux does it).

use super::Sender;
use super::ack::News;

impl Sender {
    /// A duplicate: one more packet has arrived, we do not know which.
    pub(super) fn count_duplicate(&mut self) {
        self.dupacks += 1;
        self.limit_duplicates();
    }

    /// More duplicates than packets that can have arrived: some packet came
    /// out of order.
    fn limit_duplicates(&mut self) {
        let out = self.queue.len();
        let holes = self.queue.lost().max(1).min(out);
        if self.dupacks + holes > out {
            self.dupacks = out - holes;
            self.note_reordering(out);
        }
    }

    /// A partial acknowledgement: one packet was the hole, the others had been
    /// counted as duplicates.
    pub(super) fn uncount_duplicates(&mut self, news: &News) {
        if news.acked_segments > 0 {
            self.dupacks = self.dupacks.saturating_sub(news.acked_segments - 1);
        }
        self.limit_duplicates();
    }

    /// What arrived was more out of order than thought.
    pub(super) fn note_reordering(&mut self, segments: u32) {
        self.reordering = self.reordering.max(segments.min(super::REORDERING_MAX));
    }
}
