// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares stalls whose cause a scenario makes with the analysis of their captures.

pub mod judge;
pub mod matrix;
