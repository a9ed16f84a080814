// SPDX-License-Identifier: MIT OR Apache-2.0
//! The qdisc's own tests, `kernel/tests/*.sh`, each in a guest. The kernel must not complain,
//! and every line of their TAP must be `ok`. Each kernel is a test of its own, so that guests
//! run side by side.

use scenario::Kernel;
use vmlab::{Lab, MACHINE_SCRIPTS};

use crate::common::{LONG, kernel_test, kernel_tests};

/// Runs the part of a script that says most, unless everything is to run.
fn run(kernel: Kernel, script: &str) {
    kernel_test(
        &Lab::find().unwrap(),
        kernel,
        script,
        testkit::part(),
        LONG * 2,
    );
}

/// Tests that take seconds, in one guest: those that other machines run, too.
fn several(kernel: Kernel) {
    kernel_tests(&Lab::find().unwrap(), kernel, MACHINE_SCRIPTS, LONG * 2);
}

testkit::on_every_kernel! {
    a_user_without_privileges_gets_what_is_stated: |kernel| run(kernel, "hostile.sh");
    children_that_hold_frames_back: |kernel| run(kernel, "throttled.sh");
    classes_by_the_period: |kernel| run(kernel, "periods.sh");
    a_wire_that_is_no_clock: |kernel| run(kernel, "clock.sh");
    a_host_slower_than_the_line: |kernel| run(kernel, "fast.sh");
    a_wire_that_drops_gap_frames: |kernel| run(kernel, "wire.sh");
    dynamic_pacing: |kernel| run(kernel, "dynamic.sh");
    groups: |kernel| run(kernel, "groups.sh");
    traps_of_other_qdiscs: |kernel| run(kernel, "traps.sh");
    deadlines_and_ceil: |kernel| run(kernel, "waits.sh");
    guard: |kernel| run(kernel, "guard.sh");
    classes_of_a_device: |kernel| run(kernel, "queues.sh");
    launch_times_beside_others: |kernel| run(kernel, "launch-beside.sh");
    light: several;
}

#[test]
fn changes_under_traffic() {
    run(Kernel::V6_1, "stress.sh");
}
