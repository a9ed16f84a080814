// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report: one self-contained HTML page.

pub mod parts;
pub mod run;
pub mod survey;
