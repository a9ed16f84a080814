// SPDX-License-Identifier: MIT OR Apache-2.0
//! Headings of option groups in the help.

/// Options that choose what is written, and in which form.
pub const OUTPUT: &str = "Output";
/// Options that select a part of the input.
pub const FILTERS: &str = "Filters";
/// Options that control how the command runs.
pub const RUN: &str = "Run";
