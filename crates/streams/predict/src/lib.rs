// SPDX-License-Identifier: MIT OR Apache-2.0
//! Predicts the delay over cascaded routers that forward once a period (paper 004).
//!
//! A packet passes *stages*: routers, and on a round trip the host that reflects it. At each
//! stage it misses its period with a probability β and then leaves one period later.
//! [`distribution`] computes how many periods late packets arrive, [`classes`] and
//! [`estimate`] estimate β from measured delays, [`fit`] tests whether the model agrees with
//! them, and [`bounds`] computes the guarantees of network calculus for the same chain.
//! [`service`] completes what a user gives of stream and routers, and [`measured`] parses measured
//! delays.
//!
//! This crate reads no clock and opens no file.

#![forbid(unsafe_code)]

pub mod answer;
pub mod bounds;
pub mod classes;
pub mod distribution;
mod error;
pub mod estimate;
pub mod fit;
pub mod measured;
pub mod report;
pub mod service;

pub use error::Error;
