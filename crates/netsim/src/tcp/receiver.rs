// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving side of one connection, as Linux does it: every second full
//! segment acknowledged, at once while anything is out of order, newest SACK
//! block first.

mod blocks;
mod ranges;

use blocks::Blocks;
use ranges::Ranges;
use units::clock::Time;

use crate::tcp::config::ReceiverConfig;
use crate::tcp::segment::{SackBlock, Segment};

/// Full segments that one acknowledgement may wait for.
const SEGMENTS_PER_ACK: u64 = 2;

/// The receiving side of one connection, without a clock and without a
/// network. After each `on_...` call, and before the next, ask
/// [`poll_transmit`](Receiver::poll_transmit): at most one acknowledgement is
/// due, and a later one would replace it.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    /// Next byte expected, the end of the stream counting as one.
    next: u64,
    /// Where the stream ends, once known.
    end: Option<u64>,
    /// Bytes the application took.
    read: u64,
    /// Right edge of the window as told last; it never moves back.
    edge: u64,
    out_of_order: Ranges,
    blocks: Blocks,
    dsack: Option<SackBlock>,
    /// Value to echo: that of the segment that moved the left edge last.
    echo: u32,
    last_ack_sent: u64,
    quick_acks_left: u32,
    due: bool,
    timer: Option<Time>,
    duplicate_bytes: u64,
    acks: u64,
}

impl Receiver {
    /// A receiver whose connection was just set up.
    #[must_use]
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

    /// The window in bytes from the next byte expected: what the sender is to
    /// begin with.
    #[must_use]
    pub fn window_bytes(&self) -> u64 {
        self.edge.saturating_sub(self.next)
    }

    /// A segment with data, or a probe without any, has arrived.
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

    /// It is the time that [`next_timer`](Receiver::next_timer) gave, or
    /// later.
    pub fn on_timer(&mut self, now: Time) {
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
            self.due = true;
        }
    }

    /// When a held back acknowledgement has to leave.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        self.timer
    }

    /// The acknowledgement that is due, if one is.
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

    /// The application takes up to `max` bytes; the answer is how many there
    /// were. If that opens a window that was nearly shut, an acknowledgement
    /// is due to tell.
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

    /// Bytes in order that the application has not taken.
    #[must_use]
    pub fn readable_bytes(&self) -> u64 {
        self.delivered_bytes() - self.read
    }

    /// Bytes that have arrived in order.
    #[must_use]
    pub fn delivered_bytes(&self) -> u64 {
        self.next - u64::from(self.is_finished())
    }

    /// Whether the stream has ended and nothing of it is missing.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }

    /// Bytes that arrived although they had before.
    #[must_use]
    pub fn duplicate_bytes(&self) -> u64 {
        self.duplicate_bytes
    }

    /// Acknowledgements given out.
    #[must_use]
    pub fn acks(&self) -> u64 {
        self.acks
    }

    /// What the buffer has room for, in units of the scale. Linux rounds up.
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

    /// Out of order: it is kept, and told of at once.
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

    /// In order: what waited behind it may be so too.
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
