// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors in a host's file, and their places; why there is no plan.

use toml_faults::Problem;

/// An error in a host's file: its place, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct ConfigError {
    /// Name of the file as it was given.
    pub file: String,
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: Box<Problem>,
}

/// The reason why there is no plan, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);
