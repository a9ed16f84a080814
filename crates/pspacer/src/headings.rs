// SPDX-License-Identifier: MIT OR Apache-2.0
//! Headings of options in the help.

/// What is written, and in which form.
pub const OUTPUT: &str = "Output";
/// What of the input is meant.
pub const FILTERS: &str = "Filters";
/// How it is run.
pub const RUN: &str = "Run";
