// SPDX-License-Identifier: MIT OR Apache-2.0
//! What may be wrong in a file.

use units::nearest::hint;

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
        key: String,
        /// Table that holds the key.
        section: String,
        /// Keys that the table may have.
        known: Vec<String>,
    },
    /// A required key that is absent.
    #[error("{section} lacks `{key}`, expected {expected}")]
    Missing {
        key: String,
        /// Table that lacks the key.
        section: String,
        /// Description of a valid value.
        expected: String,
    },
    /// A value that the key does not accept.
    #[error("`{key}` is {value}, expected {expected}")]
    Value {
        key: String,
        /// The value, as TOML.
        value: String,
        /// Description of a valid value.
        expected: String,
    },
    /// A value that does not fit to the rest of its table.
    #[error("{owner}: `{key}` is {value}, expected {expected}")]
    Misfit {
        owner: String,
        key: String,
        /// The value, as TOML.
        value: String,
        /// Description of a valid value.
        expected: String,
    },
    /// A word that is not one of those that the key takes.
    #[error("`{key}` is \"{value}\", expected {what}{}", hint(.value, .known))]
    Name {
        key: String,
        value: String,
        /// Description of a valid word.
        what: String,
        /// The words that the key takes.
        known: Vec<String>,
    },
    /// A name that refers to nothing.
    #[error("`{key}` names \"{value}\", expected a {what}{}", hint(.value, .known))]
    Reference {
        key: String,
        value: String,
        /// What kind of thing the name should refer to.
        what: String,
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
        key: String,
        /// The value, as TOML.
        value: String,
        /// What the value is: "a name".
        what: &'static str,
        /// Line of its first use.
        first: usize,
    },
}

/// Returns a string as TOML has it, on one line.
pub fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_quoted_is_read_back() {
        for text in ["", "plain", "a \"b\" \\ c", "\n\t\u{7f}\u{85}", "ü ✓"] {
            let line = format!("key = {}", quote(text));
            let table: toml::Table = line.parse().unwrap();
            assert_eq!(table["key"].as_str(), Some(text), "{line}");
            assert!(!line.contains('\n'));
        }
    }
}
