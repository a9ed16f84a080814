// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of `cargo xtask` that have tests of their own.

#![forbid(unsafe_code)]

pub mod bench;
pub mod man;
