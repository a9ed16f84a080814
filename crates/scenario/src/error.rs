// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a scenario, and where.

use std::fmt;

/// An error in a scenario: the place, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Error {
    /// Where.
    pub place: Place,
    /// What.
    pub problem: Box<Problem>,
}

/// Where an error stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a file, from 1.
    Line {
        /// The file's name as it was given.
        file: String,
        /// The line.
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
        /// The TOML parser's own words.
        message: String,
    },
    /// A key that means nothing there.
    #[error("unknown key `{key}` in {section}{}", hint(.key, .known))]
    UnknownKey {
        /// The key.
        key: String,
        /// The table it stands in.
        section: String,
        /// The keys that would mean something.
        known: Vec<String>,
    },
    /// A key that must be there.
    #[error("{section} lacks `{key}`, expected {expected}")]
    Missing {
        /// The key.
        key: String,
        /// The table it should stand in.
        section: String,
        /// What its value should be.
        expected: String,
    },
    /// A value that is not what the key takes.
    #[error("`{key}` is {value}, expected {expected}")]
    Value {
        /// The key.
        key: String,
        /// The value, as TOML.
        value: String,
        /// What was expected.
        expected: String,
    },
    /// A name of something that is not there.
    #[error("`{key}` names \"{value}\", expected a {what}{}", hint(.value, .known))]
    Reference {
        /// The key.
        key: String,
        /// The name.
        value: String,
        /// What it should have been the name of.
        what: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// Tables that do not go together.
    #[error("`[[{key}]]` beside `[[{other}]]`, expected one or the other")]
    Apart {
        /// The table that is too much.
        key: String,
        /// The one that is there too.
        other: String,
    },
    /// A name given to two things.
    #[error("`{key}` is \"{value}\", expected a name not in use: line {first} has it already")]
    Duplicate {
        /// The key.
        key: String,
        /// The name.
        value: String,
        /// The line that has it first.
        first: usize,
    },
}

/// "; did you mean `x`?" when something known is near, else all there is.
fn hint(given: &str, known: &[String]) -> String {
    let near = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| *distance <= 1 + name.chars().count().min(9) / 3);
    match near {
        Some((_, name)) => format!("; did you mean `{name}`?"),
        None if known.is_empty() => "; there is none".into(),
        None => format!("; there is `{}`", known.join("`, `")),
    }
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn the_nearest_name_is_suggested() {
        let known = ["duration", "settle", "kernel"].map(String::from);
        assert_eq!(hint("durations", &known), "; did you mean `duration`?");
        assert_eq!(hint("kernle", &known), "; did you mean `kernel`?");
        assert_eq!(
            hint("bandwidth", &known),
            "; there is `duration`, `settle`, `kernel`"
        );
        assert_eq!(hint("x", &[]), "; there is none");
    }
}
