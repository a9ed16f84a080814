// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report: one page that needs nothing but itself.

pub mod parts;
pub mod run;
pub mod stalls;
pub mod survey;
