// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which part of a sweep is done here, and which sweep it is.

use std::fs::{self, File};
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use fs4::{FileExt, TryLockError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::measure_cell::write;

const FORMAT: &str = "pspacer-sweep-1";
/// What a folder of a sweep has, and no other.
pub const FILE: &str = "sweep.json";

/// Part `index` of `count`: every piece of work whose number leaves `index` when
/// divided by `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// From 0.
    pub index: usize,
    /// At least 1.
    pub count: usize,
}

impl Default for Shard {
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (index, count) = text.split_once('/')?;
            let shard = Self {
                index: index.parse().ok()?,
                count: count.parse().ok()?,
            };
            (shard.index < shard.count).then_some(shard)
        };
        read().ok_or_else(|| format!("{text:?}: expected I/N with I from 0 to N - 1"))
    }
}

/// What tells one sweep from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Of these files.
    pub format: String,
    /// Of the command that made it: another one may compute otherwise.
    pub version: String,
    /// SHA-256 of that command.
    pub command_sha256: String,
    /// The scenario's name.
    pub scenario: String,
    /// SHA-256 of its file.
    pub file_sha256: String,
    /// `--set`.
    pub set: Vec<String>,
    /// `--full`.
    pub full: bool,
    /// Seeds, in order.
    pub seeds: Vec<u64>,
    /// Cells of the scenario; the numbers of the work go through all cells of
    /// the first seed, then of the next.
    pub cells: usize,
}

/// A sweep and the part of it in one folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The whole.
    pub sweep: Sweep,
    /// What of it.
    pub shard: Shard,
}

impl Sweep {
    /// A sweep of this very command.
    pub fn new(scenario: &scenario::Scenario, file: &Path, seeds: Vec<u64>) -> Result<Self> {
        let command = std::env::current_exe().context("cannot tell where this command is")?;
        Ok(Self {
            format: FORMAT.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            command_sha256: sha256(&command)?,
            scenario: scenario.name.clone(),
            file_sha256: sha256(file)?,
            set: vec![],
            full: false,
            seeds,
            cells: scenario.cells.len(),
        })
    }

    /// What tells it from another sweep; `None`: they are the same.
    pub fn differs_from(&self, other: &Self) -> Option<String> {
        let settings = |of: &Self| format!("{:?}", of.set);
        let form = |of: &Self| if of.full { "full" } else { "short" }.to_owned();
        let seeds = |of: &Self| format!("{:?}", of.seeds);
        let short = |sha256: &str| sha256.chars().take(12).collect();
        let all = [
            ("format", self.format.clone(), other.format.clone()),
            ("scenario", self.scenario.clone(), other.scenario.clone()),
            (
                "scenario's file",
                short(&self.file_sha256),
                short(&other.file_sha256),
            ),
            ("--set", settings(self), settings(other)),
            ("form", form(self), form(other)),
            ("seeds", seeds(self), seeds(other)),
            ("version", self.version.clone(), other.version.clone()),
            (
                "command",
                short(&self.command_sha256),
                short(&other.command_sha256),
            ),
            (
                "number of cells",
                self.cells.to_string(),
                other.cells.to_string(),
            ),
        ];
        let differing = all.into_iter().find(|(_, a, b)| a != b);
        differing.map(|(what, a, b)| format!("its {what} is {b}, here {a}"))
    }

    /// Pieces of work.
    pub fn pieces(&self) -> usize {
        self.seeds.len() * self.cells
    }
}

impl Part {
    /// The numbers of its work.
    pub fn numbers(&self) -> impl Iterator<Item = usize> + use<> {
        (self.shard.index..self.sweep.pieces()).step_by(self.shard.count)
    }

    /// Reads what a folder has.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let text = fs::read_to_string(&path).with_context(|| {
            format!("cannot read {}: expected a sweep's folder", path.display())
        })?;
        let part: Self = serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged", path.display()))?;
        ensure!(
            part.sweep.format == FORMAT && part.shard.index < part.shard.count,
            "{}: not a sweep of this version",
            path.display()
        );
        Ok(part)
    }

    /// Writes it.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        // Whole or not at all: the folder of a sweep is known by this file.
        let next = folder.join(format!("{FILE}.new"));
        let moved = write(&next, text.as_bytes()).and_then(|()| {
            let path = folder.join(FILE);
            fs::rename(&next, &path).with_context(|| format!("cannot write {}", path.display()))
        });
        if moved.is_err() {
            // What is left of it would make the folder look like somebody's.
            let _ = fs::remove_file(&next);
        }
        moved
    }
}

/// Held while a sweep's folder is written to.
///
/// # Errors
/// When another run of the sweep has it.
pub fn lock(folder: &Path) -> Result<File> {
    let path = folder.join(FILE);
    let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let is_taken = matches!(FileExt::try_lock(&file), Err(TryLockError::WouldBlock));
    ensure!(
        !is_taken,
        "--out {}: another run is writing there; expected a folder for each shard",
        folder.display()
    );
    Ok(file)
}

fn sha256(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let digest = Sha256::digest(bytes);
    Ok(digest.iter().map(|b| format!("{b:02x}")).collect())
}

/// `1..100`, `7`, or several of them with commas between.
pub fn seeds(text: &str) -> Result<Vec<u64>, String> {
    const MOST: u64 = 1_000_000;
    let fault = || format!("{text:?}: expected seeds such as 1..100 or 1,2,5");
    let mut all = vec![];
    for part in text.split(',') {
        let (from, to) = part.split_once("..").unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| fault());
        let (from, to) = (number(from)?, number(to)?);
        if from > to || to - from >= MOST {
            return Err(fault());
        }
        all.extend(from..=to);
    }
    let mut sorted = all.clone();
    sorted.sort_unstable();
    sorted.dedup();
    match sorted.len() == all.len() {
        true => Ok(all),
        false => Err(format!("{text:?}: a seed is there twice")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_and_seeds() {
        assert_eq!("3/4".parse(), Ok(Shard { index: 3, count: 4 }));
        for bad in ["4/4", "1", "a/b", "0/0", "-1/2"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
        assert_eq!(seeds("1..3,7"), Ok(vec![1, 2, 3, 7]));
        for bad in ["", "3..1", "1,1", "x", "1..99999999"] {
            assert!(seeds(bad).is_err(), "{bad}");
        }
    }
}
