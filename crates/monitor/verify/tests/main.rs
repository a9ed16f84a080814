// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where frames belong.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]

mod agrees;
mod backends_lab;
mod causes;
mod cost;
mod matching;
