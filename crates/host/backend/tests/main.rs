// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of this crate, in one program: a module for each file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail that way"
)]

mod clock;
mod core_bpf_lab;
mod core_calls;
mod core_for_bpf;
mod core_module;
#[path = "../../host-apply/tests/guest.rs"]
mod guest;
mod qdisc_bpf_lab;
