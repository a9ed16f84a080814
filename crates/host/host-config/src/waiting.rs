// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long frames of a paced class wait if the class does not say, the same by every backend:
//! docs/decisions/host.md.

use tcpsp::TypeOptions;

use crate::limits::EDT_WAIT_NS_MAX;

/// The longest wait. Cubic keeps 0.7 of its window after a loss, so the queue of one flow does not
/// run empty up to a round trip of 115 ms.
const WAIT_NS: u64 = 50_000_000;
/// Frames that may wait at any rate: TCP's first window.
const WAIT_FRAMES: u64 = 10;
/// Bytes of a full frame.
const FRAME_BYTES: u64 = 1514;
/// The queue of a class by the module and by BPF: the usual txqueuelen.
const QUEUE_FRAMES: u64 = 1000;

/// Returns how long full frames last at a rate, in ns.
pub fn frames_ns(frames: u64, rate_bps: u64) -> u64 {
    let ns = u128::from(frames) * u128::from(FRAME_BYTES) * 8_000_000_000;
    u64::try_from(ns / u128::from(rate_bps.max(1))).unwrap_or(u64::MAX)
}

/// Returns the longest wait at a rate, in ns: 50 ms, or 10 full frames if that is longer.
pub fn longest_wait_ns(rate_bps: u64) -> u64 {
    frames_ns(WAIT_FRAMES, rate_bps).max(WAIT_NS)
}

/// Returns the deadline of a class whose file names none: above 242 Mbit/s a queue is shorter by
/// itself, and below 13.5 kbit/s it is what its frames are.
pub(crate) fn deadline_ns(of: &TypeOptions) -> Option<u64> {
    let TypeOptions::Paced {
        rate_bps,
        launch: None,
        ..
    } = of
    else {
        return None;
    };
    let longest_ns = longest_wait_ns(*rate_bps);
    let is_needed = frames_ns(QUEUE_FRAMES, *rate_bps) > longest_ns;
    (is_needed && longest_ns <= EDT_WAIT_NS_MAX).then_some(longest_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_that_would_be_long_are_as_long_as_tcp_needs() {
        for (rate_bps, expected) in [
            (1_000_000_000, None),
            (242_240_000, None),
            (242_000_000, Some(50_000_000)),
            (2_500_000, Some(50_000_000)),
            (1_000_000, Some(121_120_000)),
            (100_000, Some(1_211_200_000)),
            (13_000, None),
            (51, None),
        ] {
            let of = TypeOptions::Paced {
                rate_bps,
                ceil_bps: None,
                launch: None,
            };
            assert_eq!(deadline_ns(&of), expected, "{rate_bps}");
        }
        let normal = TypeOptions::Normal {
            quantum_bytes: None,
        };
        assert_eq!(deadline_ns(&normal), None);
    }
}
