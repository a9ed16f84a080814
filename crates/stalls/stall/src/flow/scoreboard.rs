// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outstanding data: each segment from its capture until it is acknowledged, as its sender
//! would have to keep it (RFC 6675), and what of it the receiver has reported by SACK.

use std::num::NonZeroU32;

use super::queue::{Place, Queue};
use super::ranges::Ranges;
use super::sent::Sent;
use crate::options::Options;

/// What an acknowledgement newly delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    /// Bytes that the receiver had not reported before.
    pub(crate) bytes: u64,
    /// Time of the latest capture, among the delivered segments, of one that was sent only
    /// once: a round trip may be measured with it.
    pub(crate) sent_once_ns: Option<u64>,
    /// Delivered bytes that were never captured.
    pub(crate) holes: u64,
    /// The largest delivered segment.
    pub(crate) largest: u64,
    /// Delivered segments that had been skipped by earlier reports and were sent only once:
    /// they were overtaken.
    pub(crate) overtaken: u64,
    /// Delivered segments whose repair can not have been answered yet: it was needless.
    pub(crate) needless: u64,
    /// What was sent after this time is not answered yet.
    unanswered_since_ns: u64,
    /// End of the highest report before: what was not reported below it had been skipped.
    passed_over: Option<u64>,
}

impl Delivered {
    /// Creates an empty record; what is not reported below `passed_over` had been skipped, and
    /// what was sent after `unanswered_since_ns` is not answered yet.
    pub(crate) fn beyond(passed_over: Option<u64>, unanswered_since_ns: u64) -> Self {
        Self {
            passed_over,
            unanswered_since_ns,
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
            // A segment that filled a hole may be older than the one that the acknowledgement
            // answers.
            1 if sent.first_ns == sent.last_ns => {
                self.sent_once_ns = self.sent_once_ns.max(Some(sent.last_ns));
                self.overtaken += u64::from(Some(sent.end) <= self.passed_over);
            }
            2.. if sent.last_ns > self.unanswered_since_ns => self.needless += 1,
            _ => {}
        }
    }
}

/// The outstanding segments in order of their bytes, without gaps between them.
#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    sent: Queue,
    sacked: Ranges,
    /// The most segments, and the most ranges, that are remembered.
    sent_most: usize,
    sacked_most: usize,
    repeated_most: usize,
    /// Number of segments and ranges looked at.
    steps: u64,
    /// Bytes of retransmissions thought to be in flight.
    retrans_bytes: u64,
    /// Counts timeouts. A timeout begins a new epoch, which marks all retransmissions of the
    /// one before as lost.
    epoch: NonZeroU32,
    /// Below this byte everything that is not reported is lost, because of a timeout.
    lost_below: u64,
}

impl Scoreboard {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            sent: Queue::default(),
            sacked: Ranges::default(),
            sent_most: options.outstanding_most,
            sacked_most: options.reported_most,
            repeated_most: options.repeated_most,
            steps: 0,
            retrans_bytes: 0,
            epoch: NonZeroU32::MIN,
            lost_below: 0,
        }
    }

    /// Returns the number of segments and ranges looked at or moved so far.
    pub(crate) fn steps(&self) -> u64 {
        self.steps + self.sent.moved()
    }

    pub(crate) fn len(&self) -> usize {
        self.sent.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent.len() == 0
    }

    pub(crate) fn head(&self) -> Option<&Sent> {
        self.sent.front()
    }

    pub(crate) fn sacked_bytes(&self) -> u64 {
        self.sacked.bytes()
    }

    /// Returns the bytes reported by SACK above `from`. O(number of ranges).
    pub(crate) fn sacked_above(&mut self, from: u64) -> u64 {
        self.steps += self.sacked.len() as u64;
        self.sacked.bytes_from(from)
    }

    pub(crate) fn highest_sacked(&self) -> Option<u64> {
        self.sacked.end()
    }

    /// Adds new data, or a hole if `copies` is 0, behind everything else.
    pub(crate) fn push(&mut self, start: u64, end: u64, now: u64, packet: u64, copies: u8) {
        self.sent
            .push_back(Sent::new(start, end, now, packet, copies));
    }

    /// Returns the segment added last.
    pub(crate) fn last_mut(&mut self) -> Option<&mut Sent> {
        self.sent.back_mut()
    }

    /// Forgets the first segment as if it had been acknowledged. Returns its end.
    pub(crate) fn forget_head(&mut self) -> Option<u64> {
        let end = self.sent.front()?.end;
        self.ack(end, &mut Delivered::default());
        Some(end)
    }

    /// Removes everything below `to`: it has been acknowledged. O(segments acknowledged).
    pub(crate) fn ack(&mut self, to: u64, delivered: &mut Delivered) {
        while let Some(head) = self.sent.front_mut().filter(|head| head.start < to) {
            self.steps += 1;
            let upto = head.end.min(to);
            let bytes = upto - head.start;
            if !head.sacked {
                delivered.note(head, bytes);
            }
            if head.retrans_epoch == Some(self.epoch) {
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

    /// Marks `start..end` as reported by SACK. O(log n + segments that are newly reported).
    /// Returns `false` if that would be one range too many, or one segment; it is then not
    /// remembered.
    pub(crate) fn sack(&mut self, start: u64, end: u64, delivered: &mut Delivered) -> bool {
        let (low, high) = match (self.sent.front(), self.sent.back()) {
            (Some(first), Some(last)) => (first.start, last.end),
            _ => return true,
        };
        let (start, end) = (start.max(low), end.min(high));
        if start >= end {
            return true;
        }
        let is_one_more = self.sacked.len() >= self.sacked_most && !self.sacked.touches(start, end);
        if is_one_more || !self.has_room_to_split(start) || !self.has_room_to_split(end) {
            return false;
        }
        let mut fresh: [(u64, u64); 8] = [(0, 0); 8];
        let mut many = Vec::new(); // used only where a block closes more than eight holes
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
        true
    }

    fn mark_sacked(&mut self, from: u64, to: u64, delivered: &mut Delivered) {
        self.split(from);
        self.split(to);
        let mut at = self.sent.find(from);
        while let Some(sent) = self.sent.get_mut(at).filter(|sent| sent.start < to) {
            self.steps += 1;
            sent.sacked = true;
            delivered.note(sent, sent.end - sent.start);
            if sent.retrans_epoch == Some(self.epoch) {
                sent.retrans_epoch = None;
                self.retrans_bytes -= sent.end - sent.start;
            }
            at = self.sent.next(at);
        }
    }

    /// Returns the captured bytes from `from` on, counted in the first segments behind it:
    /// holes do not count. Constant time.
    pub(crate) fn captured_above(&mut self, from: u64) -> u64 {
        const LOOKED_AT: usize = 64;
        let (mut at, mut bytes) = (self.sent.find(from), 0);
        for _ in 0..LOOKED_AT {
            let Some(sent) = self.sent.get(at) else {
                break;
            };
            self.steps += 1;
            bytes += (sent.end - sent.start) * u64::from(sent.copies > 0);
            at = self.sent.next(at);
        }
        bytes
    }

    /// Splits segments at both ends of `start..end`. Returns the first segment in it, if there
    /// is one.
    pub(crate) fn cut(&mut self, start: u64, end: u64) -> Option<Sent> {
        self.split(start);
        self.split(end);
        self.at(start).filter(|first| first.start < end).copied()
    }

    /// Returns the segment that contains `at`, or the first one behind it.
    pub(crate) fn at(&self, at: u64) -> Option<&Sent> {
        self.sent.get(self.sent.find(at))
    }

    /// Calls `change` with each segment of `start..end`. If `again` is set they were
    /// retransmitted and are in flight once more. Returns `false` if there are too many; the
    /// rest is then left as it is.
    pub(crate) fn change(
        &mut self,
        (start, end): (u64, u64),
        again: bool,
        change: impl Fn(&mut Sent),
    ) -> bool {
        let mut at = self.sent.find(start);
        for _ in 0..self.repeated_most {
            if again {
                self.note_retransmission(at, end);
            }
            let Some(sent) = self.sent.get_mut(at).filter(|sent| sent.start < end) else {
                return true;
            };
            self.steps += 1;
            change(sent);
            at = self.sent.next(at);
        }
        self.sent.get(at).is_none_or(|sent| sent.start >= end)
    }

    fn note_retransmission(&mut self, at: Place, end: u64) {
        let mark = Some(self.epoch);
        if let Some(sent) = self.sent.get_mut(at).filter(|sent| sent.start < end) {
            if sent.retrans_epoch != mark && !sent.sacked {
                sent.retrans_epoch = mark;
                self.retrans_bytes += sent.end - sent.start;
            }
        }
    }

    /// Marks everything that is not reported as lost, as the sender does at a timeout.
    pub(crate) fn all_lost(&mut self) {
        self.epoch = self.epoch.checked_add(1).unwrap_or(NonZeroU32::MIN);
        self.retrans_bytes = 0;
        self.lost_below = self.sent.back().map_or(0, |last| last.end);
    }

    /// Returns the bytes in flight, as paper 001, section 2, counts them: sent, less reported
    /// as arrived, less thought lost, plus retransmissions. Bytes count as lost below the
    /// highest reported byte, or below the mark of a timeout.
    pub(crate) fn flight_bytes(&self) -> u64 {
        let (Some(head), Some(last)) = (self.sent.front(), self.sent.back()) else {
            return 0;
        };
        let outstanding = last.end - head.start;
        let mark = self.lost_below.max(head.start);
        let mark = self.sacked.end().map_or(mark, |end| end.max(mark));
        // The mark is never below the highest reported byte.
        let lost = (mark.min(last.end) - head.start) - self.sacked.bytes();
        (outstanding - self.sacked.bytes()).saturating_sub(lost) + self.retrans_bytes
    }

    /// Removes everything and frees the memory.
    pub(crate) fn release(&mut self) {
        self.sent = Queue::default();
        self.sacked.release();
        self.retrans_bytes = 0;
    }

    /// Returns whether `at` lies between two segments, or there is room for one more segment.
    fn has_room_to_split(&self, at: u64) -> bool {
        // Room for two: the other end of the range may need a split too.
        self.sent.len() + 2 <= self.sent_most || self.at(at).is_none_or(|sent| sent.start >= at)
    }

    /// Splits the segment that contains `at`. When there are too many segments it leaves the
    /// segment whole.
    fn split(&mut self, at: u64) {
        let place = self.sent.find(at);
        if self.sent.len() >= self.sent_most {
            return;
        }
        let Some(sent) = self.sent.get_mut(place).filter(|sent| sent.start < at) else {
            return;
        };
        let mut tail = *sent;
        sent.end = at;
        tail.start = at;
        self.steps += 1;
        self.sent.insert_behind(place, tail);
    }
}
