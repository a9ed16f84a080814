// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving side of one connection, modelled on Linux: it acknowledges every
//! second full segment, and every segment at once while data is out of order; the
//! newest SACK block comes first.

mod blocks;
mod ranges;

use blocks::Blocks;
use ranges::Ranges;
use units::clock::Time;

use crate::tcp::config::ReceiverConfig;
use crate::tcp::segment::{SackBlock, Segment};

/// Number of full segments that one acknowledgement covers when acknowledgements
/// are delayed.
const SEGMENTS_PER_ACK: u64 = 2;

/// The receiving side of one connection, without a clock and without a network.
/// After each `on_...` call, and before the next, call
/// [`poll_transmit`](Receiver::poll_transmit): at most one acknowledgement is due,
/// and a later one would replace it.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    /// Next byte expected; the end of the stream counts as one byte.
    next: u64,
    /// The end of the stream, once known.
    end: Option<u64>,
    /// Bytes that the application has read.
    read: u64,
    /// Right edge of the window announced last; it never moves back.
    edge: u64,
    out_of_order: Ranges,
    blocks: Blocks,
    dsack: Option<SackBlock>,
    /// Timestamp to echo: that of the segment that moved the left edge of the
    /// window last.
    echo: u32,
    last_ack_sent: u64,
    quick_acks_left: u32,
    due: bool,
    timer: Option<Time>,
    duplicate_bytes: u64,
    acks: u64,
}

impl Receiver {
    /// Makes a receiver whose connection has just been established.
    pub fn new(config: &ReceiverConfig) -> Receiver {
        let mut receiver = Receiver {
            next: 0,
            end: None,
            read: 0,
            edge: 0,
            out_of_order: Ranges::default(),
            blocks: Blocks::default(),
            dsack: None,
            echo: 0,
            last_ack_sent: 0,
            quick_acks_left: config.quick_acks,
            due: false,
            timer: None,
            duplicate_bytes: 0,
            acks: 0,
            config: config.clone(),
        };
        receiver.edge = receiver.window();
        receiver
    }

    /// Returns the window in bytes, from the next byte expected. Its first value is
    /// the window with which the sender begins.
    pub fn window_bytes(&self) -> u64 {
        self.edge.saturating_sub(self.next)
    }

    /// Processes a segment with data, or a probe without data.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) {
        if let (Some((value, _)), true) = (segment.timestamps, segment.seq <= self.last_ack_sent) {
            self.echo = value;
        }
        if segment.end() == segment.seq {
            self.due = true; // a probe
            return;
        }
        if segment.end() <= self.next {
            self.note_duplicate(segment.seq, segment.end());
            self.due = true;
            return;
        }
        if segment.end() - u64::from(segment.fin) > self.edge.max(self.next) {
            self.due = true; // more than there is room for
            return;
        }
        if segment.fin {
            self.end = Some(segment.end());
        }
        if segment.seq > self.next {
            self.keep(segment);
        } else {
            self.advance(now, segment);
        }
    }

    /// Runs the timer; must be called at the time that
    /// [`next_timer`](Receiver::next_timer) returned, or later.
    pub fn on_timer(&mut self, now: Time) {
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
            self.due = true;
        }
    }

    /// Returns when a delayed acknowledgement must be sent.
    pub fn next_timer(&self) -> Option<Time> {
        self.timer
    }

    /// Returns the acknowledgement that is due, if any.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        self.timer = None;
        self.acks += 1;
        self.quick_acks_left = self.quick_acks_left.saturating_sub(1);
        self.edge = self.edge.max(self.next + self.window());
        self.last_ack_sent = self.next;
        let mut segment = Segment {
            ack: self.next,
            window_bytes: self.window_bytes(),
            ..Segment::default()
        };
        if self.config.timestamps {
            let value = now.as_ps() / self.config.tick.as_ps().max(1);
            segment.timestamps = Some((value as u32, self.echo));
        }
        if self.config.sack {
            let room = if self.config.timestamps { 3 } else { 4 };
            let known = self.blocks.as_slice().iter().copied();
            for block in self.dsack.take().into_iter().chain(known).take(room) {
                segment.sack[usize::from(segment.sack_count)] = block;
                segment.sack_count += 1;
            }
        }
        Some(segment)
    }

    /// Reads up to `max` bytes for the application and returns how many were read.
    /// If this opens the window by two segments and at least doubles it, a window
    /// update is due.
    pub fn read(&mut self, max: u64) -> u64 {
        let bytes = self.readable_bytes().min(max);
        self.read += bytes;
        let open = self.next + self.window();
        let step = u64::from(self.config.mss_bytes).saturating_mul(2);
        if open >= self.edge.saturating_add(step.max(self.window_bytes())) {
            self.due = true;
        }
        bytes
    }

    /// Returns the bytes received in order that the application has not read.
    pub fn readable_bytes(&self) -> u64 {
        self.delivered_bytes() - self.read
    }

    /// Returns the bytes received in order.
    pub fn delivered_bytes(&self) -> u64 {
        self.next - u64::from(self.is_finished())
    }

    /// Returns whether the stream has ended and nothing of it is missing.
    pub fn is_finished(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }

    /// Returns the bytes that were received more than once.
    pub fn duplicate_bytes(&self) -> u64 {
        self.duplicate_bytes
    }

    /// Returns the number of acknowledgements sent.
    pub fn acks(&self) -> u64 {
        self.acks
    }

    /// Returns the free space of the buffer, rounded up to units of the window
    /// scale as Linux does.
    fn window(&self) -> u64 {
        let scale = self.config.window_scale.min(14);
        let free = self
            .config
            .buffer_bytes
            .saturating_sub(self.readable_bytes());
        let unit = 1u64 << scale;
        free.div_ceil(unit).min(65_535) * unit
    }

    fn note_duplicate(&mut self, start: u64, end: u64) {
        self.duplicate_bytes += end - start;
        if self.config.dsack {
            self.dsack = Some(SackBlock { start, end });
        }
    }

    /// Stores a segment that arrived out of order; it is reported at once.
    fn keep(&mut self, segment: &Segment) {
        self.due = true;
        let (start, end) = (segment.seq, segment.end());
        let new_bytes = self.out_of_order.insert(start, end);
        self.duplicate_bytes += end - start - new_bytes;
        if new_bytes == 0 && self.config.dsack {
            self.dsack = Some(SackBlock { start, end });
        }
        self.blocks.add(SackBlock { start, end });
    }

    /// Processes a segment in order: data stored out of order may now be in order
    /// too.
    fn advance(&mut self, now: Time, segment: &Segment) {
        let waiting = !self.out_of_order.is_empty();
        self.duplicate_bytes += self.next - segment.seq;
        let unacked_before = self.next - self.last_ack_sent;
        let arrived = segment.end();
        let merged = self.out_of_order.take_up_to(arrived);
        self.duplicate_bytes += merged.overlap_bytes;
        self.next = merged.end;
        self.blocks.drop_below(self.next);
        if self.out_of_order.is_empty() {
            self.blocks.clear();
        }
        if self.config.reads_at_once {
            self.read = self.delivered_bytes();
        }
        let full = u64::from(self.config.mss_bytes) * (SEGMENTS_PER_ACK - 1);
        let unacked = unacked_before + (self.next - (self.last_ack_sent + unacked_before));
        if waiting || segment.fin || self.quick_acks_left > 0 || unacked > full {
            self.due = true;
        } else if self.timer.is_none() {
            self.timer = Some(now + self.config.delayed_ack);
        }
    }
}
