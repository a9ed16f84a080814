// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of several crates share. Crates depend on it for their tests
//! only.

mod properties;

pub use properties::{cases, properties};
