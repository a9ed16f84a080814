// SPDX-License-Identifier: MIT OR Apache-2.0
//! A value and its place.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::DeValue;

use crate::error::{Error, Place};
use crate::problem::{Problem, quote};
use crate::source::Source;

/// A value and its place.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    source: Source<'a>,
    key: &'a str,
    /// Description of a valid value.
    expected: &'a str,
    given: Given<'a>,
}

/// Who gives the value.
#[derive(Clone, Copy, Debug)]
enum Given<'a> {
    /// The file, at this offset.
    Toml(usize, &'a DeValue<'a>),
    /// The command line, for the key with this prefix.
    Set(&'a str, &'a str),
}

impl<'a> Item<'a> {
    pub(crate) fn new(source: Source<'a>, key: &'a str, value: &'a Spanned<DeValue<'a>>) -> Self {
        Self {
            source,
            key,
            expected: "",
            given: Given::Toml(value.span().start, value.get_ref()),
        }
    }

    pub(crate) fn set(source: Source<'a>, prefix: &'a str, key: &'a str, text: &'a str) -> Self {
        Self {
            source,
            key,
            expected: "",
            given: Given::Set(prefix, text),
        }
    }

    /// Returns the same value with another description of a valid one.
    pub fn expecting<'b>(self, expected: &'b str) -> Item<'b>
    where
        'a: 'b,
    {
        Item { expected, ..self }
    }

    pub fn key(self) -> &'a str {
        self.key
    }

    /// Returns the line of the value; 0 if a command line gives it.
    pub fn line(self) -> usize {
        match self.given {
            Given::Toml(offset, _) => self.source.line(offset),
            Given::Set(..) => 0,
        }
    }

    /// Returns where the value is. O(length of the text): a line is counted only if it is asked
    /// for.
    pub fn place(self) -> Place {
        match self.given {
            Given::Toml(offset, _) => self.source.place(offset),
            Given::Set(prefix, _) => Place::Set {
                key: format!("{prefix}{}", self.key),
            },
        }
    }

    /// Returns the value as TOML has it, on one line.
    pub fn described(self) -> String {
        match self.given {
            Given::Set(_, text) => quote(text),
            Given::Toml(_, value) => match value {
                DeValue::String(text) => quote(text),
                DeValue::Integer(value) => value.to_string(),
                DeValue::Float(value) => value.to_string(),
                DeValue::Boolean(value) => value.to_string(),
                DeValue::Datetime(value) => value.to_string(),
                DeValue::Array(_) => "a list".into(),
                DeValue::Table(_) => "a table".into(),
            },
        }
    }

    /// Returns an error at the value.
    pub fn error(self, problem: Problem) -> Error {
        Error {
            place: self.place(),
            problem: Box::new(problem),
        }
    }

    /// Returns an error that says what was expected in place of `value`.
    pub fn fault_of(self, value: &str, expected: &str) -> Error {
        self.error(Problem::Value {
            key: self.key.to_owned(),
            value: value.to_owned(),
            expected: expected.to_owned(),
        })
    }

    /// Returns an error that says what was expected in place of the value.
    pub fn fault(self, expected: &str) -> Error {
        self.fault_of(&self.described(), expected)
    }

    /// Returns the error about a value that the key does not take.
    pub fn wrong(self) -> Error {
        self.fault(self.expected)
    }

    /// Returns the error about a word that is not among those known.
    pub fn unknown(self, known: Vec<String>) -> Error {
        self.error(Problem::Name {
            key: self.key.to_owned(),
            value: match self.given {
                Given::Toml(_, DeValue::String(text)) => text.to_string(),
                Given::Set(_, text) => text.to_owned(),
                Given::Toml(..) => self.described(),
            },
            what: self.expected.to_owned(),
            known,
        })
    }

    /// Returns the error about a name that refers to nothing.
    pub fn dangling(self, value: &str, what: &str, known: Vec<String>) -> Error {
        self.error(Problem::Reference {
            key: self.key.to_owned(),
            value: value.to_owned(),
            what: what.to_owned(),
            known,
        })
    }

    /// Returns the error about a value that is there already, in line `first`.
    pub fn duplicate(self, what: &'static str, first: usize) -> Error {
        self.error(Problem::Duplicate {
            key: self.key.to_owned(),
            value: self.described(),
            what,
            first,
        })
    }

    /// Returns a string.
    pub fn text(self) -> Result<&'a str, Error> {
        match self.given {
            Given::Set(_, text) => Ok(text),
            Given::Toml(_, DeValue::String(text)) => Ok(text),
            Given::Toml(..) => Err(self.wrong()),
        }
    }

    /// Returns a string, parsed.
    ///
    /// # Errors
    /// If the value is no string, or `parse` refuses it.
    pub fn parsed<T>(self, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, Error> {
        parse(self.text()?).ok_or_else(|| self.wrong())
    }

    /// Returns the value of a word. `words` are all of them, with their values.
    ///
    /// # Errors
    /// If the value is none of the words.
    pub fn word<T: Copy>(self, words: &[(&str, T)]) -> Result<T, Error> {
        let text = self.text()?;
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let known = words.iter().map(|(word, _)| (*word).to_owned());
            self.unknown(known.collect())
        })
    }

    /// Returns any value that is not a list, a table or a date as text.
    pub fn scalar(self) -> Result<String, Error> {
        match self.given {
            Given::Toml(_, DeValue::Integer(value)) => {
                i64::from_str_radix(value.as_str(), value.radix())
                    .map(|value| value.to_string())
                    .map_err(|_| self.wrong())
            }
            Given::Toml(_, DeValue::Float(value)) => Ok(value.as_str().to_owned()),
            Given::Toml(_, DeValue::Boolean(value)) => Ok(value.to_string()),
            _ => self.text().map(str::to_owned),
        }
    }

    /// Returns a whole number.
    ///
    /// # Errors
    /// If the value is no whole number within the range.
    pub fn number(self, range: &RangeInclusive<u32>) -> Result<u32, Error> {
        let value = match self.given {
            Given::Toml(_, DeValue::Integer(value)) => {
                u32::from_str_radix(value.as_str(), value.radix()).ok()
            }
            _ => None,
        };
        value
            .filter(|value| range.contains(value))
            .ok_or_else(|| self.wrong())
    }

    /// Returns true or false.
    pub fn boolean(self) -> Result<bool, Error> {
        match self.given {
            Given::Toml(_, DeValue::Boolean(value)) => Ok(*value),
            _ => Err(self.wrong()),
        }
    }

    /// Returns the elements of a list, or the value itself; commas separate the elements of a
    /// value from the command line.
    pub fn elements(self) -> Vec<Self> {
        match self.given {
            Given::Toml(_, DeValue::Array(list)) => list
                .iter()
                .map(|value| Item::new(self.source, self.key, value).expecting(self.expected))
                .collect(),
            Given::Toml(..) => vec![self],
            Given::Set(prefix, text) => text
                .split(',')
                .map(|part| Self {
                    given: Given::Set(prefix, part.trim()),
                    ..self
                })
                .collect(),
        }
    }

    /// Returns the elements of a list.
    pub fn list(self) -> Result<Vec<Self>, Error> {
        match self.given {
            Given::Toml(_, DeValue::Array(_)) => Ok(self.elements()),
            _ => Err(self.wrong()),
        }
    }

    /// Returns the values of a table's keys.
    pub fn entries(self) -> Result<Vec<Self>, Error> {
        match self.given {
            Given::Toml(_, DeValue::Table(table)) => Ok(table
                .iter()
                .map(|(key, value)| Item::new(self.source, key.get_ref(), value))
                .collect()),
            _ => Err(self.wrong()),
        }
    }
}

/// The values in use of one file, each with its offset; `None` if a command line gives it.
#[derive(Debug)]
pub struct Taken<T>(BTreeMap<T, Option<usize>>);

impl<T> Default for Taken<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord> Taken<T> {
    /// Adds the value of an item. `what` says what it is: "a name". O(log n): lines are counted
    /// only where a value is in use.
    pub fn insert(&mut self, item: Item<'_>, value: T, what: &'static str) -> Result<(), Error> {
        let offset = match item.given {
            Given::Toml(offset, _) => Some(offset),
            Given::Set(..) => None,
        };
        match self.0.entry(value) {
            Entry::Occupied(first) => {
                let line = first.get().map_or(0, |offset| item.source.line(offset));
                Err(item.duplicate(what, line))
            }
            Entry::Vacant(free) => {
                free.insert(offset);
                Ok(())
            }
        }
    }
}
