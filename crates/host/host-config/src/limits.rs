// SPDX-License-Identifier: MIT OR Apache-2.0
//! Least and largest values that can be paced, for all that reads some: the core's, in
//! `core/include/pace/pace.h`. What depends on line and frames, `backend::check` asks the core.

/// Slowest line, and least total of a dynamic class or ceil of a group.
pub const LINE_BPS_MIN: u64 = 8_000;
/// Fastest line. No class is faster.
pub const LINE_BPS_MAX: u64 = 1_000_000_000_000;
/// A rate that every backend takes on any line, however its bytes are counted: the longest burst,
/// 73,728 bytes and 24 for each of 49 frames, takes less than 240 s.
pub const RATE_BPS_MIN: u64 = 2_500;
/// Most bytes of a period: one second of the fastest line.
pub const PERIOD_BYTES_MAX: u64 = LINE_BPS_MAX / 8;
