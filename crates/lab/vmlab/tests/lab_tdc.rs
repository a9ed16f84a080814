// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the conformance cases of `tests/tdc`.

use scenario::Kernel;
use vmlab::Lab;

use crate::common::{LONG, conformance};

fn pass(kernel: Kernel) {
    conformance(&Lab::find().unwrap(), kernel, LONG * 2);
}

testkit::on_every_kernel! {
    all_cases: pass;
}
