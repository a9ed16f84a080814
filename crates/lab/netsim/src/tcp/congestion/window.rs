// SPDX-License-Identifier: MIT OR Apache-2.0
//! The congestion window and how it counts acknowledgements.

use units::clock::{Span, Time};

/// Upper bound of the window: 2^24 segments are 24 GB in flight.
pub(super) const CWND_MAX: u32 = 1 << 24;

/// The congestion window and the counters of its growth, in segments.
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

    /// Counts a whole window, and grows for each whole window counted.
    pub(super) fn count_whole_window(&mut self) {
        self.count += self.cwnd;
        while self.count >= self.cwnd {
            self.count -= self.cwnd;
            self.grow();
        }
    }

    pub(super) fn grow(&mut self) {
        self.cwnd = (self.cwnd + 1).min(CWND_MAX);
    }
}

/// How acknowledgements are counted. This depends on the kernel's age, not on the
/// algorithm.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counting {
    /// Each acknowledgement counts once, however much it acknowledges.
    Acks,
    /// The same, but slow start waits for a segment's worth of bytes, and Reno's
    /// congestion avoidance for a window's worth (RFC 3465 with L of one segment).
    AcksOfBytes {
        /// A segment's bytes.
        mss_bytes: u32,
        /// Whether slow start, too, grows the window by its counter: it then uses up what
        /// congestion avoidance has counted beyond a whole window.
        keeps_count: bool,
    },
    /// Each acknowledged segment counts.
    Segments,
}

/// One acknowledgement of new data, as congestion control sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub now: Time,
    pub segments: u32,
    pub srtt: Span,
    pub counting: Counting,
    /// Sequence number up to which everything is acknowledged.
    pub una: u64,
    /// Sequence number of the next new data.
    pub nxt: u64,
    /// Whether the sender is in Open.
    pub calm: bool,
}

/// Grows the window by one segment after every `per` counted. The older kernels
/// compare before they count, so the window grows one acknowledgement later.
pub(super) fn additive(window: &mut Window, counting: Counting, per: u32, segments: u32) {
    if !matches!(counting, Counting::Segments) {
        if window.count >= per {
            window.count = 0;
            window.grow();
        } else {
            window.count += 1;
        }
        return;
    }
    let per = per.max(1);
    window.count = window.count.saturating_add(segments);
    let grown = window.count / per;
    window.count -= grown * per;
    window.cwnd = window.cwnd.saturating_add(grown).min(CWND_MAX);
}
