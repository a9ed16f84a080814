// SPDX-License-Identifier: MIT OR Apache-2.0
//! What only developers run: the parts that have tests of their own.

#![forbid(unsafe_code)]

pub mod bench;
pub mod man;
