// SPDX-License-Identifier: MIT OR Apache-2.0
//! Growth that several congestion controls share: slow start, and Reno's behind it.

use super::reno;
use super::window::{Acked, CWND_MAX, Counting, Window};

/// Grows the window as Reno does.
pub(super) fn grow_as_reno(window: &mut Window, acked: &Acked) {
    if let Some(segments) = slow_start_first(window, acked) {
        reno::avoid(window, acked.counting, segments);
    }
}

/// Grows the window if it is in slow start. Returns what is left of the acknowledgement for
/// congestion avoidance; `None` if nothing is.
pub(super) fn slow_start_first(window: &mut Window, acked: &Acked) -> Option<u32> {
    let at_threshold = !matches!(acked.counting, Counting::Segments);
    let segments = match acked.counting {
        Counting::Segments => acked.segments,
        _ => 1,
    };
    if !window.in_slow_start(at_threshold) {
        return Some(segments);
    }
    let left = slow_start(window, acked.counting, segments);
    (left > 0 && !at_threshold).then_some(left)
}

/// Grows the window in slow start. Returns the segments left over above the
/// threshold.
fn slow_start(window: &mut Window, counting: Counting, segments: u32) -> u32 {
    match counting {
        Counting::Acks => window.grow(),
        Counting::AcksOfBytes {
            mss_bytes,
            keeps_count,
        } => {
            if window.abc_bytes < u64::from(mss_bytes) {
                return 0;
            }
            window.abc_bytes = 0;
            if keeps_count {
                window.count_whole_window();
            } else {
                window.grow();
            }
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
