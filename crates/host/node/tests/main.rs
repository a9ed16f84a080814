// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of this crate, in one program: a module for each file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail that way"
)]

mod agent;
mod api_server;
mod claim;
#[path = "../../host-apply/tests/guest.rs"]
mod guest;
mod hostile;
mod instances;
mod kubelet;
mod man;
mod manifest;
mod node_lab;
mod prepare;
mod quantity;
mod runtime;
mod runtime_lab;
mod slice;
