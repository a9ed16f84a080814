// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the packets that leave a port in a period (paper 004, 2.2.1 and 3.1): each stream's
//! reservation, then late packets of streams at the cost of best effort, then best effort with the
//! rest of the budget.
//!
//! A stream is late with what it has not sent of its reservations of the periods before. What a
//! stream sends beyond all of them is excess: it waits until a later reservation has room for it,
//! and best effort pays nothing for it.

use std::collections::VecDeque;

use serde::Serialize;

/// A frame that takes time on the wire.
pub trait WireLength {
    /// Returns its bytes on the wire, with preamble, checksum and inter-packet gap.
    fn wire_bytes(&self) -> u64;
}

/// Number of periods whose unused reservations may be sent later. Each router delays packets by one
/// period, so they can be late by as many periods as they passed routers.
const SAVED_PERIODS: u64 = 8;
/// Wire bytes of a full frame with two VLAN tags: a stream that reserves less in a period sends one
/// when it has saved as much.
const LONGEST_WIRE_BYTES: u64 = 1546;

/// Counts of a stream's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamCounts {
    pub sent: u64,
    /// Sent packets that exceeded the period's reservation: they were late from an earlier one.
    pub late: u64,
    /// Periods at whose end late packets were left, because best effort had no bytes left to give
    /// up, or had already given up one period's backlog.
    pub deferred: u64,
    /// Packets that waited for another period because the stream had sent more than its
    /// reservation.
    pub excess: u64,
    /// Packets dropped because the queue was full.
    pub dropped: u64,
}

/// Counts of the best effort's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BestEffortCounts {
    pub sent: u64,
    /// Packets dropped because the queue was full.
    pub dropped: u64,
}

/// The queues of one port.
#[derive(Debug)]
pub struct Itm<F> {
    streams: Vec<Queue<F>>,
    best_effort: VecDeque<F>,
    best_effort_counts: BestEffortCounts,
    budget_bytes: u64,
    most_packets: usize,
    /// Index of the stream that is served first. The order matters: for the later streams best
    /// effort may have no bytes left to give up.
    first: usize,
}

/// What best effort gave up for a stream in a period.
#[derive(Clone, Copy, Debug, Default)]
struct Late {
    /// Whether it gave up bytes for a packet.
    is_paid: bool,
    /// Whether it had no bytes for the next packet.
    is_deferred: bool,
}

#[derive(Debug)]
struct Queue<F> {
    reserve_bytes: u64,
    /// Bytes that the stream may send: its reservations less what it has sent of them.
    credit_bytes: u64,
    waiting: VecDeque<F>,
    /// Number of waiting packets, from the first on, that are counted as excess.
    counted: usize,
    counts: StreamCounts,
}

impl<F: WireLength> Queue<F> {
    /// Returns the queue of a stream that has sent nothing yet.
    fn new(reserve_bytes: u64, most_packets: usize) -> Self {
        Self {
            reserve_bytes,
            credit_bytes: u64::MAX,
            waiting: VecDeque::with_capacity(most_packets),
            counted: 0,
            counts: StreamCounts::default(),
        }
    }

    fn reserve(&mut self, periods: u64) {
        let saved_bytes = self.reserve_bytes.saturating_mul(SAVED_PERIODS);
        let most_bytes = self
            .reserve_bytes
            .saturating_add(saved_bytes.max(LONGEST_WIRE_BYTES));
        let more_bytes = self.reserve_bytes.saturating_mul(periods);
        self.credit_bytes = self.credit_bytes.saturating_add(more_bytes).min(most_bytes);
    }

    /// Sends the reservation of a period, and late packets as far as `rest_bytes` suffice for them:
    /// one period's backlog at most.
    fn period(&mut self, rest_bytes: &mut u64, send: &mut impl FnMut(F)) -> Late {
        let mut late = Late::default();
        self.reserve(1);
        let mut own_bytes = self.reserve_bytes;
        let mut backlog_bytes = self.reserve_bytes.max(LONGEST_WIRE_BYTES);
        while let Some(packet) = self.waiting.front() {
            let wire_bytes = packet.wire_bytes();
            let Some(credit_bytes) = self.credit_bytes.checked_sub(wire_bytes) else {
                self.counts.excess += self.waiting.len().saturating_sub(self.counted) as u64;
                self.counted = self.waiting.len();
                return late;
            };
            let late_bytes = wire_bytes.saturating_sub(own_bytes);
            let paid = rest_bytes
                .checked_sub(late_bytes)
                .zip(backlog_bytes.checked_sub(late_bytes));
            let Some((rest, backlog)) = paid else {
                self.counts.deferred += 1;
                late.is_deferred = true;
                return late;
            };
            (*rest_bytes, backlog_bytes) = (rest, backlog);
            own_bytes = own_bytes.saturating_sub(wire_bytes);
            self.credit_bytes = credit_bytes;
            self.counted = self.counted.saturating_sub(1);
            late.is_paid |= late_bytes > 0;
            self.counts.late += u64::from(late_bytes > 0);
            self.counts.sent += 1;
            self.waiting.pop_front().into_iter().for_each(&mut *send);
        }
        late
    }
}

impl<F: WireLength> Itm<F> {
    /// Returns a port that may send `budget_bytes` in a period, of which `reserve_bytes` has the
    /// reservation of each stream, with queues of `most_packets` each.
    pub fn new(budget_bytes: u64, reserve_bytes: &[u64], most_packets: usize) -> Self {
        let queues = reserve_bytes.iter();
        Self {
            streams: queues.map(|r| Queue::new(*r, most_packets)).collect(),
            best_effort: VecDeque::with_capacity(most_packets),
            best_effort_counts: BestEffortCounts::default(),
            budget_bytes,
            most_packets,
            first: 0,
        }
    }

    /// Queues a packet of a stream, or of the best effort. O(1).
    ///
    /// # Errors
    /// The packet, if its queue is full or there is no such stream.
    pub fn push(&mut self, stream: Option<usize>, packet: F) -> Result<(), F> {
        let Some(stream) = stream else {
            if self.best_effort.len() >= self.most_packets {
                self.best_effort_counts.dropped += 1;
                return Err(packet);
            }
            self.best_effort.push_back(packet);
            return Ok(());
        };
        match self.streams.get_mut(stream) {
            Some(queue) if queue.waiting.len() < self.most_packets => {
                queue.waiting.push_back(packet);
                Ok(())
            }
            Some(queue) => {
                queue.counts.dropped += 1;
                Err(packet)
            }
            None => Err(packet),
        }
    }

    /// Accounts for `periods` periods in which nothing was sent: their reservations are late.
    pub fn missed(&mut self, periods: u64) {
        self.streams.iter_mut().for_each(|q| q.reserve(periods));
    }

    /// Sends what a period allows, streams before best effort. O(packets).
    ///
    /// Streams are served in their order. If best effort could not pay for everything that is late,
    /// the next period begins after the stream that it paid for last.
    pub fn period(&mut self, mut send: impl FnMut(F)) {
        let reserved: u64 = self.streams.iter().map(|q| q.reserve_bytes).sum();
        // The unused part of a stream's reservation goes to nobody else: the next segment has its
        // own budget to keep.
        let mut rest_bytes = self.budget_bytes.saturating_sub(reserved);
        let streams = self.streams.len();
        let (mut next, mut is_short) = (0, false);
        for number in 0..streams {
            let index = (self.first + number) % streams;
            let Some(queue) = self.streams.get_mut(index) else {
                continue;
            };
            let late = queue.period(&mut rest_bytes, &mut send);
            is_short |= late.is_deferred;
            if late.is_paid {
                next = (index + 1) % streams;
            }
        }
        self.first = if is_short { next } else { 0 };
        while let Some(left) = self
            .best_effort
            .front()
            .and_then(|p| rest_bytes.checked_sub(p.wire_bytes()))
        {
            rest_bytes = left;
            self.best_effort_counts.sent += 1;
            self.best_effort.pop_front().into_iter().for_each(&mut send);
        }
    }

    /// Returns the number of waiting packets.
    pub fn waiting(&self) -> usize {
        let of_streams: usize = self.streams.iter().map(|q| q.waiting.len()).sum();
        of_streams + self.best_effort.len()
    }

    /// Returns the counts of each stream.
    pub fn stream_counts(&self) -> impl Iterator<Item = StreamCounts> + '_ {
        self.streams.iter().map(|q| q.counts)
    }

    pub fn best_effort_counts(&self) -> BestEffortCounts {
        self.best_effort_counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl WireLength for u64 {
        fn wire_bytes(&self) -> u64 {
            *self
        }
    }

    fn sent(itm: &mut Itm<u64>) -> Vec<u64> {
        let mut all = Vec::new();
        itm.period(|p| all.push(p));
        all
    }

    #[test]
    fn a_late_packet_goes_at_the_cost_of_best_effort() {
        // The budget is 300 a period, 100 of it reserved.
        let mut itm = Itm::new(300, &[100], 8);
        for stream in [Some(0), Some(0), None, None, None] {
            itm.push(stream, 100).unwrap();
        }
        // As in figure 9, both groups of the stream leave, and one packet less of the others.
        assert_eq!(sent(&mut itm).len(), 3);
        assert_eq!(itm.stream_counts().next().unwrap().late, 1);
        assert_eq!(itm.best_effort_counts().sent, 1);
        // Others do not get what the stream leaves of its reservation.
        assert_eq!(sent(&mut itm).len(), 2);
        assert_eq!(itm.waiting(), 0);
    }

    /// A stream offers 30 times its reservation. Once its credit is used it gets its
    /// reservation alone, and best effort all the rest.
    #[test]
    fn excess_gets_no_more_than_is_reserved() {
        let mut itm = Itm::new(7_000, &[200], 1024);
        let mut best_effort = Vec::new();
        for _ in 0..200 {
            for _ in 0..60 {
                let _ = itm.push(Some(0), 100);
                let _ = itm.push(None, 101);
                let _ = itm.push(None, 101);
            }
            best_effort.push(sent(&mut itm).iter().filter(|p| **p == 101).count());
        }
        let counts = itm.stream_counts().next().unwrap();
        // The reservations carry 400 packets; the credit carries fewer than 40.
        assert!((400..440).contains(&counts.sent), "{counts:?}");
        assert!(best_effort[100..].iter().all(|n| *n == 6_800 / 101));
    }

    /// Three groups come at once, as behind two routers that delayed two of them. One late
    /// group leaves in each period, at the cost of best effort, and nothing stays behind for
    /// good.
    #[test]
    fn late_groups_leave_one_a_period() {
        let mut itm = Itm::new(20_000, &[2_000], 64);
        let push = |itm: &mut Itm<u64>, packets| {
            for _ in 0..packets {
                itm.push(Some(0), 1_000).unwrap();
            }
            sent(itm).len()
        };
        let groups = [2, 2, 2, 0, 0, 6, 2, 2, 2];
        let left = groups.map(|packets| push(&mut itm, packets));
        assert_eq!(left, [2, 2, 2, 0, 0, 4, 4, 2, 2]);
        let counts = itm.stream_counts().next().unwrap();
        assert_eq!((counts.late, counts.deferred, counts.excess), (4, 1, 0));
    }

    /// A stream keeps its reservations of periods in which the thread did not run.
    #[test]
    fn reservations_of_missed_periods_are_kept() {
        let mut itm = Itm::new(9_000, &[2_000], 64);
        for _ in 0..20 {
            for _ in 0..3 {
                itm.push(Some(0), 2_000).unwrap();
            }
            itm.missed(2);
            sent(&mut itm);
        }
        let counts = itm.stream_counts().next().unwrap();
        assert_eq!(counts.excess, 0, "{counts:?}");
    }

    /// A full frame is more than the reservation of a period. It leaves once enough periods
    /// have passed.
    #[test]
    fn a_frame_longer_than_its_reservation_waits_for_several() {
        let mut itm = Itm::new(20_000, &[500], 64);
        let periods = (0..40).map(|_| {
            itm.push(Some(0), 1_500).unwrap();
            sent(&mut itm).len()
        });
        let all: usize = periods.sum();
        // The reservations carry 20,000 bytes, and the credit some more.
        assert!((13..=16).contains(&all), "{all}");
    }

    #[test]
    fn a_stream_waits_when_best_effort_cannot_pay() {
        let mut itm = Itm::new(200, &[100], 8);
        for _ in 0..3 {
            itm.push(Some(0), 100).unwrap();
        }
        assert_eq!(sent(&mut itm).len(), 2);
        let counts = itm.stream_counts().next().unwrap();
        assert_eq!((counts.sent, counts.late, counts.deferred), (2, 1, 1));
        assert_eq!(sent(&mut itm).len(), 1);
    }

    /// Four streams reserve a third of a frame each. Best effort pays for the rest of one frame
    /// in a period, for each stream in rotation.
    #[test]
    fn streams_take_turns_at_what_best_effort_pays() {
        let mut itm = Itm::new(3_000, &[500; 4], 64);
        for _ in 0..400 {
            for stream in 0..4 {
                let _ = itm.push(Some(stream), 1_500);
            }
            sent(&mut itm);
        }
        let sent: Vec<_> = itm.stream_counts().map(|c| c.sent).collect();
        assert!(sent.iter().all(|n| (95..=105).contains(n)), "{sent:?}");
    }

    #[test]
    fn full_queues_drop_packets() {
        let mut itm = Itm::new(200, &[100], 1);
        assert_eq!(itm.push(Some(0), 7), Ok(()));
        assert_eq!(itm.push(Some(0), 8), Err(8));
        assert_eq!(itm.push(None, 9), Ok(()));
        assert_eq!(itm.push(None, 10), Err(10));
        assert_eq!(itm.push(Some(1), 11), Err(11));
        assert_eq!(itm.stream_counts().next().unwrap().dropped, 1);
        assert_eq!(itm.best_effort_counts().dropped, 1);
    }
}
