// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models the time that a sender's processor needs for acknowledgements, where a
//! scenario asks for it (docs/decisions/simulator.md, "What the scoreboard costs").
//! Paper 001, sections 3.3 and 3.5, found the kernel busy for about 100 ms whenever
//! many packets were lost at once.

use std::collections::VecDeque;

use units::clock::{Span, Time};

use crate::tcp::Segment;

/// Processing times. If they are zero, no acknowledgement waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCost {
    /// Time per acknowledgement.
    pub ack: Span,
    /// Time per packet that the scoreboard examines.
    pub step: Span,
}

/// A processor, and the acknowledgements that wait for it: at most as many as are
/// in flight. Each operation is O(1).
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    cost: CpuCost,
    free: Time,
    waiting: VecDeque<Segment>,
}

impl Cpu {
    pub fn new(cost: CpuCost) -> Self {
        Self {
            cost,
            ..Self::default()
        }
    }

    /// Accepts a segment that has arrived and returns it if it can be processed at
    /// once; `None`: it waits.
    pub fn take(&mut self, now: Time, segment: Segment) -> Option<Segment> {
        if self.is_free(now) && self.waiting.is_empty() {
            return Some(segment);
        }
        self.waiting.push_back(segment);
        None
    }

    /// Removes and returns the next waiting segment, if it can be processed now.
    pub fn next(&mut self, now: Time) -> Option<Segment> {
        if self.is_free(now) {
            self.waiting.pop_front()
        } else {
            None
        }
    }

    /// Occupies the processor from `now` for the time of `acks` acknowledgements
    /// and `steps` scoreboard steps.
    pub fn worked(&mut self, now: Time, acks: u64, steps: u64) {
        let acks_ps = self.cost.ack.as_ps().saturating_mul(acks);
        let steps_ps = self.cost.step.as_ps().saturating_mul(steps);
        self.free = now + Span::from_ps(acks_ps.saturating_add(steps_ps));
    }

    pub fn is_free(&self, now: Time) -> bool {
        self.free <= now
    }

    /// Returns when an event due at `at` can be processed.
    pub fn after(&self, at: Time) -> Time {
        at.max(self.free)
    }

    /// Returns when the next waiting segment can be processed; `None`: none waits.
    pub fn due(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_wait_in_order_while_the_processor_works() {
        let at = |ns| Time::START + Span::from_ns(ns);
        let segment = |ack| Segment {
            ack,
            ..Segment::default()
        };
        let mut cpu = Cpu::new(CpuCost {
            ack: Span::from_ns(100),
            step: Span::from_ns(10),
        });
        assert_eq!(cpu.take(at(0), segment(1)), Some(segment(1)));
        cpu.worked(at(0), 1, 5);
        assert_eq!(cpu.take(at(20), segment(2)), None);
        assert_eq!(cpu.take(at(30), segment(3)), None);
        assert_eq!((cpu.due(), cpu.next(at(149))), (Some(at(150)), None));
        assert_eq!(cpu.next(at(150)), Some(segment(2)));
        cpu.worked(at(150), 1, 0);
        // A new segment comes after those that wait.
        assert_eq!(cpu.take(at(250), segment(4)), None);
        assert_eq!(cpu.next(at(250)), Some(segment(3)));
    }

    #[test]
    fn segments_without_cost_do_not_wait() {
        let mut cpu = Cpu::new(CpuCost::default());
        for _ in 0..3 {
            assert!(cpu.take(Time::START, Segment::default()).is_some());
            cpu.worked(Time::START, 1, 1000);
        }
        assert_eq!(cpu.due(), None);
    }
}
