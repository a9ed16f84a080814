// SPDX-License-Identifier: MIT OR Apache-2.0
//! The witness: whether the frames that leave a device were counted by the classes that the
//! host's file gives them (docs/use/verify.md).
//!
//! It shares no code with what it measures: [`frame`] reads headers and [`Matcher`] applies rules
//! without `bpf/packet.h` and `bpf/match.h`.

#![forbid(unsafe_code)]

mod fragments;
pub mod frame;
pub mod live;
mod matcher;
pub mod report;
pub mod tally;
pub mod tap;

pub use frame::Frame;
pub use matcher::{Beside, Matcher, Verdict};
