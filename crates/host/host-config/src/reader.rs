// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads values out of TOML, each with its line, so that errors can name the place.

use std::ops::RangeInclusive;

use toml::de::{DeTable, DeValue};
use toml_faults::{Problem, describe, line_of};
use units::parse;

use crate::error::ConfigError;

/// A key of a table, and a description of its values.
pub(crate) struct Key {
    pub name: &'static str,
    pub expected: &'static str,
}

/// Returns a key.
pub(crate) const fn key(name: &'static str, expected: &'static str) -> Key {
    Key { name, expected }
}

/// The text of a file, and its name in messages.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl<'a> Source<'a> {
    /// Reads the text as TOML, and rejects unknown keys of its top.
    pub fn parse(self) -> Result<DeTable<'a>, ConfigError> {
        toml_faults::parse(self.text).map_err(|(offset, problem)| self.error(offset, problem))
    }

    /// Returns the line of a byte offset, from 1.
    pub fn line(self, offset: usize) -> usize {
        line_of(self.text, offset)
    }

    pub fn error(self, offset: usize, problem: Problem) -> ConfigError {
        ConfigError {
            file: self.file.to_owned(),
            line: self.line(offset),
            problem: Box::new(problem),
        }
    }
}

/// A table that is being read.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a> {
    pub source: Source<'a>,
    pub table: &'a DeTable<'a>,
    /// Offset of the table in the text.
    pub offset: usize,
    /// Name of the table in messages: `[[device]]`.
    pub label: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

impl<'a> Section<'a> {
    /// Rejects keys that the table does not have.
    pub fn check(self) -> Result<Self, ConfigError> {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if self.keys.iter().all(|known| known.name != name) {
                let problem = Problem::UnknownKey {
                    key: name.to_owned(),
                    section: self.label.to_owned(),
                    known: self
                        .keys
                        .iter()
                        .map(|known| known.name.to_owned())
                        .collect(),
                };
                return Err(self.source.error(key.span().start, problem));
            }
        }
        Ok(self)
    }

    fn expected(self, key: &str) -> &'static str {
        let known = self.keys.iter().find(|known| known.name == key);
        known.map_or("no such key", |known| known.expected)
    }

    /// Returns the value of a key, if it has one.
    pub fn get(self, key: &'static str) -> Option<Item<'a>> {
        let value = self.table.get(key)?;
        Some(Item {
            source: self.source,
            key,
            expected: self.expected(key),
            offset: value.span().start,
            value: value.get_ref(),
        })
    }

    /// Returns the value of a key that must have one.
    pub fn require(self, key: &'static str) -> Result<Item<'a>, ConfigError> {
        self.get(key)
            .ok_or_else(|| self.lacks(key, self.expected(key)))
    }

    /// Returns the error about a key that is absent.
    pub fn lacks(self, key: &'static str, expected: &str) -> ConfigError {
        let problem = Problem::Missing {
            key: key.to_owned(),
            section: self.label.to_owned(),
            expected: expected.to_owned(),
        };
        self.source.error(self.offset, problem)
    }

    /// Returns the value of a key, parsed.
    pub fn parsed<T>(
        self,
        key: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        let item = self.get(key);
        item.map(|item| item.parsed(parse)).transpose()
    }

    /// Returns a rate above 0.
    pub fn rate(self, key: &'static str) -> Result<Option<u64>, ConfigError> {
        self.parsed(key, |text| parse::rate_bps(text).filter(|rate| *rate > 0))
    }

    pub fn time(
        self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, ConfigError> {
        self.parsed(key, |text| {
            parse::time_ns(text).filter(|time| range.contains(time))
        })
    }

    pub fn size(
        self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, ConfigError> {
        self.parsed(key, |text| {
            parse::size_bytes(text).filter(|size| range.contains(size))
        })
    }

    pub fn number(
        self,
        key: &'static str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<u32>, ConfigError> {
        let item = self.get(key);
        item.map(|item| item.number(&range)).transpose()
    }

    pub fn boolean(self, key: &'static str) -> Result<Option<bool>, ConfigError> {
        match self.get(key) {
            None => Ok(None),
            Some(item) => match item.value {
                DeValue::Boolean(value) => Ok(Some(*value)),
                _ => Err(item.wrong()),
            },
        }
    }

    /// Returns the value of a word. `words` are all of them, with their values.
    pub fn word<T: Copy>(
        self,
        key: &'static str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, ConfigError> {
        let Some(item) = self.get(key) else {
            return Ok(None);
        };
        let text = item.text()?;
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let known = words.iter().map(|(word, _)| (*word).to_owned()).collect();
                Err(item.unknown(known))
            }
        }
    }

    /// Returns the tables of an array of tables.
    pub fn tables(
        self,
        key: &'static str,
        label: &'static str,
        keys: &'static [Key],
    ) -> Result<Vec<Self>, ConfigError> {
        let Some(item) = self.get(key) else {
            return Ok(Vec::new());
        };
        let DeValue::Array(list) = item.value else {
            return Err(item.wrong());
        };
        let tables = list.iter().map(|entry| match entry.get_ref() {
            DeValue::Table(table) => Self {
                source: self.source,
                table,
                offset: entry.span().start,
                label,
                keys,
            }
            .check(),
            _ => Err(item.wrong()),
        });
        tables.collect()
    }
}

/// A value and its place.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    source: Source<'a>,
    key: &'static str,
    expected: &'static str,
    offset: usize,
    value: &'a DeValue<'a>,
}

impl<'a> Item<'a> {
    /// Returns the line of the value.
    pub fn line(self) -> usize {
        self.source.line(self.offset)
    }

    /// Returns an error that says what was expected.
    pub fn fault(self, expected: &str) -> ConfigError {
        let problem = Problem::Value {
            key: self.key.to_owned(),
            value: describe(self.value),
            expected: expected.to_owned(),
        };
        self.source.error(self.offset, problem)
    }

    /// Returns the error about a value that the key does not take.
    pub fn wrong(self) -> ConfigError {
        self.fault(self.expected)
    }

    /// Returns the error about a name that is not among those known.
    pub fn unknown(self, known: Vec<String>) -> ConfigError {
        let problem = Problem::Name {
            key: self.key.to_owned(),
            value: match self.value {
                DeValue::String(text) => text.to_string(),
                other => describe(other),
            },
            what: self.expected.to_owned(),
            known,
        };
        self.source.error(self.offset, problem)
    }

    /// Returns the error about a value that is there already, in line `first`.
    pub fn duplicate(self, first: usize) -> ConfigError {
        let problem = Problem::Duplicate {
            key: self.key.to_owned(),
            value: describe(self.value),
            what: "one",
            first,
        };
        self.source.error(self.offset, problem)
    }

    pub fn text(self) -> Result<&'a str, ConfigError> {
        match self.value {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong()),
        }
    }

    /// Returns a string, parsed.
    pub fn parsed<T>(self, parse: impl Fn(&str) -> Option<T>) -> Result<T, ConfigError> {
        parse(self.text()?).ok_or_else(|| self.wrong())
    }

    /// Returns a number, or a string, as text.
    pub fn scalar(self) -> Result<String, ConfigError> {
        match self.value {
            DeValue::Integer(value) => i64::from_str_radix(value.as_str(), value.radix())
                .map(|value| value.to_string())
                .map_err(|_| self.wrong()),
            _ => self.text().map(str::to_owned),
        }
    }

    fn number(self, range: &RangeInclusive<u32>) -> Result<u32, ConfigError> {
        let DeValue::Integer(value) = self.value else {
            return Err(self.wrong());
        };
        u32::from_str_radix(value.as_str(), value.radix())
            .ok()
            .filter(|value| range.contains(value))
            .ok_or_else(|| self.wrong())
    }
}
