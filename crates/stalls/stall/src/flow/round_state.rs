// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends the rounds of a flow.

use super::Flow;
use super::at::At;
use super::rounds::{ROUND_BLIND_NS, ROUND_MIN_NS, RoundState};

impl Flow {
    pub(super) fn round_state(&self) -> RoundState {
        RoundState {
            length_ns: self
                .trips
                .rtt_ns()
                .map_or(ROUND_BLIND_NS, |rtt| rtt.max(ROUND_MIN_NS)),
            is_recovering: self.repairs.recovery_point.is_some(),
            is_in_loss: self.repairs.loss_point.is_some(),
            window_known: self.window.scale.is_some(),
            mss: self.sizes.mss(),
        }
    }

    /// Ends the round if its time is over.
    pub(super) fn tick_rounds(&mut self, at: At) {
        if self.rounds.is_over(at.now) {
            let state = self.round_state();
            self.rounds.tick(at.now, state);
        }
    }
}
