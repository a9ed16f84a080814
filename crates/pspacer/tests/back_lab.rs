// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer apply` and `restore` in a guest where a device goes amid a change, where nobody reads what they
//! print, and where the program is replaced.

use scenario::Kernel;

use crate::common::guest;
use testkit::has;

#[test]
fn what_nobody_confirms_or_reads_ends_whole() {
    let files = [
        "crates/pspacer/tests/back/back.sh",
        "kernel/tests/lib.sh",
        "crates/pspacer/tests/common/installed.sh",
    ];
    let output = guest::output(
        Kernel::V6_12,
        "back",
        &["sch_psp", "dummy", "cls_u32"],
        &files,
    );
    has(&output, ["\n1.."]);
}
