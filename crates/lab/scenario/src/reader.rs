// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads values out of TOML, each with its line, so that errors can name the place.

use std::collections::HashMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml_faults::{Problem, describe, line_of, quote};
use units::parse;

use crate::error::{Error, Place};
use crate::expr::{self, Env, Fault};

/// The text of a scenario, and its name in messages.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl<'a> Source<'a> {
    pub fn parse(self) -> Result<DeTable<'a>, Error> {
        toml_faults::parse(self.text).map_err(|(offset, problem)| Error {
            place: self.place(offset),
            problem: Box::new(problem),
        })
    }

    pub fn line(self, offset: usize) -> usize {
        line_of(self.text, offset)
    }

    pub fn place(self, offset: usize) -> Place {
        Place::Line {
            file: self.file.to_owned(),
            line: self.line(offset),
        }
    }
}

/// Values from the command line for top-level keys and for keys of `[noise]`, by dotted key.
pub(crate) type Overrides = HashMap<String, String>;

/// A table that is being read: its label, and the names that its strings may use.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a, 'e> {
    pub source: Source<'a>,
    pub table: &'a DeTable<'a>,
    /// Table whose keys override those of `table`.
    pub shadow: Option<&'a DeTable<'a>>,
    /// Offset of the table in the text.
    pub offset: usize,
    /// Name of the table in messages: `[[flow]]`.
    pub label: &'a str,
    /// Prefix of this table's keys in `overrides`: "" or "noise."; `None` if they cannot be
    /// overridden.
    pub prefix: Option<&'a str>,
    pub overrides: &'a Overrides,
    pub env: &'e Env,
}

/// A value and its place.
#[derive(Clone)]
pub(crate) struct Item<'a> {
    pub key: &'a str,
    at: At,
    source: Source<'a>,
    value: Given<'a>,
}

#[derive(Clone)]
enum At {
    Offset(usize),
    /// The dotted key on the command line.
    Set(String),
}

#[derive(Clone, Copy)]
enum Given<'a> {
    Toml(&'a DeValue<'a>),
    Set(&'a str),
}

impl<'a> Section<'a, '_> {
    /// Rejects keys that are not among `known`.
    pub fn allow(&self, known: &[&str]) -> Result<(), Error> {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                return Err(Error {
                    place: self.source.place(key.span().start),
                    problem: Box::new(Problem::UnknownKey {
                        key: name.to_owned(),
                        section: self.label.to_owned(),
                        known: known.iter().map(ToString::to_string).collect(),
                    }),
                });
            }
        }
        Ok(())
    }

    /// Returns the value of a key, if it has one.
    pub fn get(&self, key: &'a str) -> Option<Item<'a>> {
        if let Some(prefix) = self.prefix {
            let dotted = format!("{prefix}{key}");
            if let Some(value) = self.overrides.get(&dotted) {
                return Some(Item::set(self.source, key, dotted, value));
            }
        }
        let value = self
            .shadow
            .and_then(|table| table.get(key))
            .or_else(|| self.table.get(key))?;
        Some(Item::new(self.source, key, value))
    }

    /// Returns an error about a key that is absent.
    pub fn missing(&self, key: &str, expected: &str) -> Error {
        Error {
            place: self.source.place(self.offset),
            problem: Box::new(Problem::Missing {
                key: key.to_owned(),
                section: self.label.to_owned(),
                expected: expected.to_owned(),
            }),
        }
    }

    pub fn require(&self, key: &'a str, expected: &str) -> Result<Item<'a>, Error> {
        self.get(key).ok_or_else(|| self.missing(key, expected))
    }

    /// Returns a string with its `${...}` filled in.
    pub fn text(&self, key: &'a str) -> Result<Option<String>, Error> {
        self.get(key)
            .map(|item| item.text(self.env, "a string"))
            .transpose()
    }

    /// Returns a quantity, parsed from a string with its unit.
    fn quantity(
        &self,
        key: &'a str,
        parse: fn(&str) -> Option<u64>,
        expected: &str,
        range: Range<u64>,
    ) -> Result<Option<u64>, Error> {
        let Some(item) = self.get(key) else {
            return Ok(None);
        };
        let text = item.text(self.env, expected)?;
        let value = parse(&text).ok_or_else(|| item.fault(&quote(&text), expected))?;
        if range.contains(&value) {
            return Ok(Some(value));
        }
        Err(item.fault(
            &quote(&text),
            &format!("{expected}, {} to {}", range.start, range.end - 1),
        ))
    }

    pub fn rate(&self, key: &'a str) -> Result<Option<u64>, Error> {
        self.quantity(key, parse::rate_bps, parse::RATE, 1..1_000_000_000_001)
    }

    pub fn time(&self, key: &'a str) -> Result<Option<u64>, Error> {
        // Limit of one day: far more guest time than any wall-clock limit allows.
        self.quantity(key, parse::time_ns, parse::TIME, 0..86_400_000_000_001)
    }

    pub fn size(&self, key: &'a str) -> Result<Option<u64>, Error> {
        self.quantity(key, parse::size_bytes, parse::SIZE, 1..1 << 41)
    }

    /// Returns a whole number, given as a number or as a string that is one after it is filled
    /// in.
    pub fn number(&self, key: &'a str, range: Range<u64>) -> Result<Option<u64>, Error> {
        self.get(key)
            .map(|item| item.number(self.env, range))
            .transpose()
    }

    pub fn boolean(&self, key: &'a str) -> Result<Option<bool>, Error> {
        let Some(item) = self.get(key) else {
            return Ok(None);
        };
        let expected = "true or false";
        let text = item.scalar(self.env, expected)?;
        match text.as_str() {
            "true" => Ok(Some(true)),
            "false" => Ok(Some(false)),
            _ => Err(item.fault(&quote(&text), expected)),
        }
    }

    /// Returns a number with a fraction, such as a bound's.
    pub fn real(&self, key: &'a str) -> Result<Option<f64>, Error> {
        let Some(item) = self.get(key) else {
            return Ok(None);
        };
        let expected = "a number";
        let text = item.scalar(self.env, expected)?;
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Some(value)),
            _ => Err(item.fault(&quote(&text), expected)),
        }
    }
}

impl<'a> Item<'a> {
    pub fn new(source: Source<'a>, key: &'a str, value: &'a Spanned<DeValue<'a>>) -> Self {
        Self {
            key,
            at: At::Offset(value.span().start),
            source,
            value: Given::Toml(value.get_ref()),
        }
    }

    /// Creates an item from a value on the command line.
    pub fn set(source: Source<'a>, key: &'a str, dotted: String, value: &'a str) -> Self {
        Self {
            key,
            at: At::Set(dotted),
            source,
            value: Given::Set(value),
        }
    }

    /// Returns where the value is. O(length of the text): a line is counted only if it is asked
    /// for.
    pub fn place(&self) -> Place {
        match &self.at {
            At::Offset(offset) => self.source.place(*offset),
            At::Set(key) => Place::Set { key: key.clone() },
        }
    }

    pub fn fault(&self, value: &str, expected: &str) -> Error {
        Error {
            place: self.place(),
            problem: Box::new(Problem::Value {
                key: self.key.to_owned(),
                value: value.to_owned(),
                expected: expected.to_owned(),
            }),
        }
    }

    /// Returns an error about the value as a whole.
    pub fn expected(&self, expected: &str) -> Error {
        let value = match self.value {
            Given::Set(text) => quote(text),
            Given::Toml(value) => describe(value),
        };
        self.fault(&value, expected)
    }

    /// Returns a string, filled in.
    pub fn text(&self, env: &Env, expected: &str) -> Result<String, Error> {
        let text = match self.value {
            Given::Set(text) => text,
            Given::Toml(DeValue::String(text)) => text,
            Given::Toml(_) => return Err(self.expected(expected)),
        };
        expr::fill(text, env).map_err(|fault| self.unfilled(text, fault, env))
    }

    /// Returns any value that is not a list or a table, as text, filled in.
    pub fn scalar(&self, env: &Env, expected: &str) -> Result<String, Error> {
        match self.value {
            Given::Toml(DeValue::Integer(value)) => {
                i64::from_str_radix(value.as_str(), value.radix())
                    .map(|value| value.to_string())
                    .map_err(|_| self.expected(expected))
            }
            Given::Toml(DeValue::Float(value)) => Ok(value.as_str().to_owned()),
            Given::Toml(DeValue::Boolean(value)) => Ok(value.to_string()),
            _ => self.text(env, expected),
        }
    }

    pub fn number(&self, env: &Env, range: Range<u64>) -> Result<u64, Error> {
        let expected = format!("a whole number, {} to {}", range.start, range.end - 1);
        let text = self.scalar(env, &expected)?;
        text.parse()
            .ok()
            .filter(|value| range.contains(value))
            .ok_or_else(|| self.fault(&quote(&text), &expected))
    }

    /// Returns the elements of a list, or the value itself; commas separate the elements of a
    /// value from the command line.
    pub fn elements(&self) -> Vec<Item<'a>> {
        match self.value {
            Given::Toml(DeValue::Array(list)) => list
                .iter()
                .map(|value| Item::new(self.source, self.key, value))
                .collect(),
            Given::Toml(_) => vec![self.clone()],
            Given::Set(text) => text
                .split(',')
                .map(|part| Item {
                    value: Given::Set(part.trim()),
                    ..self.clone()
                })
                .collect(),
        }
    }

    /// Returns the elements of a list.
    pub fn list(&self, expected: &str) -> Result<Vec<Item<'a>>, Error> {
        match self.value {
            Given::Toml(DeValue::Array(_)) => Ok(self.elements()),
            _ => Err(self.expected(expected)),
        }
    }

    /// Returns the entries of a table.
    pub fn entries(&self, expected: &str) -> Result<Vec<Item<'a>>, Error> {
        match self.value {
            Given::Toml(DeValue::Table(table)) => Ok(table
                .iter()
                .map(|(key, value)| Item::new(self.source, key.get_ref(), value))
                .collect()),
            _ => Err(self.expected(expected)),
        }
    }

    /// Returns an error about a name that is not among the known ones.
    pub fn unknown(&self, value: &str, what: &str, known: Vec<String>) -> Error {
        Error {
            place: self.place(),
            problem: Box::new(Problem::Reference {
                key: self.key.to_owned(),
                value: value.to_owned(),
                what: what.to_owned(),
                known,
            }),
        }
    }

    fn unfilled(&self, text: &str, fault: Fault, env: &Env) -> Error {
        match fault {
            Fault::Expected(what) => self.fault(&quote(text), &what),
            Fault::Unknown(name) => self.unknown(&name, "parameter", env.keys().cloned().collect()),
        }
    }
}

/// Returns the table under a key, and its offset.
pub(crate) fn table<'a>(
    source: Source<'a>,
    parent: &'a DeTable<'a>,
    key: &'a str,
) -> Result<Option<(&'a DeTable<'a>, usize)>, Error> {
    let Some((name, value)) = parent.get_key_value(key) else {
        return Ok(None);
    };
    match value.get_ref() {
        DeValue::Table(table) => Ok(Some((table, name.span().start))),
        other => Err(not_a(
            source,
            value,
            key,
            other,
            &format!("a table, [{key}]"),
        )),
    }
}

/// Returns the tables of an array of tables, each with its offset.
pub(crate) fn tables<'a>(
    source: Source<'a>,
    parent: &'a DeTable<'a>,
    key: &str,
) -> Result<Vec<(&'a DeTable<'a>, usize)>, Error> {
    let Some(value) = parent.get(key) else {
        return Ok(Vec::new());
    };
    let expected = format!("an array of tables, [[{key}]]");
    let DeValue::Array(list) = value.get_ref() else {
        return Err(not_a(source, value, key, value.get_ref(), &expected));
    };
    list.iter()
        .map(|entry| match entry.get_ref() {
            DeValue::Table(table) => Ok((table, entry.span().start)),
            other => Err(not_a(source, entry, key, other, &expected)),
        })
        .collect()
}

fn not_a(
    source: Source<'_>,
    at: &Spanned<DeValue<'_>>,
    key: &str,
    value: &DeValue<'_>,
    expected: &str,
) -> Error {
    Error {
        place: source.place(at.span().start),
        problem: Box::new(Problem::Value {
            key: key.to_owned(),
            value: describe(value),
            expected: expected.to_owned(),
        }),
    }
}
