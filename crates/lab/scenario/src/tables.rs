// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions that the readers of all tables share: they read a scenario's tables with their
//! conditions, names, references and ranges.

use toml_reader::{Error, Item, Taken, quote};

use crate::expr::Env;
use crate::model::{Cable, Cell, Direction, End};
use crate::reader::{Fill, Overrides, Section};
use crate::sweep::{Space, repetitions, takes_part};

const CONDITIONAL: &[(&str, &str)] = &[
    ("bottleneck", "[[bottleneck]]"),
    ("tc", "[[tc]]"),
    ("sysctl", "[[sysctl]]"),
    ("program", "[[program]]"),
    ("flow", "[[flow]]"),
    ("freeze", "[[freeze]]"),
    ("impairment", "[[impairment]]"),
    ("capture", "[[capture]]"),
    ("stop", "[[stop]]"),
    ("segment", "[[segment]]"),
    ("stream", "[[stream]]"),
    ("node", "[[node]]"),
    ("closeup", "[[closeup]]"),
    ("bound", "[[bound]]"),
];

/// Description of a valid name, for messages.
pub(crate) const WORD: &str =
    "a name of letters, digits, `.`, `_` and `-`, a letter or digit first";

/// Returns whether `text` can name a file, a namespace or a flow.
pub(crate) fn is_word(text: &str, longest: usize) -> bool {
    text.len() <= longest
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// The names in use.
#[derive(Default)]
pub(crate) struct Names(Taken<String>);

impl Names {
    /// Returns the section's name, and rejects one that is in use.
    pub fn take(
        &mut self,
        section: &Section<'_, '_>,
        expected: &str,
        fits: impl Fn(&str) -> bool,
    ) -> Result<String, Error> {
        let item = section.require("name", expected)?;
        let name = item.filled(section.env, expected)?;
        if !fits(&name) {
            return Err(item.fault_of(&quote(&name), expected));
        }
        self.0.insert(item, name.clone(), "a name")?;
        Ok(name)
    }
}

/// The tables of a scenario.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub root: toml_reader::Section<'a>,
    pub overrides: &'a Overrides,
}

impl<'a> Reading<'a> {
    pub fn section<'e>(&self, table: toml_reader::Section<'a>, env: &'e Env) -> Section<'a, 'e> {
        Section {
            table,
            shadow: None,
            prefix: None,
            overrides: self.overrides,
            env,
        }
    }

    /// Reads every table of an array, after checking its keys.
    pub fn each_table(
        &self,
        key: &str,
        label: &'static str,
        known: &[&str],
        env: &Env,
        mut read: impl FnMut(&Section<'a, '_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for table in self.root.unchecked_tables(key, label)? {
            let section = self.section(table, env);
            section.allow(known)?;
            read(&section)?;
        }
        Ok(())
    }

    /// Reads every repetition of the tables of an array that take `when` and `each`.
    pub fn each_repetition(
        &self,
        key: &str,
        label: &'static str,
        known: &[&str],
        env: &Env,
        mut read: impl FnMut(&Section<'a, '_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.each_table(key, label, known, env, |section| {
            if !takes_part(section, env)? {
                return Ok(());
            }
            for env in repetitions(section, env)? {
                read(&Section {
                    env: &env,
                    ..*section
                })?;
            }
            Ok(())
        })
    }

    pub fn check_whens(&self, space: &Space<'a>, cells: &[Env]) -> Result<(), Error> {
        let env = Env::new();
        for (key, label) in CONDITIONAL {
            for table in self.root.unchecked_tables(key, label)? {
                space.check_when(&self.section(table, &env), cells)?;
            }
        }
        Ok(())
    }
}

/// Returns a value; its absence is an error.
pub(crate) fn required<T>(
    section: &Section<'_, '_>,
    key: &str,
    value: Option<T>,
    expected: &str,
) -> Result<T, Error> {
    value.ok_or_else(|| section.missing(key, expected))
}

/// Returns the index of a name among those that exist.
pub(crate) fn reference<'n>(
    section: &Section<'_, '_>,
    key: &'static str,
    what: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Result<usize, Error> {
    let expected = format!("the name of a {what}");
    let item = section.require(key, &expected)?;
    let name = item.filled(section.env, &expected)?;
    find(item, &name, what, names)
}

pub(crate) fn find<'n>(
    item: Item<'_>,
    name: &str,
    what: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Result<usize, Error> {
    names
        .clone()
        .position(|known| known == name)
        .ok_or_else(|| item.dangling(name, what, names.map(str::to_owned).collect()))
}

/// Returns the host that a key names.
pub(crate) fn host(
    section: &Section<'_, '_>,
    key: &'static str,
    cell: &Cell,
) -> Result<usize, Error> {
    let names = cell.hosts.iter().map(|host| host.name.as_str());
    reference(section, key, "host", names)
}

/// Reads a direction of a cable: `cable`, and under `key` the host at whose end it begins.
pub(crate) fn direction(
    section: &Section<'_, '_>,
    key: &'static str,
    cell: &Cell,
) -> Result<Direction, Error> {
    let names = cell.cables.iter().map(|cable| cable.name.as_str());
    let cable = reference(section, "cable", "cable", names)?;
    let hosts: Vec<usize> = cell.cables[cable].ends.iter().map(|end| end.host).collect();
    let names = hosts.iter().map(|host| cell.hosts[*host].name.as_str());
    let end = reference(section, key, "host at an end of the cable", names)?;
    Ok(Direction {
        cable,
        end: End::BOTH[end],
    })
}

/// Rejects a value that is not within `low..=high`.
pub(crate) fn within(
    section: &Section<'_, '_>,
    key: &'static str,
    value: u64,
    low: u64,
    high: u64,
) -> Result<(), Error> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    let expected = format!("{low} to {high} of its smallest unit");
    Err(section.require(key, &expected)?.fault(&expected))
}

/// Reads two instants: the second is later than the first and at most `end_ns`, its default.
pub(crate) fn span(
    section: &Section<'_, '_>,
    from: &'static str,
    to: &'static str,
    end_ns: u64,
    clamp: bool,
) -> Result<(u64, u64), Error> {
    let from_ns = section.time(from)?.unwrap_or(0);
    let given_ns = section.time(to)?.unwrap_or(end_ns);
    let to_ns = if clamp {
        given_ns.min(end_ns)
    } else {
        given_ns
    };
    if to_ns > end_ns {
        let expected = "a time up to the cell's duration";
        return Err(section.require(to, expected)?.fault(expected));
    }
    if from_ns >= to_ns {
        let expected = format!("a time before {to_ns} ns, where it ends");
        return Err(section.require(from, &expected)?.fault(&expected));
    }
    Ok((from_ns, to_ns))
}

/// Returns the first cable of a path whose far end is a sink.
pub(crate) fn sink_on<'c>(cell: &'c Cell, path: &[Direction]) -> Option<&'c Cable> {
    path.iter()
        .map(|hop| &cell.cables[hop.cable])
        .find(|cable| cable.sink)
}
