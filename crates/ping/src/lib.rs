// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes that are sent on a schedule and come back: `pspacer ping` and
//! `pspacer reflect`, without their sockets.
//!
//! Pure: times and bytes are given.

#![forbid(unsafe_code)]

pub mod delays;
pub mod packet;
pub mod reflector;
pub mod schedule;
pub mod statistics;
