// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the window was filled lately.

/// How far the window was filled lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// It was full.
    pub(super) limited: bool,
    /// Most packets out.
    pub(super) most_out: u32,
    /// Acknowledged up to here, all this is of the past.
    pub(super) until: u64,
}
