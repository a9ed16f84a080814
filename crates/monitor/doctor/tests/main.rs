// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules, and what they are about.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]

mod backends;
mod facts;
mod host;
mod row;
mod rules;
mod rules_of_devices;
mod rules_of_host;
mod several;
