// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel's side counted.

use crate::Cost;

/// What the kernel's side counted, at the end.
#[derive(Debug, Default)]
pub struct Counted {
    /// Records that found no room, by CPU.
    pub lost: Vec<u64>,
    /// Sockets that could not be followed.
    pub lost_sockets: u64,
    /// Of `--cost`.
    pub costs: Vec<Cost>,
}
