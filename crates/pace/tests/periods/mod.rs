// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes with a reservation in each period (paper 004).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod host;
mod refusals;
mod reservations;
mod timing;
