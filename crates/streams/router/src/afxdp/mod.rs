// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receives and sends frames of a device with AF_XDP: a safe binding over the crate `xdp`, with the
//! program that decides which frames the socket gets (docs/decisions/isochronous.md, "AF_XDP in the
//! router").
//!
//! ```text
//! device A -> [received] -> Chunk -> [to send] -> device B
//!    ^                        |                      |
//!    +--[to be filled]-- Pool +<-------- [sent] -----+
//! ```
//!
//! `[...]` is a ring that is shared with the kernel. One [`Pool`] of chunks serves
//! all devices: a frame leaves from the chunk that it was received into.

mod error;
mod pool;
mod program;
mod socket;

pub use error::Error;
pub use pool::{BEFORE_BYTES, CHUNK_BYTES, Chunk, Pool};
pub use socket::XdpSocket;
