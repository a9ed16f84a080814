// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss detection by RACK-TLP (RFC 8985). A packet is lost when one sent later has
//! arrived and the time that reordering may take has passed; this includes
//! retransmissions. When no acknowledgement arrives, the tail is probed before the
//! retransmission timer expires.

use sender_log::variables::Observer;
use units::clock::{Span, Time};

use super::ack::AckFacts;
use super::queue::{Packet, tag};
use super::rack::{PERSIST, Rack, SLACK, STEPS_MAX, Timer};
use super::{Sender, State};
use crate::tcp::segment::{SackBlock, Segment};

impl Rack {
    /// Returns the reordering window (step 4): how long after the newest delivered
    /// packet one sent before it may arrive.
    pub(super) fn window(&self, sender: &Sender) -> Span {
        if !self.reordering_seen
            && (sender.state >= State::Recovery || sender.sacked_out() >= sender.config.reordering)
        {
            return Span::ZERO;
        }
        self.full_window(sender)
    }

    /// Returns the reordering window once reordering was seen: quarters of the
    /// minimum round-trip time, at most the smoothed one.
    pub fn full_window(&self, sender: &Sender) -> Span {
        let min_rtt = sender.rtt.min_rtt().unwrap_or(Span::ZERO);
        let quarters = (min_rtt.as_ps() / 4).saturating_mul(u64::from(self.steps));
        Span::from_ps(quarters.min(sender.rtt.srtt().as_ps()))
    }

    /// Returns how long a packet sent before the newest delivered one may be out.
    pub(super) fn allowed(&self, sender: &Sender) -> Span {
        self.rtt + self.window(sender)
    }
}

impl Sender {
    /// Processes SACK blocks. Their packets are found in the queue by number; parts
    /// that the last acknowledgement already reported are skipped.
    pub(super) fn take_blocks_for_rack(
        &mut self,
        now: Time,
        segment: &Segment,
        news: &mut AckFacts,
    ) {
        let before = self.queue.sacked();
        let skip = usize::from(news.dsack);
        if news.dsack {
            self.widen_for_dsack();
            if let Some(block) = segment.sack_blocks().first() {
                self.uncount_within(*block);
            }
        }
        let known = self.sack.known();
        for block in segment.sack_blocks().iter().skip(skip) {
            if block.start < block.end && block.start >= self.una && block.end <= self.nxt {
                let inside = |old: &&SackBlock| old.start <= block.start && block.start < old.end;
                let from = known.iter().find(inside).map_or(block.start, |old| old.end);
                self.sack_range(now, *block, from);
            }
        }
        self.sack.remember(segment.sack_blocks());
        let newly = self.queue.sacked() - before;
        news.delivered += newly;
        news.sacked |= newly > 0;
    }

    /// Marks the packets of a block SACKed; all below `from` was known before.
    fn sack_range(&mut self, now: Time, block: SackBlock, from: u64) {
        let mut number = self.queue.number_at(from);
        while let Some(packet) = self.queue.get(number).copied() {
            if packet.end > block.end {
                break;
            }
            self.counters.scoreboard_steps += 1;
            if packet.start >= block.start && !packet.has(tag::SACKED) {
                let place = self.queue.count_to(number);
                self.queue.clear(number, tag::LOST | tag::RETRANS);
                self.queue.set(number, tag::SACKED);
                self.fackets = self.fackets.max(place);
                self.deliver(now, &packet);
            }
            number += 1;
        }
    }

    /// Begins the processing of an acknowledgement: what it delivers below the
    /// highest sequence number delivered so far was reordered.
    pub(super) fn begin_delivery(&mut self) {
        self.rack.highest_before = self.rack.highest;
    }

    /// Notes that a packet was acknowledged or SACKed for the first time (section
    /// 6.2, steps 1 to 3).
    pub(super) fn deliver(&mut self, now: Time, packet: &Packet) {
        let before = self.rack.highest_before;
        if !packet.has(tag::EVER) && packet.end < before {
            self.rack.reordering_seen = true;
            let apart = (before - packet.start).div_ceil(self.mss());
            self.note_reordering(apart.min(u64::from(u32::MAX)) as u32);
        }
        self.rack.highest = self.rack.highest.max(packet.end);
        self.rack.on_delivered(now, packet, self.rtt.min_rtt());
    }

    /// Uncounts the retransmitted packets that a D-SACK within the window covers.
    fn uncount_within(&mut self, block: SackBlock) {
        let mut number = self.queue.number_at(block.start);
        while let Some(packet) = self.queue.get(number) {
            if packet.end > block.end {
                break;
            }
            if packet.has(tag::EVER) && self.undo_marker.is_some() {
                self.undo_retrans = (self.undo_retrans - 1).max(0);
            }
            number += 1;
        }
    }

    /// Widens the reordering window (section 6.2, step 4): a retransmission was
    /// unnecessary, so reordering takes longer than assumed; at most once each
    /// round trip.
    fn widen_for_dsack(&mut self) {
        if self.rack.dsack_round.is_none_or(|round| self.una >= round) {
            self.rack.dsack_round = Some(self.nxt);
            self.rack.steps = (self.rack.steps + 1).min(STEPS_MAX);
            self.rack.persist = PERSIST;
        }
    }

    /// Counts the end of a recovery: a widened window is kept for some recoveries.
    pub(super) fn rack_recovered(&mut self) {
        self.rack.persist = self.rack.persist.saturating_sub(1);
        if self.rack.persist == 0 {
            self.rack.steps = 1;
        }
    }

    /// Detects losses after an acknowledgement, and sets both timers again.
    pub(super) fn detect_with_rack(&mut self, now: Time, news: &mut AckFacts) {
        let lost = self.queue.lost();
        self.judge_probe(news);
        self.mark_with_rack(now);
        news.lost += self.queue.lost().saturating_sub(lost);
        if matches!(self.rack.timer, Some(Timer::TailProbe(_))) && (news.acked || news.sacked) {
            self.rack.timer = None;
        }
        if self.rack.timer.is_none() && news.acked {
            self.schedule_probe(now);
        }
    }

    /// Marks packets lost (section 6.2, step 5), and sets the timer for those that
    /// may still arrive.
    fn mark_with_rack(&mut self, now: Time) {
        if matches!(self.rack.timer, Some(Timer::Reorder(_))) {
            self.rack.timer = None;
        }
        let Some(newest) = self.rack.newest else {
            return;
        };
        let allowed = self.rack.allowed(self);
        let mut wait = Span::ZERO;
        let mut index = 0;
        while let Some(&(at, number)) = self.rack.sent.get(index) {
            let stale = self.queue.get(number).is_none_or(|packet| {
                packet.sent_at != at
                    || packet.has(tag::SACKED)
                    || (packet.has(tag::LOST) && !packet.has(tag::RETRANS))
            });
            if stale {
                if index == 0 {
                    self.rack.sent.pop_front();
                } else {
                    index += 1;
                }
                continue;
            }
            let end = self.queue.get(number).map_or(0, |packet| packet.end);
            if (at, end) >= newest {
                break;
            }
            if at + allowed <= now {
                self.lose_by_time(number);
            } else {
                wait = wait.max((at + allowed).since(now));
                index += 1;
            }
        }
        if wait > Span::ZERO {
            self.rack.timer = Some(Timer::Reorder(now + wait + SLACK));
        }
    }

    fn lose_by_time(&mut self, number: u64) {
        if self
            .queue
            .get(number)
            .is_some_and(|packet| packet.has(tag::RETRANS))
        {
            self.queue.clear(number, tag::RETRANS);
            self.counters.lost_retransmits += 1;
        }
        self.set_lost(number);
    }

    /// Returns whether a packet has been out for as long as RACK allows (section
    /// 6.3: the packets that a timeout marks lost).
    pub(super) fn is_overdue(&self, now: Time, number: u64) -> bool {
        let allowed = self.rack.allowed(self);
        self.queue
            .get(number)
            .is_some_and(|packet| packet.sent_at + allowed <= now)
    }

    /// Schedules a tail loss probe two round trips from now, if there is no sign of
    /// loss (section 7.2).
    fn schedule_probe(&mut self, now: Time) {
        let calm = matches!(self.state, State::Open | State::Cwr) && self.sacked_out() == 0;
        let srtt = self.rtt.srtt();
        if !calm || self.queue.len() == 0 || self.rack.probe.is_some() || srtt == Span::ZERO {
            return;
        }
        let slack = if self.queue.len() == 1 {
            // The peer may delay its acknowledgement.
            self.config.rto_min
        } else {
            SLACK
        };
        let at = now + srtt + srtt + slack;
        let at = self.timer.map_or(at, |rto| rto.min(at));
        self.rack.timer = Some(Timer::TailProbe(at));
    }

    pub(super) fn after_transmit(&mut self, now: Time, number: u64, new: bool) {
        if self.reduces_in_proportion() {
            self.prr.on_sent();
        }
        if !self.is_rack() {
            return;
        }
        self.rack.on_sent(now, number);
        if new && !matches!(self.rack.timer, Some(Timer::Reorder(_))) {
            self.schedule_probe(now);
        }
    }

    pub(super) fn run_rack_timer<O: Observer + ?Sized>(&mut self, now: Time, _: &mut O) {
        match self.rack.timer.take() {
            Some(Timer::Reorder(_)) => self.recover_if_lost(now),
            Some(Timer::TailProbe(_)) if self.queue.len() > 0 => self.rack.send_probe = true,
            _ => {}
        }
    }

    fn recover_if_lost(&mut self, now: Time) {
        let lost = self.queue.lost();
        self.mark_with_rack(now);
        if self.queue.lost() > lost {
            self.recover_by_time();
        }
    }

    /// Detects losses after an acknowledgement that others overtook. The older
    /// kernels only record its SACK blocks.
    pub(super) fn repair_after_old_ack(&mut self, now: Time) {
        self.recover_if_lost(now);
        self.repairing |= self.state >= State::Recovery;
    }

    /// Returns the tail loss probe that is due: new data if there is room for it,
    /// else the last packet once more (section 7.3).
    pub(super) fn tail_probe(&mut self, now: Time) -> Option<Segment> {
        if !std::mem::take(&mut self.rack.send_probe) {
            return None;
        }
        let new = self.window_has_new();
        let segment = if new {
            self.send_new(now, self.mss())
        } else {
            self.send_tail_again(now)?
        };
        self.counters.loss_probes += 1;
        self.rack.probe = Some((self.nxt, !new));
        self.rack.timer = None;
        self.restart_timer(now);
        Some(segment)
    }

    /// Evaluates the tail loss probe (section 7.4): if it repaired a loss, the
    /// window is reduced.
    fn judge_probe(&mut self, news: &AckFacts) {
        let Some((end, again)) = self.rack.probe else {
            return;
        };
        let duplicate = news.is_duplicate() && !news.sacked;
        if self.una < end {
            if duplicate && again {
                self.rack.probe = None; // the peer received both copies
            }
            return;
        }
        if !again || news.dsack {
            self.rack.probe = None;
        } else if self.una > end {
            self.rack.probe = None;
            self.reduce_once();
        }
    }
}
