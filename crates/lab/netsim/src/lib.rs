// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulates hosts, links, queueing disciplines and TCP in simulated time.
//!
//! The crate does no I/O: nothing here reads a clock, a file or the environment.
//! The caller passes the current time to each part, and each part answers with the
//! time of its next event. The same seed gives the same results, byte for byte.

pub mod build;
pub mod cpu;
pub mod device;
mod event_queue;
pub mod filter;
pub mod itm;
pub mod network;
pub mod observe;
pub mod packet;
pub mod port;
pub mod qdisc;
pub mod rate_arithmetic;
pub mod record;
pub mod rng;
pub mod run;
pub mod segment;
pub mod source;
pub mod stops;
pub mod stream;
mod synth_frame;
pub mod tcp;
