// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong.

use std::fmt::Display;

/// What the kernel or the host refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This program was built without clang.
    #[error(
        "this program was built without clang, and so without backend bpf (make build installs it)"
    )]
    NotBuilt,
    /// Something was refused.
    #[error("{part}: {detail}")]
    Refused {
        /// What.
        part: String,
        /// Why.
        detail: String,
    },
}

pub(crate) fn refused(part: &str, error: &dyn Display) -> Error {
    Error::Refused {
        part: part.to_owned(),
        detail: format!("{error:#}"),
    }
}
