// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the tests of psp on the debug kernel (KASAN, kmemleak, lockdep, PROVE_RCU, debug
//! objects), and those that need its fault injection. Only `make test-debug` runs them, because
//! they take hours.

use std::time::Duration;

use scenario::Kernel;
use vmlab::Lab;

use crate::common::{conformance, kernel_test, no_memory, random_operations};

/// Limit of processor time; the checkers make the guest some ten times slower.
const TIMEOUT: Duration = Duration::from_secs(3600);

fn lab() -> Lab {
    let mut lab = Lab::find().unwrap();
    lab.debug_kernel = true;
    lab
}

fn run(name: &str, variables: &str) {
    kernel_test(&lab(), Kernel::V6_1, name, variables, TIMEOUT);
}

#[test]
#[ignore = "make test-debug"]
fn conformance_cases() {
    conformance(&lab(), Kernel::V6_1, TIMEOUT);
}

#[test]
#[ignore = "make test-debug"]
fn random_operations_by_the_hundred_thousand() {
    random_operations(&lab(), Kernel::V6_1, 2, 100_000, TIMEOUT);
}

#[test]
#[ignore = "make test-debug"]
fn bad_input() {
    run("bad-input.sh", "");
}

#[test]
#[ignore = "make test-debug"]
fn traps_of_other_qdiscs() {
    run("traps.sh", "");
}

#[test]
#[ignore = "make test-debug"]
fn changes_under_traffic() {
    run("stress.sh", "ROUNDS=200");
}

#[test]
#[ignore = "make test-debug"]
fn groups() {
    run("groups.sh", "SLOW=5");
}

#[test]
#[ignore = "make test-debug"]
fn dynamic_pacing() {
    run("dynamic.sh", "SLOW=5");
}

#[test]
#[ignore = "make test-debug"]
fn a_user_without_privileges() {
    run("hostile.sh", "SLOW=5 HOSTILE_SECONDS=15");
}

#[test]
#[ignore = "make test-debug"]
fn classes_by_the_period() {
    run("periods.sh", "SLOW=5");
}

#[test]
#[ignore = "make test-debug"]
fn every_allocation_fails_once() {
    no_memory(&lab(), TIMEOUT);
}
