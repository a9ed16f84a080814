// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes a sweep, and the part of it that is done in one folder.

use std::fs::{self, File};
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use fs4::{FileExt, TryLockError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::measure_cell::write;

const FORMAT: &str = "pspacer-sweep-1";
/// The file that only the folder of a sweep has.
pub const FILE: &str = "sweep.json";

/// Part `index` of `count` parts: every piece of work whose number modulo `count` is `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Index of the part, from 0.
    pub index: usize,
    /// Number of parts, at least 1.
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

/// The properties that distinguish one sweep from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Format of the sweep's files.
    pub format: String,
    /// Version of the command that made it: another version may compute differently.
    pub version: String,
    /// SHA-256 of that command's file.
    pub command_sha256: String,
    pub scenario: String,
    /// SHA-256 of the scenario's file.
    pub file_sha256: String,
    /// The values of `--set`.
    pub set: Vec<String>,
    /// Whether `--full` was given.
    pub full: bool,
    /// The seeds, in order.
    pub seeds: Vec<u64>,
    /// Number of the scenario's cells. Pieces of work are numbered through all cells of the first
    /// seed, then of the next.
    pub cells: usize,
}

/// A sweep and the part of it in one folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub sweep: Sweep,
    /// The part of it in the folder.
    pub shard: Shard,
}

impl Sweep {
    /// Describes a sweep by the running command.
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

    /// Returns in words how it differs from another sweep; `None` if they are the same.
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

    /// Returns the number of pieces of work.
    pub fn pieces(&self) -> usize {
        self.seeds.len() * self.cells
    }
}

impl Part {
    /// Makes the folder for this part. Returns whether it has the part already; refuses a folder
    /// that has another sweep or shard, or other files.
    pub fn check_folder(&self, out: &Path) -> Result<bool> {
        fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
        if out.join(FILE).exists() {
            let there = Self::read(out)?;
            if let Some(difference) = self.sweep.differs_from(&there.sweep) {
                bail!(
                    "--out {}: the folder has another sweep: {difference}; expected a new or \
                     empty folder, or one of the same sweep",
                    out.display()
                );
            }
            ensure!(
                there.shard == self.shard,
                "--out {}: the folder has shard {}/{} of this sweep; expected a folder for each \
                 shard and for the joined table",
                out.display(),
                there.shard.index,
                there.shard.count
            );
            return Ok(true);
        }
        let is_empty = fs::read_dir(out)
            .with_context(|| format!("cannot read {}", out.display()))?
            .next()
            .is_none();
        ensure!(
            is_empty,
            "--out {}: the folder has files that are no sweep's; expected a new or empty folder",
            out.display()
        );
        Ok(false)
    }

    /// Returns the numbers of the part's pieces of work.
    pub fn numbers(&self) -> impl Iterator<Item = usize> + use<> {
        (self.shard.index..self.sweep.pieces()).step_by(self.shard.count)
    }

    /// Reads the description from a folder.
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

    /// Writes the description into a folder.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        // The file is written whole or not at all, because it marks the folder of a sweep.
        let next = folder.join(format!("{FILE}.new"));
        let moved = write(&next, text.as_bytes()).and_then(|()| {
            let path = folder.join(FILE);
            fs::rename(&next, &path).with_context(|| format!("cannot write {}", path.display()))
        });
        if moved.is_err() {
            // A partly written file would make the folder look like one with foreign files.
            let _ = fs::remove_file(&next);
        }
        moved
    }
}

/// Locks a sweep's folder for writing. The lock is held until the file is dropped.
///
/// # Errors
/// When another run of the sweep holds the lock.
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

/// Parses seeds: `1..100`, `7`, or several of these separated by commas.
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
    if sorted.len() == all.len() {
        Ok(all)
    } else {
        Err(format!("{text:?}: a seed is there twice"))
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
