// SPDX-License-Identifier: MIT OR Apache-2.0
//! The congestion states Open, Disorder, CWR, Recovery and Loss, and the window in
//! each (Sarolahti and Kuznetsov, USENIX 2002; paper 001, section 2).

use units::clock::Time;

use super::ack::AckFacts;
use super::queue::tag;
use super::{Sender, State};
use crate::tcp::variant::SackScan;

/// Number of segments beyond those in flight that may leave at once.
const BURST: u32 = 3;

impl Sender {
    /// Processes an acknowledgement that is dubious: a duplicate, one with SACK
    /// blocks or losses, or one in a state other than Open (`tcp_fastretrans_alert`
    /// of Linux).
    pub(super) fn alert(&mut self, now: Time, news: &AckFacts) {
        if self.queue.len() == 0 {
            self.dupacks = 0;
        }
        if self.sacked_out() == 0 {
            self.fackets = 0;
        }
        if self.has_reneged() {
            self.start_over(now);
            return;
        }
        if !self.is_rack()
            && news.beyond_recovery
            && self.una < self.high_seq
            && self.state != State::Open
            && self.fackets > self.reordering
        {
            self.mark_head_lost(self.fackets - self.reordering);
        }
        if self.state == State::Open {
            self.retrans_time = None;
        } else if self.una >= self.high_seq && self.leave_state(now) {
            return;
        }
        self.act_on_state(now, news);
    }

    /// Returns whether the peer has reneged: it SACKed the packet at `una`, and yet
    /// does not acknowledge it, so it has discarded it (RFC 2018, section 8).
    fn has_reneged(&self) -> bool {
        let head = self.queue.get(self.queue.head());
        head.is_some_and(|packet| packet.has(tag::SACKED))
    }

    /// Discards all SACK information and enters Loss, because the peer has reneged.
    fn start_over(&mut self, now: Time) {
        for number in self.queue.head()..self.queue.tail() {
            self.queue.clear(number, tag::SACKED);
        }
        if self.is_rack() {
            self.sack.remember(&[]);
        }
        self.enter_loss(now);
        self.undo_marker = None;
        self.retransmits += 1;
        self.send_head = true;
        self.restart_timer(now);
    }

    /// Leaves the state, because the recovery point is reached. Returns whether
    /// processing of the acknowledgement ends here.
    fn leave_state(&mut self, now: Time) -> bool {
        match self.state {
            State::Open => {}
            State::Loss => {
                self.retransmits = 0;
                return self.undo_recovery(now);
            }
            State::Cwr => {
                // Data beyond the recovery point must be acknowledged: otherwise a
                // window of duplicates could reduce the window twice.
                if self.una != self.high_seq {
                    self.complete_reduction(now);
                    self.state = State::Open;
                }
            }
            State::Disorder => {
                self.undo_by_dsack(now);
                if self.undo_marker.is_none() || !self.config.sack || self.una != self.high_seq {
                    self.undo_marker = None;
                    self.state = State::Open;
                }
            }
            State::Recovery => {
                if !self.config.sack {
                    self.dupacks = 0;
                }
                if self.undo_recovery(now) {
                    return true;
                }
                self.complete_reduction(now);
                self.rack_recovered();
            }
        }
        false
    }

    fn act_on_state(&mut self, now: Time, news: &AckFacts) {
        let mut mark = news.is_duplicate();
        match self.state {
            State::Recovery => {
                if !news.acked {
                    if !self.config.sack && mark {
                        self.count_duplicate();
                    }
                } else {
                    if !self.config.sack {
                        self.uncount_duplicates(news);
                    }
                    mark = self.undo_partial(now, news.acked_segments);
                }
            }
            State::Loss => {
                if news.acked {
                    self.retransmits = 0;
                }
                if !self.undo_loss(now) {
                    self.moderate(now);
                    self.repairing = true;
                    return;
                }
                if self.state != State::Open || !self.consider(now, news) {
                    return;
                }
            }
            State::Open | State::Disorder | State::Cwr => {
                if !self.consider(now, news) {
                    return;
                }
            }
        }
        if !self.is_rack() && (mark || self.is_head_timed_out(now)) {
            self.update_scoreboard(now);
        }
        self.reduce(now, news);
        self.repairing = true;
    }

    /// Enters Recovery if it is time to, and returns whether it did. Called in
    /// states without losses.
    fn consider(&mut self, now: Time, news: &AckFacts) -> bool {
        if !self.config.sack {
            if news.acked {
                self.dupacks = 0;
            }
            if news.is_duplicate() {
                self.count_duplicate();
            }
        }
        if self.state == State::Disorder {
            self.undo_by_dsack(now);
        }
        if !self.is_time_to_recover(now) {
            self.try_to_open(now, news);
            return false;
        }
        self.enter_recovery();
        true
    }

    fn is_time_to_recover(&self, now: Time) -> bool {
        if self.queue.lost() > 0 {
            return true;
        }
        if self.is_rack() {
            return false;
        }
        if self.seen_to() > self.reordering || self.is_head_timed_out(now) {
            return true;
        }
        // Too few packets are out to show as much reordering, and no new one may be
        // sent.
        let out = self.queue.len();
        out <= self.reordering
            && self.sacked_out() >= (out / 2).max(self.config.reordering)
            && !self.may_send_new()
    }

    /// Returns the number of packets up to the highest that arrived, as far as is known.
    pub(super) fn seen_to(&self) -> u32 {
        if self.config.sack {
            self.fackets
        } else {
            self.dupacks + 1
        }
    }

    fn enter_recovery(&mut self) {
        self.high_seq = self.nxt;
        self.prior_ssthresh = None;
        self.undo_marker = Some(self.una);
        self.undo_retrans = self.queue.retrans() as i32;
        if self.state < State::Cwr {
            self.prior_ssthresh = Some(self.current_threshold());
            self.window.ssthresh = self.control.threshold_after_loss(self.window.cwnd);
            self.prr.begin(self.window.cwnd);
        }
        self.window.abc_bytes = 0;
        self.window.count = 0;
        self.state = State::Recovery;
        self.counters.recoveries += 1;
    }

    /// Enters Recovery because RACK's timer, and no acknowledgement, found losses.
    pub(super) fn recover_by_time(&mut self) {
        if self.state < State::Recovery {
            self.enter_recovery();
            let in_flight = self.in_flight();
            let allowed = self
                .prr
                .allowance(self.window.ssthresh, in_flight, 0, false);
            self.window.cwnd = in_flight + allowed.max(1);
        }
        self.repairing = true;
    }

    /// Reduces the window at once: a tail loss probe repaired a loss before it was
    /// detected.
    pub(super) fn reduce_once(&mut self) {
        if self.state < State::Cwr {
            self.window.ssthresh = self.control.threshold_after_loss(self.window.cwnd);
            self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
            self.window.count = 0;
        }
    }

    /// Changes to Open if nothing is out of order, otherwise to Disorder.
    fn try_to_open(&mut self, now: Time, news: &AckFacts) {
        if self.queue.retrans() == 0 {
            self.retrans_time = None;
        }
        if self.state == State::Cwr {
            self.reduce(now, news);
            return;
        }
        let disorder =
            self.sacked_out() > 0 || self.queue.retrans() > 0 || self.undo_marker.is_some();
        let state = if disorder {
            State::Disorder
        } else {
            State::Open
        };
        if state != self.state {
            self.state = state;
            self.high_seq = self.nxt;
        }
        self.moderate(now);
    }

    /// Enters CWR because the local queue was full: the window is reduced as after
    /// a loss, although nothing is lost.
    pub(super) fn enter_cwr(&mut self, now: Time) {
        self.prior_ssthresh = None;
        self.window.abc_bytes = 0;
        if self.state >= State::Cwr {
            return;
        }
        self.counters.local_reductions += 1;
        self.undo_marker = None;
        self.window.ssthresh = self.control.threshold_after_loss(self.window.cwnd);
        self.prr.begin(self.window.cwnd);
        if !self.reduces_in_proportion() {
            self.window.cwnd = self.window.cwnd.min(self.in_flight().wrapping_add(1));
        }
        self.stamp_window(now);
        self.window.count = 0;
        self.high_seq = self.nxt;
        self.state = State::Cwr;
    }

    /// Enters Loss after a retransmission timeout: marks lost what is not SACKed
    /// (with RACK only the head and overdue packets), and reduces the window to one
    /// segment.
    pub(super) fn enter_loss(&mut self, now: Time) {
        let anew = self.state <= State::Disorder
            || self.una == self.high_seq
            || (self.state == State::Loss && self.retransmits == 0);
        if anew {
            self.prior_ssthresh = Some(self.current_threshold());
            self.window.ssthresh = self.control.threshold_after_loss(self.window.cwnd);
        }
        self.control.on_timeout();
        self.prr.end();
        self.window.cwnd = 1;
        self.stamp_window(now);
        self.window.count = 0;
        self.window.abc_bytes = 0;
        self.undo_retrans = 0;
        self.undo_marker = Some(self.una);
        self.dupacks = 0;
        self.fackets = 0;
        for number in self.queue.head()..self.queue.tail() {
            let Some(packet) = self.queue.get(number) else {
                break;
            };
            let tags = packet.tags;
            if tags & tag::EVER != 0 {
                self.undo_marker = None;
            }
            if tags & tag::SACKED != 0 {
                self.queue.clear(number, tag::RETRANS);
                self.fackets = self.queue.count_to(number);
            } else {
                self.queue.clear(number, tag::RETRANS | tag::LOST);
                if !self.is_rack() || number == self.queue.head() || self.is_overdue(now, number) {
                    self.queue.set(number, tag::LOST);
                }
            }
        }
        self.reordering = self.reordering.min(self.config.reordering);
        self.state = State::Loss;
        self.high_seq = self.nxt;
        self.sack.forget_hint();
        self.forget_marks();
    }

    /// Resets the scan marks to the head of the queue: they may be too high after
    /// packets lost their tags.
    pub(super) fn forget_marks(&mut self) {
        let head = self.queue.head();
        self.lost_mark = head;
        self.timed_out_mark = None;
        self.retransmit_mark = head;
        self.retransmit_seen = 0;
        self.forward_mark = head;
    }

    /// Moves the retransmission mark back so that the scan finds packet `number`:
    /// it may lie below the mark, or fewer packets below the mark are lost than
    /// were counted. The older kernels then scan from the head again; today's
    /// kernels go back to that packet only.
    pub(super) fn forget_retransmit_mark(&mut self, number: u64) {
        if self.is_rack() {
            self.retransmit_mark = self.retransmit_mark.min(number);
        } else if number < self.retransmit_mark {
            self.retransmit_mark = self.queue.head();
            self.retransmit_seen = 0;
        }
    }

    fn is_head_timed_out(&self, now: Time) -> bool {
        self.is_timed_out(now, self.queue.head())
    }

    fn is_timed_out(&self, now: Time, number: u64) -> bool {
        self.queue
            .get(number)
            .is_some_and(|packet| now.since(packet.sent_at) > self.rtt.rto())
    }

    /// Marks lost the packets far enough below the highest SACKed one (without forward
    /// acknowledgement only the head) and, if the head has been out for longer than a timeout,
    /// those that have been, too.
    fn update_scoreboard(&mut self, now: Time) {
        let packets = if self.config.sack && self.fack {
            self.fackets.saturating_sub(self.reordering).max(1)
        } else {
            1
        };
        self.mark_head_lost(packets);
        let searched = self.config.sack || self.variant().sack_scan == SackScan::WholeQueue;
        if searched && self.is_head_timed_out(now) {
            self.mark_timed_out(now);
        }
    }

    /// Marks timed-out packets lost. The kernels with hints stop at the first that is not
    /// timed out, and go on there the next time, if the queue's head is still the same.
    fn mark_timed_out(&mut self, now: Time) {
        if self.variant().sack_scan == SackScan::WholeQueue {
            for number in self.queue.head()..self.queue.tail() {
                if self.is_timed_out(now, number) {
                    self.mark_lost(number);
                }
            }
            return;
        }
        let mut number = self.timed_out_mark.unwrap_or(self.queue.head());
        while self.is_timed_out(now, number) {
            self.mark_lost(number);
            number += 1;
        }
        let at_end = number == self.queue.tail() && !self.has_new();
        self.timed_out_mark = Some(if at_end { u64::MAX } else { number });
    }

    /// Marks lost the untagged packets among the first `packets`, up to the
    /// recovery point.
    fn mark_head_lost(&mut self, packets: u32) {
        let mut number = self.lost_mark.max(self.queue.head());
        while let Some(packet) = self.queue.get(number) {
            if self.queue.count_to(number) > packets || packet.end > self.high_seq {
                break;
            }
            self.mark_lost(number);
            number += 1;
        }
        self.lost_mark = number;
    }

    fn mark_lost(&mut self, number: u64) {
        if self.queue.get(number).is_some_and(|p| !p.has(tag::ANY)) {
            self.set_lost(number);
        }
    }

    /// Marks a packet lost and has it retransmitted.
    pub(super) fn set_lost(&mut self, number: u64) {
        self.queue.set(number, tag::LOST);
        self.forget_retransmit_mark(number);
    }

    pub(super) fn current_threshold(&self) -> u32 {
        match self.state {
            State::Cwr | State::Recovery => self.window.ssthresh,
            _ => {
                let cwnd = self.window.cwnd;
                self.window.ssthresh.max(cwnd / 2 + cwnd / 4)
            }
        }
    }

    /// Reduces the window, by the method of the variant.
    fn reduce(&mut self, now: Time, news: &AckFacts) {
        if self.reduces_in_proportion() {
            self.reduce_in_proportion(news);
        } else {
            self.halve_rate(now);
        }
    }

    /// Rate halving: reduces the window by one for every second acknowledgement
    /// down to the threshold (Reno: to half of it), and to at most one above what is in
    /// flight. The latter pins the window at one when many packets are found lost at once.
    fn halve_rate(&mut self, now: Time) {
        let counted = self.window.count + 1;
        self.window.count = counted % 2;
        let least = self.control.least_while_halving(&self.window);
        if counted >= 2 && self.window.cwnd > least {
            self.window.cwnd -= 1;
        }
        self.window.cwnd = self.window.cwnd.min(self.in_flight().wrapping_add(1));
        self.stamp_window(now);
    }

    /// Ends the reduction. With rate halving the window may be far below the
    /// threshold by then; with RFC 9937 it ends at the threshold.
    fn complete_reduction(&mut self, now: Time) {
        if self.reduces_in_proportion() {
            if self.prr.is_under_way() {
                self.window.cwnd = self.window.ssthresh;
            }
            self.prr.end();
        } else {
            self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
            self.stamp_window(now);
        }
    }

    /// Limits the window to `BURST` segments above what is in flight, so that no
    /// large burst leaves. Not done with proportional rate reduction.
    pub(super) fn moderate(&mut self, now: Time) {
        if self.reduces_in_proportion() {
            return;
        }
        self.window.cwnd = self.window.cwnd.min(self.in_flight().wrapping_add(BURST));
        self.stamp_window(now);
    }
}
