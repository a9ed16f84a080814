// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file and its tables.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use units::parse;

use crate::error::{Error, Place};
use crate::item::Item;
use crate::problem::Problem;
use crate::source::Source;

/// A key of a table, and a description of its values.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: &'static str,
    /// Description of a valid value.
    pub expected: &'static str,
}

pub const fn key(name: &'static str, expected: &'static str) -> Key {
    Key { name, expected }
}

/// A file that is TOML.
#[derive(Debug)]
pub struct Document<'a> {
    source: Source<'a>,
    root: DeTable<'a>,
}

impl<'a> Document<'a> {
    /// Reads a text as TOML. `file` is its name in messages; empty if the caller puts it before
    /// them.
    pub fn parse(file: &'a str, text: &'a str) -> Result<Self, Error> {
        let source = Source { file, text };
        let root = DeTable::parse(text)
            .map(Spanned::into_inner)
            .map_err(|error| {
                let message = error.message().to_owned();
                let offset = error.span().map_or(0, |span| span.start);
                source.error(offset, Problem::Syntax { message })
            })?;
        Ok(Self { source, root })
    }

    /// Returns the top level. Its keys are not checked yet.
    pub fn top<'d>(&'d self, label: &'d str, keys: &'d [Key]) -> Section<'d> {
        Section {
            source: self.source,
            table: &self.root,
            offset: 0,
            label,
            keys,
        }
    }
}

/// A table that is being read.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    source: Source<'a>,
    table: &'a DeTable<'a>,
    /// Offset of the table in the text.
    offset: usize,
    /// Name of the table in messages: `[[device]]`.
    label: &'a str,
    /// Its keys; none if the caller describes the values.
    keys: &'a [Key],
}

impl<'a> Section<'a> {
    /// Returns the place of the table.
    pub fn place(self) -> Place {
        self.source.place(self.offset)
    }

    /// Returns an error about the table as a whole.
    pub fn error(self, problem: Problem) -> Error {
        self.source.error(self.offset, problem)
    }

    /// Rejects keys that the table does not have.
    ///
    /// # Errors
    /// The first such key, and the nearest one that the table has.
    pub fn check(self) -> Result<Self, Error> {
        self.allow(self.keys.iter().map(|key| key.name))?;
        Ok(self)
    }

    /// Rejects keys that are not among `known`.
    ///
    /// # Errors
    /// The first such key, and the nearest known one.
    pub fn allow<'k>(self, known: impl Iterator<Item = &'k str> + Clone) -> Result<(), Error> {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if known.clone().all(|known| known != name) {
                let problem = Problem::UnknownKey {
                    key: name.to_owned(),
                    section: self.label.to_owned(),
                    known: known.map(str::to_owned).collect(),
                };
                return Err(self.source.error(key.span().start, problem));
            }
        }
        Ok(())
    }

    fn expected(self, key: &str) -> &'a str {
        let known = self.keys.iter().find(|known| known.name == key);
        known.map_or("", |known| known.expected)
    }

    /// Returns the value of a key, if it has one.
    pub fn get(self, key: &'a str) -> Option<Item<'a>> {
        let value = self.table.get(key)?;
        Some(Item::new(self.source, key, value).expecting(self.expected(key)))
    }

    /// Returns the values of all keys, in the order of the file.
    pub fn items(self) -> impl Iterator<Item = Item<'a>> {
        let source = self.source;
        self.table
            .iter()
            .map(move |(key, value)| Item::new(source, key.get_ref(), value))
    }

    /// Returns the value that a command line gives to a key of this table. `prefix` is what its
    /// option puts before the key.
    pub fn set(self, prefix: &'a str, key: &'a str, text: &'a str) -> Item<'a> {
        Item::set(self.source, prefix, key, text)
    }

    /// Returns the value of a key that must have one.
    pub fn require(self, key: &'a str) -> Result<Item<'a>, Error> {
        self.get(key)
            .ok_or_else(|| self.lacks(key, self.expected(key)))
    }

    /// Returns the error about a key that is absent.
    pub fn lacks(self, key: &str, expected: &str) -> Error {
        self.error(Problem::Missing {
            key: key.to_owned(),
            section: self.label.to_owned(),
            expected: expected.to_owned(),
        })
    }

    /// Returns the value of a key, parsed from a string.
    ///
    /// # Errors
    /// If it is not a string, or `parse` refuses it.
    pub fn parsed<T>(
        self,
        key: &'a str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let item = self.get(key);
        item.map(|item| item.parsed(parse)).transpose()
    }

    /// Returns a rate above 0, in bit/s.
    pub fn rate(self, key: &'a str) -> Result<Option<u64>, Error> {
        self.parsed(key, |text| parse::rate_bps(text).filter(|rate| *rate > 0))
    }

    /// Returns a time in ns.
    ///
    /// # Errors
    /// If the value is no time within the range.
    pub fn time(self, key: &'a str, range: RangeInclusive<u64>) -> Result<Option<u64>, Error> {
        self.parsed(key, |text| {
            parse::time_ns(text).filter(|time| range.contains(time))
        })
    }

    /// Returns a size in bytes.
    ///
    /// # Errors
    /// If the value is no size within the range.
    pub fn size(self, key: &'a str, range: RangeInclusive<u64>) -> Result<Option<u64>, Error> {
        self.parsed(key, |text| {
            parse::size_bytes(text).filter(|size| range.contains(size))
        })
    }

    /// Returns a whole number.
    ///
    /// # Errors
    /// If the value is no whole number within the range.
    pub fn number(self, key: &'a str, range: RangeInclusive<u32>) -> Result<Option<u32>, Error> {
        let item = self.get(key);
        item.map(|item| item.number(&range)).transpose()
    }

    /// Returns whether a key is true.
    ///
    /// # Errors
    /// If the value is neither true nor false.
    pub fn boolean(self, key: &'a str) -> Result<Option<bool>, Error> {
        self.get(key).map(Item::boolean).transpose()
    }

    /// Returns the value of a word. `words` are all of them, with their values.
    ///
    /// # Errors
    /// If the value is none of the words.
    pub fn word<T: Copy>(self, key: &'a str, words: &[(&str, T)]) -> Result<Option<T>, Error> {
        let item = self.get(key);
        item.map(|item| item.word(words)).transpose()
    }

    /// Returns the table under a key. Its keys are not checked yet.
    pub fn table(self, key: &str, label: &'a str) -> Result<Option<Self>, Error> {
        let Some((name, value)) = self.table.get_key_value(key) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::Table(table) => Ok(Some(Self {
                table,
                offset: name.span().start,
                label,
                keys: &[],
                ..self
            })),
            _ => {
                let expected = format!("a table, [{key}]");
                Err(Item::new(self.source, key, value).fault(&expected))
            }
        }
    }

    /// Returns the tables of an array of tables. Their keys are checked.
    ///
    /// # Errors
    /// If the value is no array of tables, or a table has a key that is not among `keys`.
    pub fn tables(self, key: &'a str, label: &'a str, keys: &'a [Key]) -> Result<Vec<Self>, Error> {
        let tables = self.unchecked_tables(key, label)?.into_iter();
        tables.map(|table| Self { keys, ..table }.check()).collect()
    }

    /// Returns the tables of an array of tables. Their keys are not checked yet.
    ///
    /// # Errors
    /// If the value is no array of tables.
    pub fn unchecked_tables(self, key: &str, label: &'a str) -> Result<Vec<Self>, Error> {
        let Some(value) = self.table.get(key) else {
            return Ok(Vec::new());
        };
        let described = self.expected(key);
        let fault = |at: &Spanned<DeValue<'_>>| {
            let item = Item::new(self.source, key, at);
            if described.is_empty() {
                item.fault(&format!("an array of tables, [[{key}]]"))
            } else {
                item.fault(described)
            }
        };
        let DeValue::Array(list) = value.get_ref() else {
            return Err(fault(value));
        };
        list.iter()
            .map(|entry| match entry.get_ref() {
                DeValue::Table(table) => Ok(Self {
                    table,
                    offset: entry.span().start,
                    label,
                    keys: &[],
                    ..self
                }),
                _ => Err(fault(entry)),
            })
            .collect()
    }
}
