// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the conformance cases of `tests/tdc`.

use scenario::Kernel;
use vmlab::Lab;

use crate::common::{LONG, conformance};

fn pass(kernel: Kernel) {
    conformance(&Lab::find().unwrap(), kernel, LONG * 2);
}

#[test]
fn all_cases_on_6_1() {
    pass(Kernel::V6_1);
}

#[test]
fn all_cases_on_6_12() {
    pass(Kernel::V6_12);
}

#[test]
fn all_cases_on_7() {
    pass(Kernel::V7);
}
