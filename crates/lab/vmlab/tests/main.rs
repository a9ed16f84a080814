// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of this crate, in one program: a module for each file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail that way"
)]

mod common;
mod extack_texts;
mod lab_cable;
mod lab_debug;
mod lab_failures;
mod lab_fuzz;
mod lab_impair;
mod lab_kernel;
mod lab_keys;
mod lab_machines;
mod lab_nics;
mod lab_profile;
mod lab_run;
mod lab_share;
mod lab_tdc;
mod lab_upstream;
