// SPDX-License-Identifier: MIT OR Apache-2.0
//! The conformance cases of `tests/tdc` on every kernel.

#![allow(clippy::unwrap_used, reason = "tests fail that way")]

mod common;

use common::{LONG, conformance};
use scenario::Kernel;
use vmlab::Lab;

#[test]
fn the_cases_of_tests_tdc() {
    for kernel in Kernel::ALL {
        conformance(&Lab::find().unwrap(), kernel, LONG * 2);
    }
}
