// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reno: additive increase, halving after a loss (RFC 5681).

use super::window::{Counting, Window, additive};

pub(super) fn avoid(window: &mut Window, counting: Counting, segments: u32) {
    if let Counting::AcksOfBytes { mss_bytes, .. } = counting {
        let whole = u64::from(window.cwnd) * u64::from(mss_bytes);
        if window.abc_bytes >= whole {
            window.abc_bytes -= whole;
            window.grow();
        }
        return;
    }
    additive(window, counting, window.cwnd, segments);
}

pub(super) fn threshold(cwnd: u32) -> u32 {
    (cwnd / 2).max(2)
}
