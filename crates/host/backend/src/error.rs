// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors.

use std::error::Error as StdError;

/// Why a device is not paced as it was wanted, or cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This `pspacer` has no program: clang was missing when it was built.
    #[error("this pspacer was built without clang: it has no program for backend \"edt\"")]
    NotBuilt,
    /// The kernel or the library refuses a part.
    #[error("{part}: {detail}")]
    Refused {
        /// The program, or a map of it.
        part: String,
        /// What is said about it.
        detail: String,
    },
    /// The qdisc of BPF.
    #[error(transparent)]
    Qdisc(#[from] crate::qdisc::Error),
    /// The kernel refuses a change of qdiscs or filters, or to show them.
    #[error(transparent)]
    Kernel(#[from] tcpsp::Error),
    /// A change that the model does not take.
    #[error("{0}")]
    Model(String),
    /// Packets wait in a class that is to go.
    #[error("{0} packets still wait in it, --drain gives them more time")]
    Waiting(u32),
    /// What is kept beside the programs cannot be read.
    #[error("what is kept beside its programs: {0}")]
    Text(String),
    /// The list of devices cannot be read.
    #[error("devices: {0}")]
    Links(#[source] std::io::Error),
    /// The program there is another version's.
    #[error("its program is of another version of pspacer")]
    Version,
}

/// Longest text of the verifier that a message keeps: its end, which says what is wrong.
const VERIFIER_CHARS: usize = 2000;

/// Converts an error of the library, with all causes.
pub(crate) fn refused(part: &str, error: &(dyn StdError + 'static)) -> Error {
    let mut detail = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        detail = format!("{detail}: {error}");
        next = error.source();
    }
    if let Some((from, _)) = detail.char_indices().rev().nth(VERIFIER_CHARS) {
        detail = format!("...{}", detail.split_at(from).1);
    }
    Error::Refused {
        part: part.to_owned(),
        detail,
    }
}
