// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong.

use std::fmt::Display;

/// What the kernel or the host refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "this program was built without clang, and so without backend bpf (make build installs it)"
    )]
    NotBuilt,
    /// The kernel has no qdiscs of BPF.
    #[error("this kernel takes no qdisc of BPF, expected Linux 6.16 or newer with NET_SCH_BPF")]
    NoQdiscs,
    /// There are programs of another version.
    #[error("the running programs have version {found}, expected {expected}: take them away first")]
    Version {
        found: u32,
        /// This program's.
        expected: u32,
    },
    /// A port has no room for what is wanted. Programs with more room have to be loaded.
    #[error("{wanted} {what}, and there is room for {room}")]
    Full {
        what: &'static str,
        wanted: usize,
        /// How many there may be.
        room: u32,
    },
    /// Something is where the arena has to be in this process: it has another [`super::Qdisc`].
    #[error("this process has an arena already, and can have one at a time")]
    Mapped,
    /// Another process has registered the kind of qdisc and does not end.
    #[error("another process has registered qdisc {0} for longer than 2 s")]
    Registered(&'static str),
    /// A value that the core refuses: key, value, and what was expected.
    #[error("{0}")]
    Value(String),
    /// The core refuses a class.
    #[error("class :{minor:x}: {why}")]
    Class {
        /// Minor number of its id.
        minor: u16,
        why: String,
    },
    #[error("{part}: {detail}")]
    Refused { part: String, detail: String },
}

pub(crate) fn refused(part: &str, error: &dyn Display) -> Error {
    Error::Refused {
        part: part.to_owned(),
        detail: format!("{error:#}"),
    }
}
