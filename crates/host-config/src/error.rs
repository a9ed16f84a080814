// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors in a host's file, and their places.

use units::nearest::hint;

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
        known: Vec<&'static str>,
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
    /// A word or a name that refers to nothing.
    #[error("`{key}` is \"{value}\", expected {what}{}", hint(.value, .known))]
    Name {
        /// The key.
        key: String,
        /// The unknown name.
        value: String,
        /// What the name should refer to.
        what: String,
        /// Names that exist.
        known: Vec<String>,
    },
    /// A name used twice.
    #[error("`{key}` is {value}, expected one not in use: line {first} has it already")]
    Duplicate {
        /// The key.
        key: String,
        /// The name.
        value: String,
        /// Line of its first use.
        first: usize,
    },
}
