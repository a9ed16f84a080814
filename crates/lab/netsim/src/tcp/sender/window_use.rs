// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the congestion window was filled recently.

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
