// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long packets of a class may wait if the class does not say: docs/decisions/host.md.

use host_config::{frames_ns, longest_wait_ns};

/// The longest wait that a class may have: fq drops packets of 10 s and more.
const HORIZON_NS_MAX: u64 = 9_000_000_000;
/// The wait from which packets are marked, and the frames that may wait without marks at any rate.
const MARK_NS: u64 = 20_000_000;
const MARK_FRAMES: u64 = 4;
/// By how much longer what waits may wait than it would at a rate that has been raised, before it is
/// thrown away for it: a TCP whose packets are lost goes on after 200 ms at the earliest.
const OLD_NS_MAX: u64 = 200_000_000;

/// Returns whether what waits at a rate waits for too long once the rate is raised.
pub(crate) fn is_slow(lead_ns: u64, rate_bps: u64, to_bps: u64) -> bool {
    let lead = u128::from(lead_ns);
    let at_new = lead * u128::from(rate_bps) / u128::from(to_bps.max(1));
    lead.saturating_sub(at_new) > u128::from(OLD_NS_MAX)
}

/// Returns the longest wait of a packet.
pub(crate) fn horizon_ns(rate_bps: u64) -> u64 {
    longest_wait_ns(rate_bps).min(HORIZON_NS_MAX)
}

/// Returns the wait from which a packet is CE-marked, of a class whose packets wait for at most
/// `horizon_ns`.
pub(crate) fn mark_ns(rate_bps: u64, horizon_ns: u64) -> u64 {
    let mark_ns = frames_ns(MARK_FRAMES, rate_bps).max(MARK_NS);
    mark_ns.min(horizon_ns / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_thrown_away_where_that_is_quicker() {
        const S: u64 = 1_000_000_000;
        assert!(is_slow(9 * S, 9_600, 50_000_000));
        assert!(is_slow(S, 100_000, 50_000_000));
        assert!(!is_slow(S, 100_000, 120_000));
        assert!(!is_slow(S / 20, 10_000_000, 50_000_000));
    }

    #[test]
    fn slow_classes_may_wait_for_some_frames() {
        for (rate_bps, horizon, mark) in [
            (100_000_000, 50_000_000, 20_000_000),
            (2_500_000, 50_000_000, 20_000_000),
            (1_000_000, 121_120_000, 48_448_000),
            (1_000, HORIZON_NS_MAX, HORIZON_NS_MAX / 2),
        ] {
            assert_eq!(horizon_ns(rate_bps), horizon);
            assert_eq!(mark_ns(rate_bps, horizon), mark);
        }
        assert_eq!(mark_ns(100_000_000, 10_000_000), 5_000_000);
    }
}
