// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects the segment to send next: retransmissions of lost packets first, then
//! new data, then forward retransmissions of packets that may be lost.

use units::clock::Time;

use super::last_transmit::LastTransmit;
use super::queue::{Packet, tag};
use super::{Sender, State};
use crate::tcp::segment::Segment;

/// Why a packet is retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    Lost,
    Forward,
    Head,
    TailProbe,
}

impl Sender {
    pub(super) fn next_segment(&mut self, now: Time) -> Option<Segment> {
        if self.send_head {
            self.send_head = false;
            if let Some(segment) = self.retransmit(now, self.queue.head(), Again::Head) {
                return Some(segment);
            }
        }
        if let Some(segment) = self.tail_probe(now) {
            return Some(segment);
        }
        if self.repairing {
            if let Some(segment) = self.next_repair(now) {
                return Some(segment);
            }
            self.repairing = false;
        }
        if self.may_send_new() {
            return Some(self.send_new(now, self.mss()));
        }
        if self.window_has_new() {
            self.note_usage();
        }
        self.validate_window(now);
        if std::mem::take(&mut self.send_probe) && self.queue.len() == 0 {
            return Some(self.window_probe(now));
        }
        if self.queue.len() == 0 && self.timer.is_none() && self.has_new() {
            self.restart_timer(now); // a closed window is probed
        }
        None
    }

    /// Returns the next retransmission: of packets marked lost or, in Recovery,
    /// when none is left and no new data may be sent, of packets that may be lost.
    fn next_repair(&mut self, now: Time) -> Option<Segment> {
        let mut number = self.retransmit_mark.max(self.queue.head());
        while self.retransmit_seen < self.queue.lost() {
            if self.in_flight() >= self.window.cwnd {
                return None;
            }
            let Some(packet) = self.queue.get(number) else {
                break;
            };
            if packet.has(tag::LOST) && !packet.has(tag::RETRANS) {
                return self.retransmit(now, number, Again::Lost);
            }
            self.counters.scoreboard_steps += 1;
            self.retransmit_seen += u32::from(packet.has(tag::LOST) && !self.is_rack());
            number += 1;
            self.retransmit_mark = number;
        }
        if self.state != State::Recovery
            || !self.config.sack
            || self.is_rack()
            || self.may_send_new()
        {
            return None;
        }
        self.next_forward(now)
    }

    fn next_forward(&mut self, now: Time) -> Option<Segment> {
        let mut number = self.forward_mark.max(self.queue.head());
        while self.queue.count_to(number) <= self.fackets {
            if self.in_flight() >= self.window.cwnd {
                return None;
            }
            if !self.queue.get(number)?.has(tag::ANY) {
                return self.retransmit(now, number, Again::Forward);
            }
            self.counters.scoreboard_steps += 1;
            number += 1;
            self.forward_mark = number;
        }
        None
    }

    /// Retransmits a packet of the queue, if it is within the peer's window.
    fn retransmit(&mut self, now: Time, number: u64, why: Again) -> Option<Segment> {
        let una = self.una;
        let edge = una.saturating_add(self.peer_window);
        let nxt = self.nxt;
        let packet = self.queue.get_mut(number)?;
        let start = packet.start.max(una);
        if start >= edge && start != una {
            return None;
        }
        let before = *packet;
        packet.sent_nxt = nxt;
        packet.sent_at = now;
        let segment = Segment {
            seq: start,
            len_bytes: (packet.end - u64::from(packet.fin)).saturating_sub(start) as u32,
            fin: packet.fin,
            ..Segment::default()
        };
        self.queue.set(number, tag::RETRANS | tag::EVER);
        self.retrans_time.get_or_insert(now);
        if !self.reduces_in_proportion() {
            self.last_data = now;
        }
        self.undo_retrans += 1;
        self.counters.segments += 1;
        self.counters.retransmits += 1;
        self.counters.forward_retransmits += u64::from(why == Again::Forward);
        self.counters.repeated_retransmits +=
            u64::from(why == Again::Lost && before.has(tag::EVER));
        self.last_transmit = Some(LastTransmit::Again { number, before });
        self.after_transmit(now, number, false);
        if number == self.queue.head() || why == Again::TailProbe {
            self.restart_timer(now);
        }
        Some(self.timestamp(now, segment))
    }

    /// Returns whether data waits that was never sent.
    pub(super) fn has_new(&self) -> bool {
        self.nxt < self.offered || (self.closed && self.nxt == self.offered)
    }

    /// Returns the end of the next new packet of at most `bytes`, the end of the
    /// stream counting as one, and whether the stream ends there.
    fn new_end(&self, bytes: u64) -> (u64, bool) {
        let end = self.nxt.saturating_add(bytes).min(self.offered);
        let fin = self.closed && end == self.offered;
        (end + u64::from(fin), fin)
    }

    /// Returns whether new data waits and the congestion window, the peer's window
    /// and the send buffer have room for it.
    pub(super) fn may_send_new(&self) -> bool {
        self.in_flight() < self.window.cwnd && self.window_has_new()
    }

    /// Returns whether new data waits and the peer's window and the send buffer
    /// have room for it.
    pub(super) fn window_has_new(&self) -> bool {
        if !self.has_new() {
            return false;
        }
        let room = self.peer_window.min(self.config.send_buffer_bytes);
        let (end, fin) = self.new_end(self.mss());
        end - u64::from(fin) <= self.una.saturating_add(room)
    }

    pub(super) fn send_new(&mut self, now: Time, bytes: u64) -> Segment {
        self.restart_after_idle(now);
        self.last_data = now;
        self.note_new_data();
        let (end, fin) = self.new_end(bytes);
        let segment = Segment {
            seq: self.nxt,
            len_bytes: (end - u64::from(fin) - self.nxt) as u32,
            fin,
            ..Segment::default()
        };
        self.queue.push(Packet {
            start: self.nxt,
            end,
            tags: 0,
            fin,
            sent_nxt: end,
            sent_at: now,
        });
        self.nxt = end;
        if self.queue.len() == 1 {
            self.restart_timer(now);
        }
        self.counters.segments += 1;
        self.last_transmit = Some(LastTransmit::New);
        self.note_usage();
        self.after_transmit(now, self.queue.tail() - 1, true);
        self.timestamp(now, segment)
    }

    /// Returns a probe of the peer's window: as much of a packet as there is room
    /// for, or else a segment without data.
    fn window_probe(&mut self, now: Time) -> Segment {
        self.counters.window_probes += 1;
        let room = self
            .una
            .saturating_add(self.peer_window)
            .saturating_sub(self.nxt);
        if room > 0 && self.has_new() {
            return self.send_new(now, room.min(self.mss()));
        }
        self.last_transmit = Some(LastTransmit::Probe);
        let segment = Segment {
            seq: self.nxt,
            ..Segment::default()
        };
        self.timestamp(now, segment)
    }

    pub(super) fn send_tail_again(&mut self, now: Time) -> Option<Segment> {
        let last = self.queue.tail().checked_sub(1)?;
        self.retransmit(now, last, Again::TailProbe)
    }

    fn timestamp(&self, now: Time, mut segment: Segment) -> Segment {
        if self.config.timestamps {
            segment.timestamps = Some((self.ticks(now), self.peer_timestamp));
        }
        segment
    }

    /// Undoes the transmission of the last segment, which the local queue refused.
    pub(super) fn refuse(&mut self, now: Time) {
        let Some(last) = self.last_transmit.take() else {
            return;
        };
        self.counters.local_drops += 1;
        self.refused = true;
        match last {
            LastTransmit::Probe => return,
            LastTransmit::New => {
                if let Some(packet) = self.queue.get(self.queue.tail() - 1) {
                    self.nxt = packet.start;
                }
                self.queue.pop_back();
            }
            LastTransmit::Again { number, before } => {
                self.queue.clear(number, tag::RETRANS);
                self.queue.set(number, before.tags);
                if let Some(packet) = self.queue.get_mut(number) {
                    *packet = before;
                }
                self.undo_retrans -= 1;
                self.counters.retransmits -= 1;
                self.forget_retransmit_mark(number);
                self.forward_mark = self.forward_mark.min(number);
            }
        }
        self.counters.segments -= 1;
        self.prr.on_refused();
        self.enter_cwr(now);
        self.retry_soon(now);
    }
}
