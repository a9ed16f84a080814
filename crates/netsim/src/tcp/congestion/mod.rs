// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the congestion window grows, and to what a loss reduces it.

mod bic;
mod cubic;
mod reno;

use bic::Bic;
use cubic::Cubic;
use units::clock::{Span, Time};

use crate::tcp::config::Congestion;

/// No window grows beyond; 2^24 segments are 24 GB in flight.
const CWND_MAX: u32 = 1 << 24;

/// The window and what its growth counts, in segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub cwnd: u32,
    pub ssthresh: u32,
    /// Acknowledgements (older kernels) or segments since the last growth.
    pub count: u32,
    /// Acknowledged bytes not yet counted (RFC 3465).
    pub abc_bytes: u64,
}

impl Window {
    pub fn in_slow_start(&self, at_threshold: bool) -> bool {
        self.cwnd < self.ssthresh || (at_threshold && self.cwnd == self.ssthresh)
    }

    fn grow(&mut self) {
        self.cwnd = (self.cwnd + 1).min(CWND_MAX);
    }
}

/// How acknowledgements are counted: a difference of ages, not of algorithms.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counting {
    /// One for each, however much it acknowledges.
    Acks,
    /// The same, but slow start waits for a segment's worth of bytes
    /// (RFC 3465 with L of one segment).
    AcksOfBytes { mss_bytes: u32 },
    /// Each segment acknowledged.
    Segments,
}

/// One acknowledgement of new data, as congestion control sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub now: Time,
    pub segments: u32,
    pub srtt: Span,
    pub counting: Counting,
}

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

    /// Raises the window for one acknowledgement.
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

    /// The threshold after a loss; remembers what the window was.
    pub fn threshold_after_loss(&mut self, cwnd: u32) -> u32 {
        match self {
            Control::Reno => reno::threshold(cwnd),
            Control::Bic(bic) => bic.threshold(cwnd),
            Control::Cubic(cubic) => cubic.threshold(cwnd),
        }
    }

    /// The window if the reduction was for nothing.
    pub fn cwnd_before_loss(&self, window: &Window) -> u32 {
        let doubled = window.ssthresh.saturating_mul(2).min(CWND_MAX);
        match self {
            Control::Reno => window.cwnd.max(doubled),
            Control::Bic(bic) => window.cwnd.max(bic.last_max),
            Control::Cubic(cubic) => window.cwnd.max(cubic.cwnd_at_loss),
        }
    }

    /// The timer ran out.
    pub fn on_timeout(&mut self) {
        match self {
            Control::Reno => {}
            Control::Bic(bic) => *bic = Bic::default(),
            Control::Cubic(cubic) => cubic.on_timeout(),
        }
    }

    /// New data was acknowledged in Open: how many segments by how many
    /// acknowledgements tells BIC what delayed acknowledgements hide.
    pub fn on_segments_acked(&mut self, segments: u32) {
        if let Control::Bic(bic) = self {
            bic.on_segments_acked(segments);
        }
    }
}

/// Returns the segments left over above the threshold.
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

/// One more after every `per` counted. The older kernels look before they
/// count, which makes it one acknowledgement later.
fn additive(window: &mut Window, counting: Counting, per: u32, segments: u32) {
    let per = per.max(1);
    if !matches!(counting, Counting::Segments) {
        if window.count >= per {
            window.count = 0;
            window.grow();
        } else {
            window.count += 1;
        }
        return;
    }
    window.count = window.count.saturating_add(segments);
    let grown = window.count / per;
    window.count -= grown * per;
    window.cwnd = window.cwnd.saturating_add(grown).min(CWND_MAX);
}
