// SPDX-License-Identifier: MIT OR Apache-2.0
//! Isochronous traffic management (paper 004): the values that psp, the router
//! and the simulator take where a configuration names none
//! (docs/decisions/core.md, "Periods and their budget").

/// The period of every host.
pub const PERIOD_NS: u64 = 10_000_000;

/// The part of a line that reservations may take in each period, per cent.
pub const BUDGET_PCT: u32 = 70;
