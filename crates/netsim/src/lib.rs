// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts, links and TCP in simulated time.
//!
//! Sans-IO: nothing here reads a clock, a file or the environment. Every part
//! is told what time it is and answers when it wants to be asked again; the
//! same seed gives the same bytes.

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
