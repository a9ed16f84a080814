// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP endpoints of different behaviour on a simulated path, and the truth about every pause of
//! their connections. Only tests and `cargo xtask calibrate` use this crate.

#![forbid(unsafe_code)]

pub mod acceptable;
pub mod chance;
pub mod ground_truth;
