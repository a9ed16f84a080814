// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the frames that crossed a wire.
//!
//! From a series of [`capture::record::Record`]s it computes a flow's metrics as paper 000
//! defines them ([`flow`]), bandwidth over time ([`bandwidth`]) and every figure that a result
//! states about one cell ([`analyse`]).
//!
//! This crate opens no file, reads no clock and depends on no engine. Times are integers in
//! picoseconds. Rates, queues and gaps are computed in integers and rounded once, to a
//! thousandth of their unit, when they are returned.

#![forbid(unsafe_code)]

pub mod analyse;
pub mod bandwidth;
pub mod burstiness;
pub mod curves;
pub mod flow;
pub mod gaps;
mod launch;
mod measure;
pub mod rates;
pub mod survey;
pub mod tcp;
pub mod waits;
