// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of this crate, in one program: a module for each file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail that way"
)]

mod budget;
mod call;
mod config;
mod kubernetes;
mod names;
mod pods_lab;
mod real_lab;
mod refusals;
