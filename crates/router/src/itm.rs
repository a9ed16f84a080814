// SPDX-License-Identifier: MIT OR Apache-2.0
//! What leaves a port in a period (paper 004, 2.2.1 and 3.1): each stream's
//! reservation, streams that are late beyond it at the cost of best effort, and
//! best effort with what is left.

use std::collections::VecDeque;

use serde::Serialize;

/// Something that takes time on the wire.
pub trait WireLength {
    /// With preamble, check sum and inter-packet gap.
    fn wire_bytes(&self) -> u64;
}

/// What became of a stream's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamCounts {
    /// Sent.
    pub sent: u64,
    /// Of them, beyond the period's reservation: late from an earlier one.
    pub late: u64,
    /// Periods at whose end packets were left, because best effort had nothing
    /// left to pay with.
    pub deferred: u64,
    /// No room in the queue.
    pub dropped: u64,
}

/// What became of the best effort's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BestEffortCounts {
    /// Sent.
    pub sent: u64,
    /// No room in the queue.
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
}

#[derive(Debug)]
struct Queue<F> {
    reserve_bytes: u64,
    waiting: VecDeque<F>,
    counts: StreamCounts,
}

impl<F: WireLength> Itm<F> {
    /// A port that may send `budget_bytes` in a period, with so much of it
    /// reserved for each stream, and queues of `most_packets` each.
    #[must_use]
    pub fn new(budget_bytes: u64, reserve_bytes: &[u64], most_packets: usize) -> Self {
        let queue = |reserve_bytes: &u64| Queue {
            reserve_bytes: *reserve_bytes,
            waiting: VecDeque::with_capacity(most_packets),
            counts: StreamCounts::default(),
        };
        Self {
            streams: reserve_bytes.iter().map(queue).collect(),
            best_effort: VecDeque::with_capacity(most_packets),
            best_effort_counts: BestEffortCounts::default(),
            budget_bytes,
            most_packets,
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

    /// Sends what a period allows, streams first in their order. O(packets).
    pub fn period(&mut self, mut send: impl FnMut(F)) {
        let reserved: u64 = self.streams.iter().map(|q| q.reserve_bytes).sum();
        // What streams do not use of their reservations, nobody may: the next
        // segment has its own budget to keep.
        let mut rest_bytes = self.budget_bytes.saturating_sub(reserved);
        for queue in &mut self.streams {
            let mut reserve_bytes = queue.reserve_bytes;
            while let Some(packet) = queue.waiting.front() {
                let wire_bytes = packet.wire_bytes();
                if let Some(left) = reserve_bytes.checked_sub(wire_bytes) {
                    reserve_bytes = left;
                } else if let Some(left) = rest_bytes.checked_sub(wire_bytes - reserve_bytes) {
                    rest_bytes = left;
                    reserve_bytes = 0;
                    queue.counts.late += 1;
                } else {
                    queue.counts.deferred += 1;
                    break;
                }
                queue.counts.sent += 1;
                queue.waiting.pop_front().into_iter().for_each(&mut send);
            }
        }
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

    /// Packets that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let of_streams: usize = self.streams.iter().map(|q| q.waiting.len()).sum();
        of_streams + self.best_effort.len()
    }

    /// Of each stream.
    pub fn stream_counts(&self) -> impl Iterator<Item = StreamCounts> + '_ {
        self.streams.iter().map(|q| q.counts)
    }

    /// Of the best effort.
    #[must_use]
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
        // 300 a period, 100 of it reserved.
        let mut itm = Itm::new(300, &[100], 8);
        for stream in [Some(0), Some(0), None, None, None] {
            itm.push(stream, 100).unwrap();
        }
        // Figure 9: both groups of the stream, and one less of the others.
        assert_eq!(sent(&mut itm).len(), 3);
        assert_eq!(itm.stream_counts().next().unwrap().late, 1);
        assert_eq!(itm.best_effort_counts().sent, 1);
        // What the stream leaves of its reservation is not for others.
        assert_eq!(sent(&mut itm).len(), 2);
        assert_eq!(itm.waiting(), 0);
    }

    #[test]
    fn a_stream_waits_when_nobody_can_pay() {
        let mut itm = Itm::new(200, &[100], 8);
        for _ in 0..3 {
            itm.push(Some(0), 100).unwrap();
        }
        assert_eq!(sent(&mut itm).len(), 2);
        let counts = itm.stream_counts().next().unwrap();
        assert_eq!((counts.sent, counts.late, counts.deferred), (2, 1, 1));
        assert_eq!(sent(&mut itm).len(), 1);
    }

    #[test]
    fn queues_have_an_end() {
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
