// SPDX-License-Identifier: MIT OR Apache-2.0
//! A test on each of the laboratory's kernels.

/// Makes a module for each function of a kernel, with a test for each kernel. Of the three, `make
/// test` runs one.
#[macro_export]
macro_rules! on_every_kernel {
    ($($name:ident: $run:expr;)+) => {$(
        mod $name {
            #[allow(unused_imports, reason = "what the function names")]
            use super::*;

            fn on(kernel: scenario::Kernel) {
                let run: fn(scenario::Kernel) = $run;
                run(kernel);
            }

            #[test]
            fn v6_1() {
                on(scenario::Kernel::V6_1);
            }

            #[test]
            fn v6_12() {
                on(scenario::Kernel::V6_12);
            }

            #[test]
            fn v7() {
                on(scenario::Kernel::V7);
            }
        }
    )+};
}
