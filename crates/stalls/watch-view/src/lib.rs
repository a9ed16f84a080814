// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows running senders and their stalls to people: a full screen ([`screen`]), or lines
//! ([`lines`]).

#![forbid(unsafe_code)]

pub mod lines;
pub mod screen;
