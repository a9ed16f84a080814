// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors in a scenario, and their places.

use std::fmt;

use units::nearest::hint;

/// An error in a scenario: its place, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Error {
    /// Place of the error.
    pub place: Place,
    /// What is wrong.
    pub problem: Box<Problem>,
}

/// The place of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a file.
    Line {
        /// Name of the file as it was given.
        file: String,
        /// Number of the line, from 1.
        line: usize,
    },
    /// An override, `--set key=value`.
    Set {
        /// Its key.
        key: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{file}:{line}"),
            Self::Set { key } => write!(f, "--set {key}"),
        }
    }
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text is not TOML.
    #[error("not valid TOML: {message}")]
    Syntax {
        /// Message of the TOML parser.
        message: String,
    },
    /// A key that its table does not have.
    #[error("unknown key `{key}` in {section}{}", hint(.key, .known))]
    UnknownKey {
        /// The key.
        key: String,
        /// Table that holds the key.
        section: String,
        /// Keys that the table may have.
        known: Vec<String>,
    },
    /// A required key that is absent.
    #[error("{section} lacks `{key}`, expected {expected}")]
    Missing {
        /// The key.
        key: String,
        /// Table that lacks the key.
        section: String,
        /// Description of a valid value.
        expected: String,
    },
    /// A value that the key does not accept.
    #[error("`{key}` is {value}, expected {expected}")]
    Value {
        /// The key.
        key: String,
        /// The value, as TOML.
        value: String,
        /// Description of a valid value.
        expected: String,
    },
    /// A name that refers to nothing.
    #[error("`{key}` names \"{value}\", expected a {what}{}", hint(.value, .known))]
    Reference {
        /// The key.
        key: String,
        /// The unknown name.
        value: String,
        /// What kind of thing the name should refer to.
        what: String,
        /// Names that exist.
        known: Vec<String>,
    },
    /// Tables that exclude each other.
    #[error("`[[{key}]]` beside `[[{other}]]`, expected one or the other")]
    Apart {
        /// Table that must be removed ...
        key: String,
        /// ... because this one is there.
        other: String,
    },
    /// A name used twice.
    #[error("`{key}` is \"{value}\", expected a name not in use: line {first} has it already")]
    Duplicate {
        /// The key.
        key: String,
        /// The name.
        value: String,
        /// Line of its first use.
        first: usize,
    },
}
