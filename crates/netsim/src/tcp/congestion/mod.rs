// SPDX-License-Identifier: MIT OR Apache-2.0
//! Congestion control: how the congestion window grows, and to what a loss reduces
//! it.

mod bic;
mod cubic;
mod reno;
mod window;

pub(crate) use window::{Acked, Counting, Window};

use bic::Bic;
use cubic::Cubic;
use window::CWND_MAX;

use crate::tcp::algorithm::Congestion;

#[derive(Clone, Debug)]
pub(crate) enum Control {
    Reno,
    Bic(Bic),
    Cubic(Cubic),
}

impl Control {
    pub fn new(congestion: Congestion) -> Control {
        match congestion {
            Congestion::Reno => Control::Reno,
            Congestion::Bic => Control::Bic(Bic::default()),
            Congestion::Cubic => Control::Cubic(Cubic::default()),
        }
    }

    /// Grows the window for one acknowledgement.
    pub fn on_acked(&mut self, window: &mut Window, acked: &Acked) {
        let at_threshold = !matches!(acked.counting, Counting::Segments);
        let mut segments = match acked.counting {
            Counting::Segments => acked.segments,
            _ => 1,
        };
        if window.in_slow_start(at_threshold) {
            segments = slow_start(window, acked.counting, segments);
            if segments == 0 || at_threshold {
                return;
            }
        }
        match self {
            Control::Reno => reno::avoid(window, acked.counting, segments),
            Control::Bic(bic) => bic.avoid(window, acked, segments),
            Control::Cubic(cubic) => cubic.avoid(window, acked, segments),
        }
    }

    /// Returns the slow start threshold after a loss, and records the window at the
    /// loss.
    pub fn threshold_after_loss(&mut self, cwnd: u32) -> u32 {
        match self {
            Control::Reno => reno::threshold(cwnd),
            Control::Bic(bic) => bic.threshold(cwnd),
            Control::Cubic(cubic) => cubic.threshold(cwnd),
        }
    }

    /// Returns the window to restore if the reduction was unnecessary.
    pub fn cwnd_before_loss(&self, window: &Window) -> u32 {
        let doubled = window.ssthresh.saturating_mul(2).min(CWND_MAX);
        match self {
            Control::Reno => window.cwnd.max(doubled),
            Control::Bic(bic) => window.cwnd.max(bic.last_max),
            Control::Cubic(cubic) => window.cwnd.max(cubic.cwnd_at_loss),
        }
    }

    /// Handles a retransmission timeout.
    pub fn on_timeout(&mut self) {
        match self {
            Control::Reno => {}
            Control::Bic(bic) => *bic = Bic::default(),
            Control::Cubic(cubic) => cubic.on_timeout(),
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

/// Grows the window in slow start. Returns the segments left over above the
/// threshold.
fn slow_start(window: &mut Window, counting: Counting, segments: u32) -> u32 {
    match counting {
        Counting::Acks => window.grow(),
        Counting::AcksOfBytes { mss_bytes } => {
            if window.abc_bytes < u64::from(mss_bytes) {
                return 0;
            }
            window.abc_bytes = 0;
            window.grow();
        }
        Counting::Segments => {
            let room = window.ssthresh - window.cwnd;
            let grown = segments.min(room);
            window.cwnd = (window.cwnd + grown).min(CWND_MAX);
            return segments - grown;
        }
    }
    0
}
