// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures what a wire saw.
//!
//! From a series of [`capture::record::Record`]s come a flow's metrics ([`flow`]) as
//! paper 000 defines them, bandwidth over time ([`bandwidth`]) and everything
//! a result says about one cell ([`analyse`]).
//!
//! Nothing here opens a file, asks the time or depends on an engine. Times are
//! integers in picoseconds. Rates, queues and gaps are computed in integers
//! and rounded once, to a thousandth of their unit, when they leave.

#![forbid(unsafe_code)]

pub mod analyse;
pub mod bandwidth;
pub mod burstiness;
pub mod curves;
pub mod flow;
pub mod gaps;
mod measure;
pub mod rates;
pub mod survey;
pub mod tcp;
pub mod waits;
