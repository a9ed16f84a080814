// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of this crate, in one program: a module for each file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail that way"
)]

mod by_cause;
mod causes;
mod connections;
mod cost;
mod encapsulations;
mod explanations;
mod follow;
mod foreign;
mod kinds;
mod late;
mod limits;
mod proof;
mod properties;
mod qlog;
mod qlog_stacks;
mod script;
mod sender_clock;
mod two_ends;
mod waits;
mod windows;
