// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is under way: each segment from when it was captured until it is
//! acknowledged, as its sender would have to keep it (RFC 6675), and what of it
//! the receiver has said to have.

use std::collections::VecDeque;

use super::ranges::Ranges;
use crate::history::RetransmissionKind;

/// A segment under way, or a hole: bytes that were passed over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Captured first; of a hole, when it was found.
    pub(crate) first_ns: u64,
    /// Captured last.
    pub(crate) last_ns: u64,
    /// Number of the packet captured last.
    pub(crate) packet: u64,
    /// Time stamp of the packet captured last; 0 without.
    pub(crate) stamp: u32,
    /// IP identification of the same.
    pub(crate) ip_id: u16,
    /// Times captured; 0: a hole.
    pub(crate) copies: u8,
    pub(crate) sacked: bool,
    /// Sent again and thought to be in flight, in this epoch of the board.
    retrans_epoch: u32,
    /// What the last retransmission was for.
    pub(crate) kind: Option<RetransmissionKind>,
}

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    /// Bytes that the receiver had not told of before.
    pub(crate) bytes: u64,
    /// Latest capture of a segment, sent once, that is among them: what a round
    /// trip may be measured with.
    pub(crate) sent_once_ns: Option<u64>,
    /// Bytes among them that never were captured.
    pub(crate) holes: u64,
    /// The largest segment among them.
    pub(crate) largest: u64,
    /// Segments among them that had been passed over, and were sent once only: they
    /// were overtaken.
    pub(crate) overtaken: u64,
    /// What lies below had been passed over before.
    passed_over: u64,
}

impl Delivered {
    /// Nothing yet; below `passed_over` all was passed over by what had been reported.
    pub(crate) fn beyond(passed_over: u64) -> Self {
        Self {
            passed_over,
            ..Self::default()
        }
    }

    fn note(&mut self, sent: &Sent, bytes: u64) {
        self.bytes += bytes;
        if sent.copies > 0 {
            self.largest = self.largest.max(bytes);
        }
        match sent.copies {
            0 => self.holes += bytes,
            // What filled a hole may be older than what the answer is to.
            1 if sent.first_ns == sent.last_ns => {
                self.sent_once_ns = self.sent_once_ns.max(Some(sent.last_ns));
                self.overtaken += u64::from(sent.end <= self.passed_over);
            }
            _ => {}
        }
    }
}

/// Segments in order of their bytes, without gaps between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    sent: VecDeque<Sent>,
    sacked: Ranges,
    /// Bytes of retransmissions thought to be in flight.
    retrans_bytes: u64,
    /// A timeout takes all of them for lost by beginning a new one.
    epoch: u32,
    /// Below this everything that is not reported is lost: a timeout said so.
    lost_below: u64,
}

impl Scoreboard {
    pub(crate) fn len(&self) -> usize {
        self.sent.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(crate) fn head(&self) -> Option<&Sent> {
        self.sent.front()
    }

    pub(crate) fn sacked_bytes(&self) -> u64 {
        self.sacked.bytes()
    }

    pub(crate) fn sacked_above(&self, from: u64) -> u64 {
        self.sacked.bytes_from(from)
    }

    pub(crate) fn highest_sacked(&self) -> u64 {
        self.sacked.end()
    }

    /// New data, or a hole if `copies` is 0, behind everything else.
    pub(crate) fn push(&mut self, start: u64, end: u64, now: u64, packet: u64, copies: u8) {
        self.sent.push_back(Sent {
            start,
            end,
            first_ns: now,
            last_ns: now,
            packet,
            stamp: 0,
            ip_id: 0,
            copies,
            sacked: false,
            retrans_epoch: 0,
            kind: None,
        });
    }

    /// The segment pushed last.
    pub(crate) fn last_mut(&mut self) -> Option<&mut Sent> {
        self.sent.back_mut()
    }

    /// Forgets the first segment as if it had been acknowledged; its end.
    pub(crate) fn forget_head(&mut self) -> Option<u64> {
        let end = self.sent.front()?.end;
        self.ack(end, &mut Delivered::default());
        Some(end)
    }

    /// Everything below `to` has arrived. O(segments acknowledged).
    pub(crate) fn ack(&mut self, to: u64, delivered: &mut Delivered) {
        while let Some(head) = self.sent.front_mut().filter(|head| head.start < to) {
            let upto = head.end.min(to);
            let bytes = upto - head.start;
            if !head.sacked {
                delivered.note(head, bytes);
            }
            if head.retrans_epoch == self.epoch + 1 {
                self.retrans_bytes -= bytes;
            }
            if upto < head.end {
                head.start = upto;
                break;
            }
            self.sent.pop_front();
        }
        self.sacked.drop_below(to);
    }

    /// `start..end` has arrived. O(log n + segments that are new in it).
    pub(crate) fn sack(&mut self, start: u64, end: u64, delivered: &mut Delivered) {
        let (low, high) = match (self.sent.front(), self.sent.back()) {
            (Some(first), Some(last)) => (first.start, last.end),
            _ => return,
        };
        let (start, end) = (start.max(low), end.min(high));
        let mut fresh: [(u64, u64); 8] = [(0, 0); 8];
        let mut many = Vec::new(); // only where a block closes many holes
        let mut count = 0;
        self.sacked.insert(start, end, |a, b| {
            match fresh.get_mut(count) {
                Some(place) => *place = (a, b),
                None => many.push((a, b)),
            }
            count += 1;
        });
        let few = fresh.iter().take(count.min(fresh.len()));
        for &(from, to) in few.chain(&many) {
            self.mark_sacked(from, to, delivered);
        }
    }

    fn mark_sacked(&mut self, from: u64, to: u64, delivered: &mut Delivered) {
        self.split(from);
        self.split(to);
        let mut at = self.index(from);
        while let Some(sent) = self.sent.get_mut(at).filter(|sent| sent.start < to) {
            sent.sacked = true;
            delivered.note(sent, sent.end - sent.start);
            if sent.retrans_epoch == self.epoch + 1 {
                sent.retrans_epoch = 0;
                self.retrans_bytes -= sent.end - sent.start;
            }
            at += 1;
        }
    }

    /// The segments of `start..end`, split so that they are just that.
    pub(crate) fn range(&mut self, start: u64, end: u64) -> std::ops::Range<usize> {
        self.split(start);
        self.split(end);
        self.index(start)..self.index(end)
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Sent> {
        self.sent.get(index)
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut Sent> {
        self.sent.get_mut(index)
    }

    /// Segment `index` was sent again.
    pub(crate) fn note_retransmission(&mut self, index: usize) {
        let mark = self.epoch + 1;
        if let Some(sent) = self.sent.get_mut(index) {
            if sent.retrans_epoch != mark && !sent.sacked {
                sent.retrans_epoch = mark;
                self.retrans_bytes += sent.end - sent.start;
            }
        }
    }

    /// The sender takes everything not reported for lost.
    pub(crate) fn all_lost(&mut self) {
        self.epoch = self.epoch.wrapping_add(1) % (u32::MAX - 1);
        self.retrans_bytes = 0;
        self.lost_below = self.sent.back().map_or(0, |last| last.end);
    }

    /// In flight, in bytes, as paper 001, section 2, counts it: sent, less
    /// reported as arrived, less thought lost, and retransmissions. Lost is
    /// what lies below the highest reported byte, or below a timeout's mark.
    pub(crate) fn flight_bytes(&self) -> u64 {
        let (Some(head), Some(last)) = (self.sent.front(), self.sent.back()) else {
            return 0;
        };
        let outstanding = last.end - head.start;
        let mark = self.sacked.end().max(self.lost_below).max(head.start);
        // The mark is never below the highest reported byte.
        let lost = (mark.min(last.end) - head.start) - self.sacked.bytes();
        (outstanding - self.sacked.bytes()).saturating_sub(lost) + self.retrans_bytes
    }

    /// Forgets everything, memory included.
    pub(crate) fn release(&mut self) {
        self.sent = VecDeque::new();
        self.sacked.release();
        self.retrans_bytes = 0;
    }

    fn index(&self, at: u64) -> usize {
        self.sent.partition_point(|sent| sent.end <= at)
    }

    fn split(&mut self, at: u64) {
        let index = self.index(at);
        let Some(sent) = self.sent.get_mut(index).filter(|sent| sent.start < at) else {
            return;
        };
        let mut tail = *sent;
        sent.end = at;
        tail.start = at;
        self.sent.insert(index + 1, tail);
    }
}
