// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers made by chance.

pub mod stalls;
pub mod wire;
