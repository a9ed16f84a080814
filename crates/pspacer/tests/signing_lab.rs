// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels that load only signed modules, and what `pspacer doctor` says on them.

use crate::common::guest;
use scenario::Kernel;
use testkit::has;
use vmlab::Lab;

fn unsigned_modules_are_refused(kernel: Kernel) {
    let files = [
        "crates/pspacer/tests/signing/enforced.sh",
        "kernel/tests/lib.sh",
    ];
    let mut lab = Lab::find().unwrap();
    lab.signatures = true;
    let output = guest::output_in(&lab, kernel, "signing", &["sch_psp", "dummy"], &files);
    has(&output, ["\n1.."]);
}

#[test]
fn unsigned_modules_are_refused_on_6_1() {
    unsigned_modules_are_refused(Kernel::V6_1);
}

#[test]
fn unsigned_modules_are_refused_on_6_12() {
    unsigned_modules_are_refused(Kernel::V6_12);
}
