// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of this crate, in one program: a module for each file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail that way"
)]

mod apply_cost_lab;
mod backends_lab;
mod changes_lab;
mod commands;
mod edt_bpf_lab;
mod edt_bursts_lab;
mod edt_latency_lab;
mod edt_rates_lab;
mod extremes;
mod extremes_lab;
mod guest;
mod reach_lab;
mod record;
mod subscribers_lab;
