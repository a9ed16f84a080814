// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of this crate, in one program: a module for each file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail that way"
)]

mod build;
mod common;
mod cqf;
mod fq_codel;
mod head_drop;
mod itm;
mod links;
mod properties;
mod queues;
mod segments;
mod standstill;
mod tcp_pipe;
mod tcp_pipe_conserves;
mod tcp_script;
mod tcp_scripts;
mod tcp_steady;
mod wrong_kernel;
