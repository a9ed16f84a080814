// SPDX-License-Identifier: MIT OR Apache-2.0
//! A store-and-forward switch with full-duplex ports: it serves each port first
//! come first served; frames that arrive at the same instant are ordered by
//! station.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use units::clock::{Span, Time};

use super::medium::{Counts, Event, Frame, GAP_BITS, Loss, SegmentConfig, frame_bits};

/// One direction of a cable: the frames that wait for it, and when it is free.
#[derive(Debug)]
struct Line<P> {
    waiting: VecDeque<(usize, Frame<P>)>,
    /// When the next frame may begin.
    free: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A line has sent a frame and its gap: the next frame can begin.
    Free,
    /// A frame's last bit has reached the end of a line.
    There,
}

/// A switch. An event costs O(log of the frames in flight).
#[derive(Debug)]
pub struct Switched<P> {
    bit: Span,
    propagation: Span,
    queue_frames: usize,
    /// Lines from each station to the switch, then from the switch to each station.
    lines: Vec<Line<P>>,
    stations: usize,
    event_queue: BinaryHeap<Reverse<(Time, Step, usize)>>,
    /// Frames in flight, by line.
    arriving: Vec<VecDeque<(usize, Frame<P>)>>,
    counts: Counts,
}

impl<P: Copy> Switched<P> {
    pub(super) fn new(config: &SegmentConfig) -> Self {
        let line = |_| Line {
            waiting: VecDeque::new(),
            free: Time::START,
        };
        Self {
            bit: config.bit(),
            propagation: config.propagation,
            queue_frames: config.queue_frames,
            lines: (0..2 * config.stations).map(line).collect(),
            stations: config.stations,
            event_queue: BinaryHeap::new(),
            arriving: (0..2 * config.stations).map(|_| VecDeque::new()).collect(),
            counts: Counts::default(),
        }
    }

    /// See [`super::Medium::offer`].
    pub fn offer(&mut self, now: Time, from: usize, frame: Frame<P>, events: &mut Vec<Event<P>>) {
        if from < self.stations && frame.to < self.stations {
            self.queue(now, from, (from, frame), events);
        }
    }

    fn queue(&mut self, now: Time, line: usize, what: (usize, Frame<P>), e: &mut Vec<Event<P>>) {
        let of = &mut self.lines[line];
        if of.waiting.len() >= self.queue_frames {
            self.counts.refused += 1;
            let (from, frame) = what;
            let loss = Loss::Queue;
            e.push(Event::Lost { frame, from, loss });
            return;
        }
        of.waiting.push_back(what);
        self.send(now, line);
    }

    /// Sends the next frame of a line, if the line is free.
    fn send(&mut self, now: Time, line: usize) {
        let of = &mut self.lines[line];
        if of.free > now {
            return;
        }
        let Some(what) = of.waiting.pop_front() else {
            return;
        };
        let bits = frame_bits(what.1.frame_bytes);
        let span = |bits: u64| Span::from_ps(self.bit.as_ps() * bits);
        of.free = now + span(bits + GAP_BITS);
        let there = now + span(bits) + self.propagation;
        self.arriving[line].push_back(what);
        self.event_queue.push(Reverse((of.free, Step::Free, line)));
        self.event_queue.push(Reverse((there, Step::There, line)));
    }

    /// See [`super::Medium::next`].
    pub fn next(&self) -> Option<Time> {
        self.event_queue.peek().map(|Reverse((at, ..))| *at)
    }

    /// See [`super::Medium::advance`].
    pub fn advance(&mut self, now: Time, events: &mut Vec<Event<P>>) {
        while let Some(Reverse((at, step, line))) = self.event_queue.peek().copied() {
            if at > now {
                break;
            }
            self.event_queue.pop();
            match step {
                Step::Free => self.send(at, line),
                Step::There => self.arrive(at, line, events),
            }
        }
    }

    fn arrive(&mut self, now: Time, line: usize, events: &mut Vec<Event<P>>) {
        let Some((from, frame)) = self.arriving[line].pop_front() else {
            return;
        };
        if line < self.stations {
            self.queue(now, self.stations + frame.to, (from, frame), events);
            return;
        }
        self.counts.frames += 1;
        self.counts.bits += frame_bits(frame.frame_bytes) + GAP_BITS;
        let retries = 0;
        events.push(Event::Arrived {
            frame,
            from,
            retries,
        });
    }

    /// See [`super::Medium::waiting`].
    pub fn waiting(&self, station: usize) -> usize {
        self.lines.get(station).map_or(0, |l| l.waiting.len())
    }

    /// See [`super::Medium::counts`].
    pub fn counts(&self) -> Counts {
        self.counts
    }
}
