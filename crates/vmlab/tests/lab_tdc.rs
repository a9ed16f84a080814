// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the conformance cases of `tests/tdc` on every kernel.

#![allow(clippy::unwrap_used, reason = "tests fail that way")]

use crate::common::{LONG, conformance};
use scenario::Kernel;
use vmlab::Lab;

fn cases_pass(kernel: Kernel) {
    conformance(&Lab::find().unwrap(), kernel, LONG * 2);
}

#[test]
fn the_cases_of_tests_tdc_on_6_1() {
    cases_pass(Kernel::V6_1);
}

#[test]
fn the_cases_of_tests_tdc_on_6_12() {
    cases_pass(Kernel::V6_12);
}

#[test]
fn the_cases_of_tests_tdc_on_7() {
    cases_pass(Kernel::V7);
}
