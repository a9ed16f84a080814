// SPDX-License-Identifier: MIT OR Apache-2.0
//! The retransmission timer, which also times the probes of a closed window.

use sender_log::variables::{Moment, Observer};
use units::clock::{Span, Time};

use super::Sender;

/// Longest time until the sender retries after the local queue refused a segment
/// while no acknowledgement can be expected, as Linux waits for resources.
const RETRY: Span = Span::from_ns(500_000_000);

impl Sender {
    /// Restarts the timer if packets are out or new data waits for the peer's
    /// window; otherwise stops it.
    pub(super) fn restart_timer(&mut self, now: Time) {
        let wait = self.rtt.rto();
        let needed = self.queue.len() > 0 || self.has_new();
        self.timer = needed.then(|| now + wait);
    }

    pub(super) fn retry_soon(&mut self, now: Time) {
        if self.queue.len() == 0 || self.in_flight() == 0 {
            let wait = self.rtt.rto().min(RETRY);
            self.timer = Some(now + wait);
        }
    }

    pub(super) fn run_timers<O: Observer + ?Sized>(&mut self, now: Time, observer: &mut O) {
        if self.rack.timer().is_some_and(|at| at <= now) {
            self.refused = false;
            self.run_rack_timer(now, observer);
        }
        if self.timer.is_none_or(|at| at > now) {
            return;
        }
        self.refused = false;
        if self.queue.len() == 0 {
            self.probe_window(now);
        } else {
            self.time_out(now, observer);
        }
    }

    fn time_out<O: Observer + ?Sized>(&mut self, now: Time, observer: &mut O) {
        self.counters.timeouts += 1;
        self.enter_loss(now);
        self.rack.stop();
        self.send_head = true;
        self.repairing = false;
        self.retransmits += 1;
        self.rtt.back_off();
        self.restart_timer(now);
        observer.observe(now, Moment::Timeout, &self.vars());
    }

    fn probe_window(&mut self, now: Time) {
        self.timer = None;
        if !self.has_new() {
            return;
        }
        self.send_probe = true;
        let wait = self.rtt.rto().as_ns() << self.probes.min(9);
        self.probes += 1;
        self.timer = Some(now + Span::from_ns(wait.min(120_000_000_000)));
    }
}
