// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the congestion window was filled recently.

use units::clock::Time;

/// How far the congestion window was filled recently.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Whether it was full.
    pub(super) limited: bool,
    /// Largest number of packets out.
    pub(super) most_out: u32,
    /// The record expires when this sequence number is acknowledged.
    pub(super) until: u64,
}

/// How far the congestion window was filled since it was last full or changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Validation {
    /// Largest number of packets out.
    pub(super) used: u32,
    /// When the window was last full, or was changed.
    pub(super) since: Time,
    /// Whether new data was sent since the last check.
    pub(super) sent_new: bool,
}
