// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stops whose cause a scenario makes, against what the analysis says of them.

pub mod judge;
pub mod matrix;
