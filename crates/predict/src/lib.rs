// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delay over cascaded routers that forward once a period (paper 004).
//!
//! A packet passes *stages*: routers, and on a round trip the host that
//! reflects it. At each it misses its period with a probability β and then
//! leaves one period later. [`distribution`] says how many periods late packets
//! arrive, [`classes`] and [`estimate`] find β from measured delays, [`fit`]
//! says whether the model agrees with them, and [`bounds`] gives what network
//! calculus guarantees for the same chain. [`measured`] reads measured delays.
//!
//! Pure: no clock, no files.

#![forbid(unsafe_code)]

pub mod answer;
pub mod bounds;
pub mod classes;
pub mod distribution;
mod error;
pub mod estimate;
pub mod fit;
pub mod measured;

pub use error::Error;
