// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scoreboard: marks the queue's packets by SACK blocks. The kernels of paper
//! 001 scan the queue for each acknowledgement, once for all its blocks, and
//! continue where the last scan ended if they can; their defects are in exactly
//! this code (section 4).

use units::clock::Time;

use super::ack::AckFacts;
use super::queue::tag;
use super::sack_memory::{BLOCKS, sort};
use super::{Sender, State};
use crate::tcp::segment::{SackBlock, Segment};
use crate::tcp::variant::{LostRetransmission, SackHint, SackScan};

/// State of the scan for one acknowledgement.
struct Walk {
    /// Packet at which the scan for the next block begins.
    from: u64,
    /// Number of packets up to the highest SACKed, before this acknowledgement.
    prior_fackets: u32,
    /// Lowest position in the queue of a packet that arrived late.
    late: Option<u32>,
    /// Sequence number up to which data overtook a retransmission.
    lost_retransmission: Option<u64>,
    /// Largest end of all blocks.
    highest_end: u64,
}

impl Walk {
    /// Notes that the packet at this place of the queue arrived late.
    fn note_late(&mut self, place: u32) {
        self.late = Some(self.late.map_or(place, |late| late.min(place)));
    }
}

impl Sender {
    /// Updates the scoreboard with the SACK blocks of a segment.
    pub(super) fn take_blocks(&mut self, now: Time, segment: &Segment, news: &mut AckFacts) {
        let blocks = segment.sack_blocks();
        if !self.config.sack || blocks.is_empty() {
            return;
        }
        news.dsack = is_dsack(segment.ack, blocks);
        if news.dsack && blocks[0].end <= news.prior_una {
            self.uncount_retransmission(blocks[0].end);
        }
        if self.is_rack() {
            self.take_blocks_for_rack(now, segment, news);
            return;
        }
        if self.sacked_out() == 0 {
            self.fackets = 0;
        }
        self.walk_blocks(blocks, news);
        if self.variant().lost_retransmission == LostRetransmission::OwnWalk {
            self.find_lost_retransmissions(news);
        }
    }

    fn walk_blocks(&mut self, blocks: &[SackBlock], news: &mut AckFacts) {
        let mut walk = Walk {
            from: self.queue.head(),
            prior_fackets: self.fackets,
            late: None,
            lost_retransmission: None,
            highest_end: blocks.iter().map(|block| block.end).max().unwrap_or(0),
        };
        if self.variant().sack_scan == SackScan::WholeQueue {
            for (index, &block) in blocks.iter().enumerate() {
                walk.from = self.queue.head();
                news.beyond_recovery |= block.end > self.high_seq;
                self.walk_block(block, news.dsack && index == 0, &mut walk, news);
            }
        } else {
            self.walk_with_hint(blocks, &mut walk, news);
        }
        if let Some(end) = walk
            .lost_retransmission
            .filter(|_| self.state == State::Recovery)
        {
            self.clear_overtaken(end, news);
        }
        if let Some(late) = walk.late.filter(|&late| late < self.fackets) {
            if self.state != State::Loss {
                self.note_reordering(self.fackets + 1 - late);
            }
        }
    }

    /// Scans the queue once for all the blocks, from the hint on if there is one.
    fn walk_with_hint(&mut self, blocks: &[SackBlock], walk: &mut Walk, news: &mut AckFacts) {
        let variant = *self.variant();
        let seen = self.sack.known();
        let only_first_grew = self.sack.exchange(blocks, variant.keeps_old_blocks);
        let mut sorted = [SackBlock::default(); BLOCKS];
        let count = blocks.len().min(BLOCKS);
        let sorted = &mut sorted[..count];
        sorted.copy_from_slice(&blocks[..count]);
        let (count, first) = if only_first_grew {
            (1, 0)
        } else {
            self.sack.hint = None;
            (count, sort(sorted, blocks, variant.sack_sort))
        };
        walk.from = self.sack.hint.unwrap_or(walk.from);
        for (index, &block) in sorted.iter().enumerate().take(count) {
            if variant.skip_seen_blocks && !only_first_grew && seen.contains(&block) {
                continue;
            }
            news.beyond_recovery |= block.end > self.high_seq;
            let is_first = index == first;
            let dsack = news.dsack && (is_first || variant.dsack_for_all_blocks);
            self.walk_block(block, dsack, walk, news);
            let kept = is_first || variant.sack_hint == SackHint::AfterAnyBlock;
            if kept && self.queue.len() > 0 {
                self.sack.hint = Some(walk.from);
            }
        }
    }

    /// Scans the queue from where the last scan ended to the block's end.
    fn walk_block(&mut self, block: SackBlock, dsack: bool, walk: &mut Walk, news: &mut AckFacts) {
        let against = match self.variant().lost_retransmission {
            LostRetransmission::EndOfItsBlock => Some(block.end),
            LostRetransmission::HighestEndOfBlocks => Some(walk.highest_end),
            LostRetransmission::OwnWalk => None,
        };
        let mut number = walk.from.max(self.queue.head());
        while let Some(packet) = self.queue.get(number).copied() {
            if packet.start >= block.end {
                break;
            }
            self.counters.scoreboard_steps += 1;
            let inside = block.start <= packet.start && packet.end <= block.end;
            if inside && dsack && packet.has(tag::EVER) {
                self.uncount_retransmission(packet.end);
            }
            if packet.end <= self.una {
                self.note_acked(number, inside && dsack, walk);
                number += 1;
                continue;
            }
            let overtaken = |end: &u64| packet.has(tag::RETRANS) && packet.sent_nxt < *end;
            if let Some(end) = against.filter(overtaken) {
                walk.lost_retransmission = walk.lost_retransmission.max(Some(end));
            }
            if inside {
                self.tag_sacked(number, dsack, walk, news);
            }
            number += 1;
        }
        walk.from = number.min(self.queue.tail().saturating_sub(1));
    }

    /// Examines a packet that is acknowledged and about to leave the queue: it was reordered if
    /// it was in a hole, or if its retransmission arrived too.
    fn note_acked(&mut self, number: u64, twice: bool, walk: &mut Walk) {
        let Some(packet) = self.queue.get(number) else {
            return;
        };
        let place = self.queue.count_to(number);
        let late = if packet.has(tag::EVER) {
            twice && packet.has(tag::SACKED)
        } else {
            place < walk.prior_fackets && !packet.has(tag::SACKED)
        };
        if late {
            walk.note_late(place);
        }
    }

    /// Marks a packet that a block covers as SACKed.
    fn tag_sacked(&mut self, number: u64, dsack: bool, walk: &mut Walk, news: &mut AckFacts) {
        let Some(packet) = self.queue.get(number).copied() else {
            return;
        };
        let place = self.queue.count_to(number);
        if !packet.has(tag::SACKED) {
            if packet.has(tag::RETRANS) {
                // If it is not marked lost, its retransmission may still be in
                // flight.
                if packet.has(tag::LOST) {
                    self.queue.clear(number, tag::LOST | tag::RETRANS);
                    self.forget_retransmit_mark(number);
                }
            } else {
                if !packet.has(tag::EVER) && place < walk.prior_fackets {
                    walk.note_late(place);
                }
                self.queue.clear(number, tag::LOST);
                self.forget_retransmit_mark(number);
            }
            self.queue.set(number, tag::SACKED);
            self.fackets = self.fackets.max(place);
            news.sacked = true;
            news.delivered += 1;
        } else if dsack && packet.has(tag::EVER) {
            walk.note_late(place);
        }
        if dsack {
            self.queue.clear(number, tag::RETRANS);
        }
    }

    /// Uncounts a retransmission that was reported as received twice.
    fn uncount_retransmission(&mut self, end: u64) {
        if self.undo_marker.is_some_and(|marker| end > marker) {
            self.undo_retrans -= 1;
        }
    }

    /// Marks lost the retransmissions sent before the data that has arrived up to
    /// `end`. This scans the whole queue up to there, as the kernel did.
    fn clear_overtaken(&mut self, end: u64, news: &mut AckFacts) {
        let mut number = self.queue.head();
        while let Some(packet) = self.queue.get(number) {
            if packet.start > end {
                break;
            }
            self.counters.scoreboard_steps += 1;
            let present = packet.end > self.una && packet.has(tag::RETRANS);
            if present && self.is_overtaken(packet.sent_nxt, end) {
                self.lose_retransmission(number, news);
            }
            number += 1;
        }
    }

    /// Returns whether data that arrived up to `end` shows that a retransmission sent when
    /// `nxt` was `sent_nxt` is lost. Without forward acknowledgement, as much more must have
    /// arrived as may be reordered.
    fn is_overtaken(&self, sent_nxt: u64, end: u64) -> bool {
        let spared = u64::from(self.reordering) * self.mss();
        sent_nxt < end && (self.fack || end >= sent_nxt + spared)
    }

    /// Handles a lost retransmission: marks the packet lost, so that it is
    /// retransmitted again, unless it was SACKed.
    pub(super) fn lose_retransmission(&mut self, number: u64, news: &mut AckFacts) {
        self.queue.clear(number, tag::RETRANS);
        self.counters.lost_retransmits += 1;
        self.forward_mark = self.forward_mark.min(number);
        if self
            .queue
            .get(number)
            .is_some_and(|packet| !packet.has(tag::SACKED))
        {
            self.set_lost(number);
            news.sacked = true;
            news.lost += 1;
        }
    }

    /// Finds lost retransmissions as Linux 2.6.24 does: compares the highest SACKed
    /// sequence number with every retransmitted packet, whenever it has passed the
    /// lowest `sent_nxt` of these packets.
    fn find_lost_retransmissions(&mut self, news: &mut AckFacts) {
        let retrans = self.queue.retrans();
        if self.state != State::Recovery || retrans == 0 {
            return;
        }
        let highest = self.fackets.checked_sub(1).map(u64::from);
        let Some(upto) = highest
            .and_then(|place| self.queue.get(self.queue.head() + place))
            .map(|packet| packet.end)
        else {
            return;
        };
        if self.sack.lost_low.is_some_and(|low| upto <= low) {
            return;
        }
        let mut low: Option<u64> = None;
        let mut met = 0;
        let mut number = self.queue.head();
        while let Some(packet) = self.queue.get(number).filter(|_| met < retrans) {
            self.counters.scoreboard_steps += 1;
            if packet.has(tag::RETRANS) {
                met += 1;
                let sent_nxt = packet.sent_nxt;
                if self.is_overtaken(sent_nxt, upto) {
                    self.lose_retransmission(number, news);
                } else {
                    low = Some(low.map_or(sent_nxt, |low| low.min(sent_nxt)));
                }
            }
            number += 1;
        }
        self.sack.lost_low = low;
    }
}

/// Returns whether the first block reports data received twice (RFC 2883): it is
/// below the acknowledgement, or within the second block.
fn is_dsack(ack: u64, blocks: &[SackBlock]) -> bool {
    match blocks {
        [first, ..] if first.start < ack => true,
        [first, second, ..] => second.start <= first.start && first.end <= second.end,
        _ => false,
    }
}
