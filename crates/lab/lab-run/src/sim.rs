// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs and sweeps scenarios on the simulator.

mod isochronous;
pub mod merge;
mod queue_drops;
mod record_cell;
mod repeat;
pub mod run;
pub mod senders;
pub mod shard;
pub mod support;
pub mod sweep;
mod sweep_table;
mod transfers;
