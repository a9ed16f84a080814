// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is counted while watching.

use crate::Cost;
use crate::packets::PacketCounts;

/// The counters of the BPF program and of saved packets, read when watching ends.
#[derive(Debug, Default)]
pub struct Counted {
    /// Records that the ring buffer had no room for, by CPU.
    pub lost: Vec<u64>,
    /// Sockets that could not be followed.
    pub lost_sockets: u64,
    /// Costs of the programs, counted with `--cost`.
    pub costs: Vec<Cost>,
    /// With `--packets`: what was saved.
    pub packets: Option<PacketCounts>,
}
