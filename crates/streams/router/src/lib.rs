// SPDX-License-Identifier: MIT OR Apache-2.0
//! A forwarding router in user space with the structure of paper 004, 2.2.1:
//!
//! ```text
//! device -> receive thread -+-> [best effort] -> IP thread (by event) ------+
//!                           |                                               v
//!                           +-> [streams] -> RT-IP thread (every period) -> [port]
//!                                                                           |
//! device <---------------------- ITM thread (every period, a slot later) <--+
//! ```
//!
//! `[...]` is an event box; a packet's buffer is handed from one to the next and never copied.
//! `config`, `ethernet`, `fragments`, `icmp`, `table`, `itm` and `ebox` use neither devices nor
//! clocks; `run` has the threads.

#![deny(unsafe_code)]

mod afxdp;
pub mod config;
mod counters;
pub mod ebox;
pub mod ethernet;
mod fragments;
mod icmp;
pub mod itm;
mod run;
pub mod table;
pub mod text;

pub use counters::{Counts, Report};
pub use run::{RunError, run};
