// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of AF_XDP.

/// The reason why AF_XDP cannot be used on a device.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The BPF program is missing, because the build did not find clang.
    #[error("this pspacer was built without its BPF program, because clang was missing")]
    NotBuilt,
    /// The device has more than one receive queue: one socket serves one queue.
    #[error(
        "it has {0} receive queues, expected 1: ethtool -L DEVICE combined 1, or rx 1, sets one"
    )]
    Queues(u32),
    /// The kernel or the driver refused a step.
    #[error("{step}: {detail}")]
    Refused {
        /// The step that was refused.
        step: &'static str,
        detail: String,
    },
}

/// Converts the error of a library. The text is that of the innermost source, which is the kernel's
/// own error.
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
