// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a [`Scenario`] from text.

use toml_reader::{Document, Error, Place, Problem, quote};

use crate::expr::Env;
use crate::model::{Kernel, Scenario};
use crate::reader::{Fill, Overrides, Section};
use crate::sweep::Space;
use crate::tables::Reading;

/// Top-level keys whose value `--set` may replace.
const SETTABLE: &[&str] = &[
    "kernel",
    "seed",
    "runs",
    "duration",
    "settle",
    "memory",
    "cpus",
    "noise.hold_max",
    "noise.every",
];
const ROOT: &[&str] = &[
    "name",
    "title",
    "source",
    "kernel",
    "seed",
    "runs",
    "duration",
    "settle",
    "memory",
    "cpus",
    "param",
    "sweep",
    "quick",
    "host",
    "cable",
    "bottleneck",
    "itm",
    "segment",
    "stream",
    "node",
    "tc",
    "sysctl",
    "program",
    "noise",
    "flow",
    "freeze",
    "impairment",
    "capture",
    "stop",
    "window",
    "closeup",
    "bound",
];

const QUICK: &[&str] = &["param", "sweep", "duration", "settle", "runs"];

/// Most runs of a cell; larger numbers call for a sweep.
const RUNS_MAX: u64 = 10_000;

/// Options of reading a scenario.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether to read the short form, in which `[quick]` applies.
    pub quick: bool,
    /// Keys and values that replace those of the file: parameters, sweep values (several
    /// separated by commas), or dotted keys of the top level. They override `[quick]`.
    pub set: Vec<(String, String)>,
}

/// Reads a scenario. `file` is its name in messages.
///
/// # Errors
/// Returns the first error: with the file and line, the key, its value and what was expected.
pub fn parse(file: &str, text: &str, options: &Options) -> Result<Scenario, Error> {
    let document = Document::parse(file, text)?;
    let root = document.top("the scenario", &[]);
    let overrides: Overrides = options.set.iter().cloned().collect();
    let space = Space::read(root, options.quick, &overrides)?;
    check_overrides(&options.set, &space)?;
    let quick = check_quick(root)?;
    let empty = Env::new();
    let section = Section {
        table: root,
        shadow: quick.filter(|_| options.quick),
        prefix: Some(""),
        overrides: &overrides,
        env: &empty,
    };
    section.allow(ROOT)?;
    let envs = space.combinations()?;
    let reading = Reading {
        root,
        overrides: &overrides,
    };
    reading.check_whens(&space, &envs)?;
    let mut cells = Vec::with_capacity(envs.len());
    for (index, env) in envs.iter().enumerate() {
        cells.push(reading.cell(index, &Section { env, ..section })?);
    }
    Ok(Scenario {
        name: name(&section)?,
        title: required_text(&section, "title")?,
        source: section.text("source")?.unwrap_or_default(),
        kernel: kernel(&section)?,
        seed: section.number("seed", 0..1 << 63)?.unwrap_or(1),
        runs: section.number("runs", 1..RUNS_MAX + 1)?.unwrap_or(1),
        per_boot: space.per_boot,
        cells,
    })
}

fn check_overrides(set: &[(String, String)], space: &Space<'_>) -> Result<(), Error> {
    let known: Vec<&str> = space.names().chain(SETTABLE.iter().copied()).collect();
    for (key, _) in set {
        if !known.contains(&key.as_str()) {
            return Err(Error {
                place: Place::Set { key: key.clone() },
                problem: Box::new(Problem::UnknownKey {
                    key: key.clone(),
                    section: "--set".into(),
                    known: known.iter().map(ToString::to_string).collect(),
                }),
            });
        }
    }
    Ok(())
}

fn check_quick(root: toml_reader::Section<'_>) -> Result<Option<toml_reader::Section<'_>>, Error> {
    let quick = root.table("quick", "[quick]")?;
    if let Some(quick) = quick {
        quick.allow(QUICK.iter().copied())?;
    }
    Ok(quick)
}

fn required_text(section: &Section<'_, '_>, key: &'static str) -> Result<String, Error> {
    section
        .text(key)?
        .ok_or_else(|| section.missing(key, "a string"))
}

fn name(section: &Section<'_, '_>) -> Result<String, Error> {
    let expected = "a name of letters, digits, `.`, `_` and `-`";
    let item = section.require("name", expected)?;
    let name = item.filled(section.env, expected)?;
    if crate::tables::is_word(&name, 63) {
        Ok(name)
    } else {
        Err(item.fault_of(&quote(&name), expected))
    }
}

fn kernel(section: &Section<'_, '_>) -> Result<Kernel, Error> {
    let expected = "\"6.1\", \"6.12\" or \"7\"";
    let Some(item) = section.get("kernel") else {
        return Ok(Kernel::V6_1);
    };
    let text = item.filled(section.env, expected)?;
    text.parse()
        .map_err(|_| item.fault_of(&quote(&text), expected))
}
