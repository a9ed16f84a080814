// SPDX-License-Identifier: MIT OR Apache-2.0
//! Says what is wrong in a TOML file that a person wrote, and in which line.
//!
//! A reader of such a file finds the line of a value with [`line_of`], describes the value with
//! [`describe`], and reports a [`Problem`].

#![forbid(unsafe_code)]

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};
use units::nearest::hint;

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
    /// A word that is not one of those that the key takes.
    #[error("`{key}` is \"{value}\", expected {what}{}", hint(.value, .known))]
    Name {
        /// The key.
        key: String,
        /// The unknown word.
        value: String,
        /// Description of a valid word.
        what: String,
        /// The words that the key takes.
        known: Vec<String>,
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
    /// A value used twice.
    #[error("`{key}` is {value}, expected {what} not in use: line {first} has it already")]
    Duplicate {
        /// The key.
        key: String,
        /// The value, as TOML.
        value: String,
        /// What the value is: "a name".
        what: &'static str,
        /// Line of its first use.
        first: usize,
    },
}

/// Returns the line of a byte offset, from 1. An offset beyond the text is in its last line.
/// O(offset).
#[must_use]
pub fn line_of(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// Reads a text as TOML.
///
/// # Errors
/// If it is not TOML: the offset of the fault, and [`Problem::Syntax`].
pub fn parse(text: &str) -> Result<DeTable<'_>, (usize, Problem)> {
    DeTable::parse(text)
        .map(Spanned::into_inner)
        .map_err(|error| {
            let message = error.message().to_owned();
            (offset_of(&error), Problem::Syntax { message })
        })
}

/// Returns the line and the message of what the TOML parser rejects.
#[must_use]
pub fn rejected(text: &str, error: &Error) -> (usize, String) {
    (line_of(text, offset_of(error)), error.message().to_owned())
}

fn offset_of(error: &Error) -> usize {
    error.span().map_or(0, |span| span.start)
}

/// Returns a value as TOML has it, on one line.
#[must_use]
pub fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => quote(text),
        DeValue::Integer(value) => value.to_string(),
        DeValue::Float(value) => value.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(value) => value.to_string(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

/// Returns a string as TOML has it.
#[must_use]
pub fn quote(text: &str) -> String {
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_offsets() {
        let text = "a = 1\nb = \"é\"\n";
        let lines = [0, 5, 6, 12, 14, 15, 99].map(|offset| line_of(text, offset));
        assert_eq!(lines, [1, 1, 2, 2, 2, 3, 3]);
        assert_eq!(line_of("", 7), 1);
    }

    #[test]
    fn what_is_not_toml_has_its_line() {
        let (offset, problem) = parse("a = 1\nb = \n").unwrap_err();
        assert_eq!(line_of("a = 1\nb = \n", offset), 2);
        let said = problem.to_string();
        assert!(said.starts_with("not valid TOML: "), "{said}");
        let (line, message) = rejected(
            "a = 1\nb = \n",
            &toml::from_str::<toml::Table>("a = 1\nb = \n").unwrap_err(),
        );
        assert_eq!(line, 2);
        assert_eq!(said, format!("not valid TOML: {message}"));
    }

    #[test]
    fn values_are_described() {
        let table = parse("a = \"x\"\nb = 7\nc = [1]\nd = true").unwrap();
        let said = ["a", "b", "c", "d"].map(|key| describe(table.get(key).unwrap().get_ref()));
        assert_eq!(said, ["\"x\"", "7", "a list", "true"]);
    }
}
