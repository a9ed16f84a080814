// SPDX-License-Identifier: MIT OR Apache-2.0
//! The qdisc's own tests, `kernel/tests/*.sh`, each in a guest. The kernel must not complain,
//! and every line of their TAP must be `ok`. Each kernel is a test of its own, so that guests
//! run side by side.

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
    children_that_hold_frames_back: "throttled.sh";
    classes_by_the_period: "periods.sh";
    a_wire_that_is_no_clock: "clock.sh";
    dynamic_pacing: "dynamic.sh";
    traps_of_other_qdiscs: "traps.sh";
    deadlines_and_ceil: "waits.sh";
    guard: "guard.sh";
}

/// What a user without privileges can do, for a third of the time unless everything is to run.
mod a_user_without_privileges_gets_what_is_stated {
    use crate::common::{LONG, kernel_test};
    use scenario::Kernel;
    use vmlab::Lab;

    fn run(kernel: Kernel) {
        let seconds = match testkit::everything() {
            true => "HOSTILE_SECONDS=60",
            false => "HOSTILE_SECONDS=20",
        };
        kernel_test(
            &Lab::find().unwrap(),
            kernel,
            "hostile.sh",
            seconds,
            LONG * 2,
        );
    }

    #[test]
    fn v6_1() {
        run(Kernel::V6_1);
    }

    #[test]
    fn v6_12() {
        run(Kernel::V6_12);
    }

    #[test]
    fn v7() {
        run(Kernel::V7);
    }
}

/// Tests that take seconds, in one guest. The last one sets the clocks.
mod light {
    use crate::common::{LONG, kernel_tests};
    use scenario::Kernel;
    use vmlab::Lab;

    const SCRIPTS: &[&str] = &[
        "bad-input.sh",
        "papers.sh",
        "gaps.sh",
        "bursts.sh",
        "fifo.sh",
        "shares.sh",
        "throttled-many.sh",
        "txtime.sh",
    ];

    fn run(kernel: Kernel) {
        kernel_tests(&Lab::find().unwrap(), kernel, SCRIPTS, LONG * 2);
    }

    #[test]
    fn v6_1() {
        run(Kernel::V6_1);
    }

    #[test]
    fn v6_12() {
        run(Kernel::V6_12);
    }

    #[test]
    fn v7() {
        run(Kernel::V7);
    }
}

#[test]
fn changes_under_traffic() {
    run(Kernel::V6_1, "stress.sh");
}
