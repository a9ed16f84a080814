// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reduces the window by proportional rate reduction (RFC 9937).

use super::Sender;
use super::ack::AckFacts;

impl Sender {
    pub(super) fn reduce_in_proportion(&mut self, news: &AckFacts) {
        if news.delivered == 0 || !self.prr.is_under_way() {
            return;
        }
        let in_flight = self.in_flight();
        let safe = news.acked && news.lost == 0;
        let allowed = self
            .prr
            .allowance(self.window.ssthresh, in_flight, news.delivered, safe);
        self.window.cwnd = (in_flight + allowed).max(1);
    }
}
