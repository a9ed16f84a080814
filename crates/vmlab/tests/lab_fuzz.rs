// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random netlink operations with frames on their way: no complaint of the
//! kernel, nothing left behind, every frame accounted for.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]

mod common;

use common::{LONG, random_operations};
use scenario::Kernel;
use vmlab::Lab;

#[test]
fn a_hundred_thousand_random_operations() {
    random_operations(&Lab::find().unwrap(), Kernel::V6_1, 1, 100_000, LONG * 3);
}
