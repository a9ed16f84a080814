// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the conformance cases of `tests/tdc`. `make test` runs all of them on one kernel, and those
//! with odd and even places in their order on the two others.

use scenario::Kernel;
use vmlab::Lab;

use crate::common::{LONG, conformance};

fn pass(kernel: Kernel, is_wanted: fn(usize) -> bool) {
    conformance(&Lab::find().unwrap(), kernel, LONG * 2, is_wanted);
}

fn all(_: usize) -> bool {
    true
}

fn odd(place: usize) -> bool {
    place % 2 == 1
}

fn even(place: usize) -> bool {
    place % 2 == 0
}

/// Makes a test for each kernel.
macro_rules! on_every_kernel {
    ($($name:ident: $kernel:ident, $is_wanted:ident;)+) => {$(
        #[test]
        fn $name() {
            pass(Kernel::$kernel, $is_wanted);
        }
    )+};
}

on_every_kernel! {
    all_cases_on_6_1: V6_1, all;
    all_cases_on_6_12: V6_12, all;
    all_cases_on_7: V7, all;
    odd_cases_on_6_1: V6_1, odd;
    odd_cases_on_6_12: V6_12, odd;
    odd_cases_on_7: V7, odd;
    even_cases_on_6_1: V6_1, even;
    even_cases_on_6_12: V6_12, even;
    even_cases_on_7: V7, even;
}
