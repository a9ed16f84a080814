// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors.

use std::error::Error as StdError;

/// What a device's table of the file wants and departure times cannot do, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// Why there is no departure time.
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
    /// The kernel refuses a change of qdiscs or filters.
    #[error("{step}: {source}")]
    Kernel {
        /// What was to be changed.
        step: String,
        /// The kernel's answer.
        source: tcpsp::Error,
    },
    /// The kernel's tables cannot be read.
    #[error(transparent)]
    Tables(#[from] tcpsp::Error),
    /// A device of a rule is not there.
    #[error("interface {0}: no such device; a rule by backend \"edt\" needs it to be there")]
    NoInterface(String),
    /// The list of devices cannot be read.
    #[error("devices: {0}")]
    Links(#[source] std::io::Error),
    /// The program there is another version's.
    #[error(
        "a program of version {found} is attached, expected {expected}: take it away first, with \
         `pspacer remove`"
    )]
    Version {
        /// Its version.
        found: u32,
        /// This one's.
        expected: u32,
    },
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
