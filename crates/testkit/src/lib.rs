// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code that the tests of several crates share. Other crates depend on it for their tests
//! only.

pub mod guest;
mod properties;

pub use properties::{cases, properties};
