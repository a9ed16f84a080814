// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random netlink operations while frames are under way: the kernel does not complain, nothing
//! is left behind, and every frame is counted.

use scenario::Kernel;
use vmlab::Lab;

use crate::common::{LONG, random_operations};

#[test]
fn random_operations_leave_nothing_behind() {
    let operations = if testkit::everything() {
        100_000
    } else {
        30_000
    };
    random_operations(&Lab::find().unwrap(), Kernel::V6_1, 1, operations, LONG * 3);
}
