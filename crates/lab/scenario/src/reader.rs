// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads values whose strings have `${...}`, which `[quick]` and the command line may replace.

use std::collections::HashMap;
use std::ops::Range;

use toml_reader::{Error, Item, quote};
use units::parse;

use crate::expr::{self, Env, Fault};

/// Values from the command line for top-level keys and for keys of `[noise]`, by dotted key.
pub(crate) type Overrides = HashMap<String, String>;

/// A table that is being read, and the names that its strings may use.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a, 'e> {
    pub table: toml_reader::Section<'a>,
    /// Table whose keys override those of `table`.
    pub shadow: Option<toml_reader::Section<'a>>,
    /// Prefix of this table's keys in `overrides`: "" or "noise."; `None` if they cannot be
    /// overridden.
    pub prefix: Option<&'a str>,
    pub overrides: &'a Overrides,
    pub env: &'e Env,
}

impl<'a> Section<'a, '_> {
    /// Rejects keys that are not among `known`.
    pub fn allow(&self, known: &[&str]) -> Result<(), Error> {
        self.table.allow(known.iter().copied())
    }

    /// Returns the value of a key, if it has one.
    pub fn get(&self, key: &'a str) -> Option<Item<'a>> {
        if let Some(prefix) = self.prefix {
            if let Some(value) = self.overrides.get(&format!("{prefix}{key}")) {
                return Some(self.table.set(prefix, key, value));
            }
        }
        let shadow = self.shadow.and_then(|table| table.get(key));
        shadow.or_else(|| self.table.get(key))
    }

    /// Returns an error about a key that is absent.
    pub fn missing(&self, key: &str, expected: &str) -> Error {
        self.table.lacks(key, expected)
    }

    pub fn require(&self, key: &'a str, expected: &str) -> Result<Item<'a>, Error> {
        self.get(key).ok_or_else(|| self.missing(key, expected))
    }

    /// Returns a string with its `${...}` filled in.
    pub fn text(&self, key: &'a str) -> Result<Option<String>, Error> {
        self.get(key)
            .map(|item| item.filled(self.env, "a string"))
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
        let text = item.filled(self.env, expected)?;
        let value = parse(&text).ok_or_else(|| item.fault_of(&quote(&text), expected))?;
        if range.contains(&value) {
            return Ok(Some(value));
        }
        Err(item.fault_of(
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
        let expected = format!("a whole number, {} to {}", range.start, range.end - 1);
        self.scalar(key, &expected, |text| {
            text.parse().ok().filter(|value| range.contains(value))
        })
    }

    pub fn boolean(&self, key: &'a str) -> Result<Option<bool>, Error> {
        self.scalar(key, "true or false", |text| text.parse().ok())
    }

    /// Returns a number with a fraction, such as a bound's.
    pub fn real(&self, key: &'a str) -> Result<Option<f64>, Error> {
        self.scalar(key, "a number", |text| {
            text.parse().ok().filter(|value: &f64| value.is_finite())
        })
    }

    fn scalar<T>(
        &self,
        key: &'a str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(item) = self.get(key) else {
            return Ok(None);
        };
        let text = item.filled_scalar(self.env, expected)?;
        let value = parse(&text);
        let fault = || item.fault_of(&quote(&text), expected);
        value.ok_or_else(fault).map(Some)
    }
}

/// Values whose `${...}` is filled in.
pub(crate) trait Fill {
    /// Returns a string, filled in.
    fn filled(self, env: &Env, expected: &str) -> Result<String, Error>;

    /// Returns any value that is not a list or a table, as text, filled in.
    fn filled_scalar(self, env: &Env, expected: &str) -> Result<String, Error>;
}

impl Fill for Item<'_> {
    fn filled(self, env: &Env, expected: &str) -> Result<String, Error> {
        fill(self, self.expecting(expected).text()?, env)
    }

    fn filled_scalar(self, env: &Env, expected: &str) -> Result<String, Error> {
        fill(self, &self.expecting(expected).scalar()?, env)
    }
}

fn fill(item: Item<'_>, text: &str, env: &Env) -> Result<String, Error> {
    expr::fill(text, env).map_err(|fault| match fault {
        Fault::Expected(what) => item.fault_of(&quote(text), &what),
        Fault::Unknown(name) => item.dangling(&name, "parameter", env.keys().cloned().collect()),
    })
}
