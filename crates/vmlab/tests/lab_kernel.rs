// SPDX-License-Identifier: MIT OR Apache-2.0
//! The qdisc's own tests, `kernel/tests/*.sh`, each in a guest. The kernel must not complain,
//! and every line of their TAP must be `ok`. Each kernel is a test of its own, so that guests
//! run side by side.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]

use crate::common::{LONG, kernel_test};
use scenario::Kernel;
use vmlab::Lab;

fn run(kernel: Kernel, script: &str) {
    kernel_test(&Lab::find().unwrap(), kernel, script, "", LONG * 2);
}

/// Makes a module for each script, with a test for each kernel.
macro_rules! on_every_kernel {
    ($($name:ident: $script:literal;)+) => {$(
        mod $name {
            use super::{Kernel, run};

            #[test]
            fn v6_1() {
                run(Kernel::V6_1, $script);
            }

            #[test]
            fn v6_12() {
                run(Kernel::V6_12, $script);
            }

            #[test]
            fn v7() {
                run(Kernel::V7, $script);
            }
        }
    )+};
}

on_every_kernel! {
    a_user_without_privileges_gets_what_is_stated: "hostile.sh";
    children_that_hold_frames_back: "throttled.sh";
    many_children_that_hold_frames_back: "throttled-many.sh";
    classes_by_the_period: "periods.sh";
    a_wire_that_is_no_clock: "clock.sh";
    dynamic_pacing: "dynamic.sh";
    gap_frames_modes_and_the_link: "gaps.sh";
    traps_of_other_qdiscs: "traps.sh";
    bursts_cut_and_whole: "bursts.sh";
    deadlines_and_ceil: "waits.sh";
    launch_times: "txtime.sh";
    guard: "guard.sh";
    the_queue_of_a_class: "fifo.sh";
    shares_of_a_line_below_mq: "shares.sh";
    the_papers_commands_work_word_for_word: "papers.sh";
    bad_input_is_refused: "bad-input.sh";
}

#[test]
fn changes_under_traffic() {
    run(Kernel::V6_1, "stress.sh");
}
