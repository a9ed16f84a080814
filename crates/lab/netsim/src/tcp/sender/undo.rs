// SPDX-License-Identifier: MIT OR Apache-2.0
//! Undoes a reduction of the window that proves to have been unnecessary: every
//! retransmission was reported as received twice (RFC 3708), or the original packet
//! was acknowledged (RFC 3522, by timestamps).

use units::clock::Time;

use super::queue::tag;
use super::{Sender, State};

impl Sender {
    fn may_undo(&self) -> bool {
        self.undo_marker.is_some() && (self.undo_retrans == 0 || self.original_arrived())
    }

    /// Returns whether the acknowledgement is for a packet sent before the first
    /// retransmission, or nothing was retransmitted.
    fn original_arrived(&self) -> bool {
        match (self.retrans_time, self.last_echo) {
            (None, _) => true,
            (Some(at), Some(echo)) if self.config.timestamps => echo < self.ticks(at),
            _ => false,
        }
    }

    fn undo_window(&mut self, now: Time, threshold_too: bool) {
        match self.prior_ssthresh {
            Some(prior) => {
                self.window.cwnd = self.control.cwnd_before_loss(&self.window);
                if threshold_too {
                    self.window.ssthresh = self.window.ssthresh.max(prior);
                }
            }
            None => self.window.cwnd = self.window.cwnd.max(self.window.ssthresh),
        }
        self.prr.end();
        self.moderate(now);
        self.forget_marks();
        if !self.is_rack() {
            self.sack.forget_hint();
        }
        self.counters.undos += 1;
    }

    /// Undoes the reduction, if it was unnecessary, at the recovery point. Returns
    /// whether the state must be kept: without SACK, duplicates of earlier packets
    /// would start a new recovery. If the reduction was right, the marker stays, and the
    /// sender goes on to Disorder for another flight, in which reports of data received twice
    /// may still undo it.
    pub(super) fn undo_recovery(&mut self, now: Time) -> bool {
        if self.may_undo() {
            self.undo_window(now, true);
            self.undo_marker = None;
        }
        if self.una == self.high_seq && !self.config.sack {
            self.moderate(now);
            return true;
        }
        self.state = State::Open;
        false
    }

    pub(super) fn undo_by_dsack(&mut self, now: Time) {
        if self.undo_marker.is_some() && self.undo_retrans == 0 {
            self.undo_window(now, true);
            self.undo_marker = None;
        }
    }

    /// Undoes the reduction, if it was unnecessary, after a partial acknowledgement
    /// in Recovery. Returns whether more packets are to be marked lost.
    pub(super) fn undo_partial(&mut self, now: Time, acked_segments: u32) -> bool {
        let mark = !self.config.sack || self.fackets > self.reordering;
        if !self.may_undo() {
            return mark;
        }
        if self.queue.retrans() == 0 {
            self.retrans_time = None;
        }
        self.note_reordering(self.seen_to() + acked_segments);
        self.undo_window(now, false);
        false
    }

    /// Undoes the reduction, if it was unnecessary, after a timeout. Returns
    /// whether it did.
    pub(super) fn undo_loss(&mut self, now: Time) -> bool {
        if !self.may_undo() {
            return false;
        }
        for number in self.queue.head()..self.queue.tail() {
            self.queue.clear(number, tag::LOST);
        }
        self.undo_window(now, true);
        self.retransmits = 0;
        self.undo_marker = None;
        if self.config.sack {
            self.state = State::Open;
        }
        true
    }
}
