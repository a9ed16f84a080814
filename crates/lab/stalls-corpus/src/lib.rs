// SPDX-License-Identifier: MIT OR Apache-2.0
//! The corpus `tests/stalls-corpus`: small synthetic TCP captures, one for each cause of a stalled
//! transfer and for what looks like it, each with its truth.
//!
//! The captures follow from TCP's documents and from how systems behave, not from what any
//! analyser does. [`cases::all`] makes them; the same bytes come out each time.

#![forbid(unsafe_code)]

pub mod case;
pub mod cases;
mod ends;
pub mod folder;
pub mod pcapng;
pub mod record;
pub mod script;
pub mod sim;

pub use case::{Case, Stall, Towards};
