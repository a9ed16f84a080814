// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates, times and sizes, and the constants of Ethernet. Every crate takes them from here, so
//! that a quantity is read, rounded and printed in one way only.
//!
//! Three forms of text exist, because three kinds of output have fixed bytes:
//!
//! | module | input | example | used for |
//! |---|---|---|---|
//! | [`display`] | `f64` | `1,000 Mbit/s` | reports, tables, plots |
//! | [`terse`] | integers | `412 ms`, `7.8 Mbit/s` | verdicts, lists, the live screen |
//! | [`parse`], [`tc`] | text | `500mbit` | scenarios, options, lines of `tc` |

#![forbid(unsafe_code)]

pub mod clock;
pub mod display;
pub mod ethernet;
pub mod itm;
pub mod nearest;
pub mod parse;
pub mod printable;
pub mod queue_limit;
pub mod rounding;
pub mod tc;
pub mod terse;
pub mod time;
