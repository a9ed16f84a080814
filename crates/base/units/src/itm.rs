// SPDX-License-Identifier: MIT OR Apache-2.0
//! Default values of isochronous traffic management (paper 004), which psp, the router and the
//! simulator use if a configuration sets none (docs/decisions/core.md, "Periods and their
//! budget").

/// Period of every host.
pub const PERIOD_NS: u64 = 10_000_000;

/// Share of a line that reservations may take in each period, per cent.
pub const BUDGET_PCT: u32 = 70;
