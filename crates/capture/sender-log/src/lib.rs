// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps a TCP sender's variables over time. The simulator, the laboratory and the live tracer
//! write the same two tables (`docs/use/formats.md`):
//!
//! - [`sample`]: `flow-NAME.tcp`, the state in `TCP_INFO` at equal intervals;
//! - [`epool`]: `flow-NAME.epool.csv`, the [`variables`] at each acknowledgement.

#![forbid(unsafe_code)]

pub mod epool;
pub mod sample;
pub mod variables;
