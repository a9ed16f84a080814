// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving half of a scripted TCP: reassembly, the window, when it acknowledges.

use crate::profile::Profile;

/// What a segment asks the receiver to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Nothing,
    /// Acknowledge now.
    Now,
    /// Acknowledge when the timer fires.
    Later,
}

/// The receiving half.
#[derive(Clone, Debug)]
pub struct Receiver {
    capacity: u64,
    mss: u64,
    delay_ns: u64,
    on_clock: bool,
    every: u32,
    counts_small: bool,
    quick_left: u32,
    /// Growth of the window that is announced at once.
    update_bytes: u64,
    /// Next byte expected.
    next: u64,
    /// Ranges beyond it, sorted and apart.
    beyond: Vec<(u64, u64)>,
    /// The range that changed last: first in SACK (RFC 2018).
    newest: Option<(u64, u64)>,
    /// Bytes before this one were read.
    read: u64,
    /// Right edge of the window that was announced.
    edge: u64,
    /// Segments since the last acknowledgement.
    pending: u32,
    timer_ns: Option<u64>,
    /// The byte after the FIN.
    end: Option<u64>,
}

impl Receiver {
    /// Makes the receiver of a stream whose SYN has arrived.
    pub fn new(profile: &Profile) -> Self {
        Self {
            capacity: profile.receive_bytes,
            mss: u64::from(profile.mss),
            delay_ns: profile.ack_delay_ns,
            on_clock: profile.ack_clock,
            every: profile.ack_every,
            counts_small: profile.ack_counts_small,
            quick_left: profile.quick_acks,
            update_bytes: match profile.update_segments {
                0 => profile.receive_bytes / 2,
                segments => segments * u64::from(profile.mss),
            },
            next: 1,
            beyond: Vec::new(),
            newest: None,
            read: 1,
            // A SYN cannot announce more than 64 KB; the buffer is there from the start.
            edge: 1 + profile.receive_bytes,
            pending: 0,
            timer_ns: None,
            end: None,
        }
    }

    /// Returns the next byte expected.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the bytes that the application may read.
    pub fn readable(&self) -> u64 {
        let fin = u64::from(self.end == Some(self.next));
        self.next.saturating_sub(fin).saturating_sub(self.read)
    }

    /// Returns whether everything up to the FIN has arrived.
    pub fn is_ended(&self) -> bool {
        self.end == Some(self.next)
    }

    /// Returns when the delayed acknowledgement is due.
    pub const fn deadline(&self) -> Option<u64> {
        self.timer_ns
    }

    /// Takes a segment: payload in `begin` to `end`, the FIN not counted.
    pub fn take(&mut self, now_ns: u64, begin: u64, end: u64, fin: bool) -> Answer {
        if begin == end && !fin {
            // A keep-alive or probe lies before the window, and wants an answer.
            return if begin < self.next {
                Answer::Now
            } else {
                Answer::Nothing
            };
        }
        if fin {
            self.end = Some(end + 1);
        }
        let last = (end + u64::from(fin)).min(self.edge.max(self.next) + u64::from(fin));
        if last <= self.next || begin >= last {
            return Answer::Now;
        }
        if begin > self.next {
            self.insert(begin, last);
            return Answer::Now;
        }
        let filled = !self.beyond.is_empty();
        self.next = last;
        while let Some(&(_, e)) = self.beyond.first().filter(|r| r.0 <= self.next) {
            self.next = self.next.max(e);
            self.beyond.remove(0);
        }
        if self.newest.is_some_and(|r| r.1 <= self.next) {
            self.newest = None;
        }
        if filled || fin {
            return Answer::Now;
        }
        let counts = self.counts_small || end - begin >= self.mss.saturating_sub(40);
        self.pending += u32::from(counts);
        if self.quick_left > 0 {
            self.quick_left -= 1;
            return Answer::Now;
        }
        if self.pending >= self.every {
            return Answer::Now;
        }
        if self.timer_ns.is_none() {
            let due = if self.on_clock {
                (now_ns / self.delay_ns + 1) * self.delay_ns
            } else {
                now_ns + self.delay_ns
            };
            self.timer_ns = Some(due);
        }
        Answer::Later
    }

    fn insert(&mut self, begin: u64, end: u64) {
        let (mut low, mut high) = (begin, end);
        self.beyond.retain(|&(b, e)| {
            let apart = e < low || b > high;
            if !apart {
                low = low.min(b);
                high = high.max(e);
            }
            apart
        });
        self.beyond.push((low, high));
        self.beyond.sort_unstable();
        self.newest = Some((low, high));
    }

    /// Returns up to three SACK blocks, the newest first.
    pub fn sack(&self) -> Vec<(u64, u64)> {
        let mut blocks: Vec<(u64, u64)> = self.newest.into_iter().collect();
        for range in self.beyond.iter().rev() {
            if blocks.len() < 3 && !blocks.contains(range) {
                blocks.push(*range);
            }
        }
        blocks
    }

    /// Returns the bytes that the buffer has room for.
    pub fn room(&self) -> u64 {
        let held = self.next.saturating_sub(self.read);
        self.capacity.saturating_sub(held)
    }

    /// Returns the edge that an honest window would announce now.
    fn room_edge(&self) -> u64 {
        self.next + self.room()
    }

    /// Returns the window field to send with `shift`, and notes that it was sent: an
    /// acknowledgement is out. The window opens only by a segment or half of the buffer
    /// (RFC 1122, 4.2.3.3).
    pub fn acknowledge(&mut self, shift: u8) -> u16 {
        let room = self.room_edge();
        let step = self.mss.min(self.capacity / 2);
        let edge = if room >= self.edge + step {
            room
        } else {
            self.edge.max(self.next)
        };
        let field = ((edge - self.next) >> shift).min(65_535);
        self.edge = self.edge.max(self.next + (field << shift));
        self.pending = 0;
        self.timer_ns = None;
        field as u16
    }

    /// Reads up to `most` bytes, and returns how many, and whether the window should be
    /// announced anew: it was closed and has room, or grew by a step of the system.
    pub fn read(&mut self, most: u64) -> (u64, bool) {
        let bytes = self.readable().min(most);
        self.read += bytes;
        let grown = self.room_edge().saturating_sub(self.edge);
        let was_closed = self.edge < self.next + self.mss;
        let step = if was_closed {
            self.mss
        } else {
            self.update_bytes
        };
        (bytes, bytes > 0 && grown >= step.min(self.capacity / 2))
    }
}
