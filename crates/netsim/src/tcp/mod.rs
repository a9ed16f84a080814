// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP as state machines: told of segments and of time, asked for segments and
//! for when to be asked again.

mod segment;

pub use segment::{SackBlock, Segment};
