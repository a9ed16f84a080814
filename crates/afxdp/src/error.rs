// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong with AF_XDP.

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
pub fn refused(step: &'static str, error: &(dyn std::error::Error + 'static)) -> Error {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    Error::Refused {
        step,
        detail: root.to_string(),
    }
}
