// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes with a reservation in each period (paper 004).

mod host;
mod refusals;
mod reservations;
mod timing;
