// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors in a file, and their places.

use std::fmt;

use crate::problem::Problem;

/// An error in a file: its place, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Error {
    /// Place of the error.
    pub place: Place,
    pub problem: Box<Problem>,
}

/// The place of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a file.
    Line {
        /// Name of the file as it was given; empty if the caller puts it before the error.
        file: String,
        /// Number of the line, from 1.
        line: usize,
    },
    /// An override, `--set key=value`.
    Set { key: String },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } if file.is_empty() => write!(f, "line {line}"),
            Self::Line { file, line } => write!(f, "{file}:{line}"),
            Self::Set { key } => write!(f, "--set {key}"),
        }
    }
}
