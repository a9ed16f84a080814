// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code that the tests of several crates share. Other crates depend on it for their tests
//! only.

mod corpus;
mod folders;
pub mod guest;
mod kernels;
pub mod numbers;
mod processes;
mod properties;
mod random;
mod texts;

pub use corpus::corpus;
pub use folders::{crate_folder, output_folder, root};
pub use processes::{Running, until};
pub use properties::{cases, properties};
pub use random::Random;
pub use texts::{has, has_none};

/// Returns whether all there is to test shall be tested, as `make test-all` asks: more cases, longer
/// attacks.
pub fn everything() -> bool {
    std::env::var_os("PSPACER_TESTS").is_some_and(|tests| tests == "all")
}

/// Says to a script in a guest which part of it is to run: `PART` of `kernel/tests/lib.sh`.
pub fn part() -> &'static str {
    if everything() { "" } else { "PART=some" }
}
