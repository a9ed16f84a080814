// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `[param]`, `[sweep]`, `[quick]`, `when` and `each`, and computes every combination of
//! the named values.

use toml_reader::{Error, Item, quote};

use crate::expr::{Env, is_name};
use crate::reader::{Fill, Overrides, Section};

/// Most cells or repetitions; a larger number is taken for a mistake. A qdisc has as many
/// handles for classes.
const COMBINATIONS_MAX: usize = 65_536;

/// A named value, or several values to sweep over.
struct Axis<'a> {
    name: &'a str,
    sweep: bool,
    /// The values of this run.
    values: Vec<Item<'a>>,
    /// Every value that the file mentions for the name.
    mentioned: Vec<Item<'a>>,
}

/// The parameters of a scenario.
pub(crate) struct Space<'a> {
    axes: Vec<Axis<'a>>,
    pub per_boot: usize,
}

impl<'a> Space<'a> {
    /// Reads `[param]` and `[sweep]`, with the replacements of `[quick]` and the command line.
    pub fn read(
        root: toml_reader::Section<'a>,
        is_quick: bool,
        overrides: &'a Overrides,
    ) -> Result<Self, Error> {
        let mut space = Self {
            axes: Vec::new(),
            per_boot: 1,
        };
        let quick = root.table("quick", "[quick]")?;
        for (kind, label, sweep) in [
            ("param", "[quick] param", false),
            ("sweep", "[quick] sweep", true),
        ] {
            let short = match quick {
                Some(quick) => quick.table(kind, label)?,
                None => None,
            };
            let own = root.table(kind, "")?;
            if let Some(short) = short {
                let known = own.into_iter().flat_map(toml_reader::Section::items);
                let known: Vec<&str> = known.map(Item::key).collect();
                short.allow(known.iter().copied())?;
            }
            let Some(own) = own else { continue };
            let empty = Env::new();
            let section = Section {
                table: own,
                shadow: short.filter(|_| is_quick),
                prefix: Some(""),
                overrides,
                env: &empty,
            };
            for item in own.items() {
                let name = item.key();
                if sweep && name == "per_boot" {
                    let per_boot = section.number("per_boot", 1..1001)?.unwrap_or(1);
                    space.per_boot = usize::try_from(per_boot).unwrap_or(1);
                    continue;
                }
                space.check_name(item)?;
                let shortened = short.and_then(|table| table.get(name));
                let chosen = section.get(name).unwrap_or(item);
                space.axes.push(Axis::new(sweep, item, shortened, chosen)?);
            }
        }
        Ok(space)
    }

    fn check_name(&self, item: Item<'a>) -> Result<(), Error> {
        if !is_name(item.key()) {
            return Err(item.fault_of(
                &quote(item.key()),
                "a name of letters, digits and `_`, a letter first",
            ));
        }
        if self.axes.iter().any(|axis| axis.name == item.key()) {
            return Err(item.fault("a name that is not in [param] as well"));
        }
        Ok(())
    }

    /// Returns every combination, in order; the last name's values change fastest.
    pub fn combinations(&self) -> Result<Vec<Env>, Error> {
        let mut all = vec![Env::new()];
        for axis in &self.axes {
            let mut longer = Vec::new();
            for env in &all {
                for item in &axis.values {
                    for value in values(*item, env, axis.sweep)? {
                        let mut env = env.clone();
                        env.insert(axis.name.to_owned(), value);
                        longer.push(env);
                        if longer.len() > COMBINATIONS_MAX {
                            return Err(
                                item.fault(&format!("at most {COMBINATIONS_MAX} combinations"))
                            );
                        }
                    }
                }
            }
            all = longer;
        }
        Ok(all)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().map(|axis| axis.name)
    }

    /// Rejects a `when` that can never match.
    fn check_condition(&self, condition: Item<'a>, cells: &[Env]) -> Result<(), Error> {
        let Some(axis) = self.axes.iter().find(|axis| axis.name == condition.key()) else {
            let known = self.names().map(str::to_owned).collect();
            return Err(condition.dangling(condition.key(), "parameter", known));
        };
        if !axis.sweep {
            return Ok(()); // --set may give it any value
        }
        let mut known: Vec<String> = cells
            .iter()
            .filter_map(|env| env.get(axis.name).cloned())
            .collect();
        for item in &axis.mentioned {
            known.extend(values(*item, &cells[0], true)?);
        }
        known.sort();
        known.dedup();
        for wanted in condition.elements() {
            let value = wanted.filled_scalar(&Env::new(), "a value of the parameter")?;
            if !known.contains(&value) {
                let what = format!("value of `{}`", axis.name);
                return Err(wanted.dangling(&value, &what, known));
            }
        }
        Ok(())
    }

    /// Checks the `when` of a section once for all cells.
    pub fn check_when(&self, section: &Section<'a, '_>, cells: &[Env]) -> Result<(), Error> {
        for condition in conditions(section)? {
            self.check_condition(condition, cells)?;
        }
        Ok(())
    }
}

impl<'a> Axis<'a> {
    fn new(
        sweep: bool,
        own: Item<'a>,
        short: Option<Item<'a>>,
        chosen: Item<'a>,
    ) -> Result<Self, Error> {
        let several = |item: Item<'a>| {
            if sweep { item.elements() } else { vec![item] }
        };
        let values = several(chosen);
        if values.is_empty() {
            return Err(chosen.fault("at least one value"));
        }
        let mentioned = [Some(own), short].into_iter().flatten().flat_map(several);
        Ok(Self {
            name: own.key(),
            sweep,
            values,
            mentioned: mentioned.collect(),
        })
    }
}

fn conditions<'a>(section: &Section<'a, '_>) -> Result<Vec<Item<'a>>, Error> {
    match section.get("when") {
        None => Ok(Vec::new()),
        Some(item) => item
            .expecting("a table such as { shaper = \"psp\" }")
            .entries(),
    }
}

/// Returns whether a section takes part in a cell of these parameters.
pub(crate) fn takes_part(section: &Section<'_, '_>, env: &Env) -> Result<bool, Error> {
    for condition in conditions(section)? {
        let mut matched = false;
        for wanted in condition.elements() {
            let wanted = wanted.filled_scalar(&Env::new(), "a value of the parameter")?;
            matched |= env.get(condition.key()) == Some(&wanted);
        }
        if !matched {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the parameters of every repetition of a section that has `each`.
pub(crate) fn repetitions(section: &Section<'_, '_>, env: &Env) -> Result<Vec<Env>, Error> {
    let mut all = vec![env.clone()];
    let Some(each) = section.get("each") else {
        return Ok(all);
    };
    for axis in each
        .expecting("a table such as { a = \"1..16\" }")
        .entries()?
    {
        if !is_name(axis.key()) || env.contains_key(axis.key()) {
            return Err(axis.fault_of(
                &quote(axis.key()),
                "a name of letters, digits and `_` that is no parameter",
            ));
        }
        let mut longer = Vec::new();
        for env in &all {
            for item in axis.elements() {
                for value in values(item, env, true)? {
                    let mut env = env.clone();
                    env.insert(axis.key().to_owned(), value);
                    longer.push(env);
                    if longer.len() > COMBINATIONS_MAX {
                        return Err(each.fault(&format!("at most {COMBINATIONS_MAX} repetitions")));
                    }
                }
            }
        }
        all = longer;
    }
    Ok(all)
}

/// Returns the values of an element: the element itself, or with `ranges` every whole number
/// of `"1..100"`.
fn values(item: Item<'_>, env: &Env, ranges: bool) -> Result<Vec<String>, Error> {
    let text = item.filled_scalar(env, "a string, a number or true or false")?;
    let bounds = text.split_once("..").filter(|_| ranges);
    let Some((Ok(from), Ok(to))) =
        bounds.map(|(from, to)| (from.parse::<u32>(), to.parse::<u32>()))
    else {
        return Ok(vec![text]);
    };
    if from > to || to - from >= COMBINATIONS_MAX as u32 {
        return Err(item.fault_of(
            &quote(&text),
            &format!("a range that counts up, of at most {COMBINATIONS_MAX} values"),
        ));
    }
    Ok((from..=to).map(|value| value.to_string()).collect())
}
