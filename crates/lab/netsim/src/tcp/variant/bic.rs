// SPDX-License-Identifier: MIT OR Apache-2.0
//! The differences between the kernels' BIC.

/// BIC as one kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BicParameters {
    /// Largest growth of the window in a round trip, in segments.
    pub max_increment: u32,
    /// Round trips spent close to the last maximum window.
    pub smooth_part: u32,
    /// Slow start threshold that BIC sets at the start, in segments.
    pub initial_ssthresh: Option<u32>,
    /// Whether BIC is a module of its own: it estimates delayed acknowledgements, grows faster
    /// before the first loss, and forgets everything after a timeout. Halving the rate then
    /// stops at the threshold, and an undo goes back to the last maximum.
    pub is_module: bool,
    /// Whether the window grows faster while the delay is low.
    pub low_utilization: bool,
}

/// BIC in Linux 2.6.11: part of TCP itself.
pub(super) const PART_OF_TCP: BicParameters = BicParameters {
    max_increment: 32,
    smooth_part: 11,
    initial_ssthresh: None,
    is_module: false,
    low_utilization: false,
};

/// BIC in Linux 2.6.14.
pub(super) const FIRST_MODULE: BicParameters = BicParameters {
    max_increment: 32,
    smooth_part: 20,
    initial_ssthresh: Some(100),
    is_module: true,
    low_utilization: true,
};

/// BIC in Linux 2.6.17.
pub(super) const SMALLER_STEPS: BicParameters = BicParameters {
    max_increment: 16,
    low_utilization: false,
    ..FIRST_MODULE
};

/// BIC in Linux 2.6.22.
pub(super) const NO_THRESHOLD: BicParameters = BicParameters {
    initial_ssthresh: None,
    ..SMALLER_STEPS
};
