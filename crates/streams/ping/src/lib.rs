// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends probes on a schedule and measures their answers: `pspacer ping` and `pspacer reflect`.
//!
//! Only [`run`] and [`reflect`] use sockets and clocks; the other modules get times and bytes as
//! arguments.

#![forbid(unsafe_code)]

pub mod delays;
pub mod packet;
pub mod reflect;
pub mod reflector;
pub mod run;
pub mod schedule;
pub mod statistics;
pub mod text;
