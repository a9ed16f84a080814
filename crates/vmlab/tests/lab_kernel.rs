// SPDX-License-Identifier: MIT OR Apache-2.0
//! The qdisc's own tests, `kernel/tests/*.sh`, each in a guest: no kernel
//! complaint, and every line of their TAP is `ok`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]

mod common;

use common::{LONG, kernel_test};
use scenario::Kernel;
use vmlab::Lab;

fn run(kernel: Kernel, name: &str, variables: &str) {
    kernel_test(&Lab::find().unwrap(), kernel, name, variables, LONG * 2);
}

#[test]
fn bad_input_is_refused() {
    for kernel in Kernel::ALL {
        run(kernel, "bad-input.sh", "");
    }
}

#[test]
fn the_papers_commands_work_word_for_word() {
    for kernel in Kernel::ALL {
        run(kernel, "papers.sh", "");
    }
}

#[test]
fn traps_of_other_qdiscs() {
    for kernel in Kernel::ALL {
        run(kernel, "traps.sh", "");
    }
}

#[test]
fn changes_under_traffic() {
    run(Kernel::V6_1, "stress.sh", "");
}

#[test]
fn gap_frames_modes_and_the_link() {
    for kernel in Kernel::ALL {
        run(kernel, "gaps.sh", "");
    }
}

#[test]
fn a_wire_that_is_no_clock() {
    for kernel in Kernel::ALL {
        run(kernel, "clock.sh", "");
    }
}

#[test]
fn trains_cut_and_whole() {
    for kernel in Kernel::ALL {
        run(kernel, "trains.sh", "");
    }
}

#[test]
fn deadlines_and_ceil() {
    for kernel in Kernel::ALL {
        run(kernel, "waits.sh", "");
    }
}

#[test]
fn guard() {
    for kernel in Kernel::ALL {
        run(kernel, "guard.sh", "");
    }
}

#[test]
fn shares_of_a_line_below_mq() {
    for kernel in Kernel::ALL {
        run(kernel, "shares.sh", "");
    }
}

#[test]
fn dynamic_pacing() {
    for kernel in Kernel::ALL {
        run(kernel, "dynamic.sh", "");
    }
}

#[test]
fn a_user_without_privileges_gets_what_is_stated() {
    for kernel in Kernel::ALL {
        run(kernel, "hostile.sh", "");
    }
}

#[test]
fn classes_by_the_period() {
    for kernel in Kernel::ALL {
        run(kernel, "periods.sh", "");
    }
}

#[test]
fn children_that_hold_frames_back() {
    for kernel in Kernel::ALL {
        run(kernel, "throttled.sh", "");
    }
}

#[test]
fn many_children_that_hold_frames_back() {
    for kernel in Kernel::ALL {
        run(kernel, "throttled-many.sh", "");
    }
}
