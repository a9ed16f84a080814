// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proportional rate reduction (RFC 9937): for each packet delivered, the sender
//! sends so many that the window is down at the threshold within a round trip.

/// The counts of one reduction, in segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prr {
    /// Window when the reduction began; 0 if none is under way.
    prior_cwnd: u32,
    /// Segments delivered since.
    delivered: u32,
    /// Segments sent since.
    out: u32,
}

impl Prr {
    pub fn begin(&mut self, cwnd: u32) {
        *self = Prr {
            prior_cwnd: cwnd.max(1),
            delivered: 0,
            out: 0,
        };
    }

    /// Ends the reduction: it is complete or was undone.
    pub fn end(&mut self) {
        *self = Prr::default();
    }

    pub fn is_under_way(&self) -> bool {
        self.prior_cwnd > 0
    }

    pub fn on_sent(&mut self) {
        self.out = self.out.saturating_add(1);
    }

    pub fn on_refused(&mut self) {
        self.out = self.out.saturating_sub(1);
    }

    /// Returns how many segments may be sent for one acknowledgement (RFC 9937,
    /// section 6.2). `safe`: the acknowledgement advanced and showed no new loss.
    pub fn allowance(
        &mut self,
        ssthresh: u32,
        in_flight: u32,
        newly_delivered: u32,
        safe: bool,
    ) -> u32 {
        self.delivered = self.delivered.saturating_add(newly_delivered);
        let unsent = self.delivered.saturating_sub(self.out);
        let allowed = if in_flight > ssthresh {
            let share = u64::from(ssthresh) * u64::from(self.delivered);
            let share = share.div_ceil(u64::from(self.prior_cwnd.max(1)));
            share.saturating_sub(u64::from(self.out)) as u32
        } else {
            let back = unsent.max(newly_delivered) + u32::from(safe);
            back.min(ssthresh - in_flight)
        };
        // The first retransmission is always allowed.
        allowed.max(u32::from(self.out == 0))
    }
}
