// SPDX-License-Identifier: MIT OR Apache-2.0
//! Congestion control: how the congestion window grows, and to what a loss reduces
//! it.

mod bic;
mod cubic;
mod delay;
mod growth;
mod hystart;
mod reno;
mod vegas;
mod window;

pub(crate) use delay::DelaySample;
pub(crate) use hystart::RttSample;
pub(crate) use window::{Acked, Counting, Window};

use bic::Bic;
use cubic::Cubic;
use growth::{grow_as_reno, slow_start_first};
use vegas::Vegas;
use window::CWND_MAX;

use crate::tcp::algorithm::Congestion;
use crate::tcp::variant::{Recovery, Variant};

#[derive(Clone, Debug)]
pub(crate) enum Control {
    Reno,
    Bic(Bic),
    Cubic(Cubic),
    Vegas(Vegas),
}

impl Control {
    /// Makes the congestion control as the kernel has it: only today's CUBIC has HyStart.
    pub fn new(congestion: Congestion, variant: &Variant) -> Control {
        match congestion {
            Congestion::Reno => Control::Reno,
            Congestion::Bic => Control::Bic(Bic::new(variant.bic)),
            Congestion::Cubic => Control::Cubic(Cubic::new(variant.recovery == Recovery::RackPrr)),
            Congestion::Vegas => Control::Vegas(Vegas::default()),
        }
    }

    /// Grows the window for one acknowledgement.
    pub fn on_acked(&mut self, window: &mut Window, acked: &Acked) {
        let loss_based = match self {
            Control::Vegas(vegas) => return vegas.on_acked(window, acked),
            Control::Reno => return grow_as_reno(window, acked),
            other => other,
        };
        let Some(segments) = slow_start_first(window, acked) else {
            return;
        };
        match loss_based {
            Control::Bic(bic) => bic.avoid(window, acked, segments),
            Control::Cubic(cubic) => cubic.avoid(window, acked, segments),
            Control::Reno | Control::Vegas(_) => {}
        }
    }

    /// Adds a measured round trip.
    pub fn on_rtt(&mut self, window: &mut Window, sample: &RttSample) {
        match self {
            Control::Vegas(vegas) => vegas.on_rtt(sample.rtt),
            Control::Cubic(cubic) => cubic.on_rtt(window, sample),
            Control::Reno | Control::Bic(_) => {}
        }
    }

    /// Returns the slow start threshold after a loss, and records the window at the
    /// loss.
    pub fn threshold_after_loss(&mut self, cwnd: u32) -> u32 {
        match self {
            Control::Reno => reno::threshold(cwnd),
            Control::Bic(bic) => bic.threshold(cwnd),
            Control::Cubic(cubic) => cubic.threshold(cwnd),
            Control::Vegas(vegas) => vegas.threshold(cwnd),
        }
    }

    /// Returns the window to restore if the reduction was unnecessary.
    pub fn cwnd_before_loss(&self, window: &Window) -> u32 {
        let doubled = window.ssthresh.saturating_mul(2).min(CWND_MAX);
        match self {
            Control::Reno | Control::Vegas(_) => window.cwnd.max(doubled),
            Control::Bic(bic) => bic.cwnd_before_loss(window.cwnd, doubled),
            Control::Cubic(cubic) => window.cwnd.max(cubic.cwnd_at_loss),
        }
    }

    /// Returns the window below which rate halving does not go by itself.
    pub fn least_while_halving(&self, window: &Window) -> u32 {
        match self {
            Control::Reno => window.ssthresh / 2,
            Control::Bic(bic) => bic.least_while_halving(window.ssthresh),
            Control::Cubic(_) | Control::Vegas(_) => window.ssthresh,
        }
    }

    /// Adds the delay of an acknowledgement of new data.
    pub fn on_delay(&mut self, sample: &DelaySample) {
        if let Control::Bic(bic) = self {
            bic.on_delay(sample);
        }
    }

    /// Handles a retransmission timeout.
    pub fn on_timeout(&mut self) {
        match self {
            Control::Reno => {}
            Control::Bic(bic) => bic.reset(),
            Control::Cubic(cubic) => cubic.on_timeout(),
            Control::Vegas(vegas) => vegas.on_timeout(),
        }
    }

    /// Counts new data acknowledged in Open. From the number of segments per
    /// acknowledgement BIC estimates the effect of delayed acknowledgements.
    pub fn on_segments_acked(&mut self, segments: u32) {
        if let Control::Bic(bic) = self {
            bic.on_segments_acked(segments);
        }
    }
}
