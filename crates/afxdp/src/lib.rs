// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of a device by AF_XDP: a safe binding over the crate `xdp`, with the
//! program that decides which frames come this way (docs/decisions/0164).
//!
//! ```text
//! device A -> [received] -> Chunk -> [to send] -> device B
//!    ^                        |                      |
//!    +--[to be filled]-- Pool +<-------- [sent] -----+
//! ```
//!
//! `[...]` is a ring that is shared with the kernel. One [`Pool`] of chunks serves
//! all devices: a frame leaves from the chunk that it was received into.

mod pool;
mod program;
mod socket;

pub use pool::{BEFORE_BYTES, CHUNK_BYTES, Chunk, Pool};
pub use socket::XdpSocket;

/// Why a device is not used by AF_XDP.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// clang was missing at the build.
    #[error("this pspacer was built without its BPF program, because clang was missing")]
    NotBuilt,
    /// One socket serves one receive queue.
    #[error(
        "it has {0} receive queues, expected 1: ethtool -L DEVICE combined 1, or rx 1, sets one"
    )]
    Queues(u32),
    /// The kernel or the driver.
    #[error("{step}: {detail}")]
    Refused {
        /// What was asked for.
        step: &'static str,
        /// What the system says.
        detail: String,
    },
}

/// The error of a library with what is behind it: the kernel's own word is at
/// its root.
fn refused(step: &'static str, error: &(dyn std::error::Error + 'static)) -> Error {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    Error::Refused {
        step,
        detail: root.to_string(),
    }
}
