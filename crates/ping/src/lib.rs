// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes that are sent on a schedule and come back: `pspacer ping` and
//! `pspacer reflect`.
//!
//! Pure, but for [`run`] and [`reflect`]: times and bytes are given.

#![forbid(unsafe_code)]

pub mod delays;
pub mod packet;
pub mod reflect;
pub mod reflector;
pub mod run;
pub mod schedule;
pub mod statistics;
pub mod text;
