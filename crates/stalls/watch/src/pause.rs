// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects what happens since the last progress of a connection.

use crate::facts::{After, Closed, Evidence, Facts, Timeout};
use crate::records::Reading;

const MS: u64 = 1_000_000;

/// Shortest pause that is a stall, in ns, however short the round trip; and where the round
/// trip is not known (`docs/use/stalls.md`).
const STALL_NS: u64 = 20 * MS;
const STALL_BLIND_NS: u64 = 200 * MS;

/// Returns the shortest pause that is a stall, for a smoothed round trip; 0: not known.
pub(crate) fn threshold_ns(srtt_ns: u64) -> u64 {
    match srtt_ns {
        0 => STALL_BLIND_NS,
        srtt_ns => srtt_ns.saturating_mul(2).max(STALL_NS),
    }
}

/// What happened since the last progress.
#[derive(Clone, Debug)]
pub(crate) struct Pause {
    pub(crate) from_ns: u64,
    pub(crate) window_ns: u64,
    pub(crate) timeouts: u32,
    pub(crate) first_timeout: Option<Timeout>,
    pub(crate) first_probe_ns: Option<u64>,
    pub(crate) fast: u32,
    pub(crate) idle_acks: u32,
    /// Smallest window in the pause, in bytes.
    pub(crate) window_bytes: u32,
    pub(crate) srtt_ns: u64,
    pub(crate) rate_bytes_per_s: u64,
    pub(crate) evidence: Evidence,
}

/// A pause that is over, kept until what follows it is known.
#[derive(Clone, Debug)]
pub(crate) struct Over {
    pub(crate) facts: Facts,
    pub(crate) until_ns: u64,
    pub(crate) dsacks: u32,
}

impl Pause {
    pub(crate) fn new(from_ns: u64, reading: &Reading, rate_bytes_per_s: u64, number: u64) -> Self {
        let mut evidence = Evidence::default();
        evidence.push(number);
        Self {
            from_ns,
            window_ns: reading.limits.window_ns,
            timeouts: 0,
            first_timeout: None,
            first_probe_ns: None,
            fast: 0,
            idle_acks: 0,
            window_bytes: u32::MAX,
            srtt_ns: reading.srtt_ns,
            rate_bytes_per_s,
            evidence,
        }
    }

    pub(crate) fn threshold_ns(&self) -> u64 {
        threshold_ns(self.srtt_ns)
    }

    pub(crate) fn facts(&self, end_ns: u64, at: &Reading, closed: Closed) -> Facts {
        Facts {
            start_ns: self.from_ns,
            end_ns,
            closed,
            timeouts: self.timeouts,
            first_timeout: self.first_timeout,
            first_probe_ns: self.first_probe_ns,
            tail_probe: at.tail_probe,
            fast: self.fast,
            idle_acks: self.idle_acks,
            packets_out: at.packets_out,
            mss_bytes: at.mss_bytes,
            window_bytes: self.window_bytes.min(at.window_bytes),
            window_ns: at.limits.window_ns.saturating_sub(self.window_ns),
            srtt_ns: self.srtt_ns,
            after: After::default(),
            rate_bytes_per_s: self.rate_bytes_per_s,
            evidence: self.evidence.clone(),
        }
    }
}
