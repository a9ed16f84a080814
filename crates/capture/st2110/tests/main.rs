// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of this crate, in one program: a module for each file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail that way"
)]

mod any_sdp;
mod any_stream;
mod audio;
mod common;
mod descriptions;
mod legs;
mod look_alikes;
mod made;
mod packets;
mod real;
mod reference;
mod senders;
mod stream_corpus;
