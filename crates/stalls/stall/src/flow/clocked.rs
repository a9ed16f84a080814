// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds the round trip between capture and sender from above, without timestamps: a sender in
//! slow start sends at most two bytes for each that is acknowledged (RFC 5681, 3.1), so what it
//! sends beyond that had to wait for an acknowledgement.

use std::collections::VecDeque;

/// The largest window that senders begin with, in full segments; RFC 6928 has 10.
const FIRST_WINDOW_SEGMENTS: u64 = 32;
/// Acknowledgements that are remembered, and samples that are taken: both only at the beginning,
/// where the bound is near what is sent.
const REMEMBERED: usize = 32;
const SAMPLES: u32 = 32;

/// The acknowledgements that may have let data go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocked {
    /// When an acknowledgement was captured, and the byte up to which it lets data go.
    allows: VecDeque<(u64, u64)>,
    samples: u32,
    min_ns: u64,
}

impl Clocked {
    /// Notes that so many bytes are acknowledged, of a flow of which all was captured.
    pub(super) fn acknowledged(&mut self, now: u64, bytes: u64) {
        if self.samples < SAMPLES && self.allows.len() < REMEMBERED {
            self.allows.push_back((now, 2 * bytes));
        }
    }

    /// Notes that data up to byte `end` was sent. Returns whether that gave a shorter time.
    pub(super) fn sent(&mut self, now: u64, end: u64, mss: u64) -> bool {
        let beyond = end.saturating_sub(FIRST_WINDOW_SEGMENTS * mss);
        if beyond == 0 || self.samples >= SAMPLES {
            return false;
        }
        while self
            .allows
            .front()
            .is_some_and(|&(_, bytes)| bytes < beyond)
        {
            self.allows.pop_front();
        }
        let Some(&(since, _)) = self.allows.front() else {
            return false; // more than the rule allows: it tells nothing
        };
        let ns = now.saturating_sub(since);
        let is_shorter = self.samples == 0 || ns < self.min_ns;
        if is_shorter {
            self.min_ns = ns;
        }
        self.samples += 1;
        if self.samples >= SAMPLES {
            self.allows = VecDeque::new();
        }
        is_shorter
    }

    /// Returns the shortest time from an acknowledgement to what it let go.
    pub(super) fn min(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.min_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_beyond_the_first_window_waited_for_an_acknowledgement() {
        let mut clocked = Clocked::default();
        assert!(!clocked.sent(0, 32_000, 1000));
        assert_eq!(clocked.min(), None);
        clocked.acknowledged(100, 1000);
        clocked.acknowledged(110, 10_000);
        // The first acknowledgement lets no more than 34,000 bytes go.
        assert!(clocked.sent(150, 35_000, 1000));
        assert_eq!(clocked.min(), Some(40));
        // More than all acknowledgements allow: another sender than the rule knows.
        assert!(!clocked.sent(151, 90_000, 1000));
        assert_eq!(clocked.min(), Some(40));
    }

    #[test]
    fn what_it_remembers_is_bounded() {
        let mut clocked = Clocked::default();
        for n in 0..10_000 {
            clocked.acknowledged(n, n * 1000);
        }
        assert_eq!(clocked.allows.len(), REMEMBERED);
    }
}
