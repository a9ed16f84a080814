// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merges the shards of one sweep into one table.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::sim::shard::{self, Part, Shard, Sweep};
use crate::sim::sweep_table::{self, write_table};

/// Merges folders into `out`; refuses folders that are not together one whole sweep. Returns the
/// number of pieces of work, and the path of the table.
pub fn merge(folders: &[PathBuf], out: &Path) -> Result<(usize, PathBuf)> {
    let mut first: Option<Part> = None;
    let mut entries = BTreeMap::new();
    let mut by = BTreeMap::new();
    for folder in folders {
        let part = Part::read(folder)?;
        if let Some(first) = &first {
            if let Some(difference) = first.sweep.differs_from(&part.sweep) {
                bail!(
                    "{}: another sweep than that of {}: {difference} there",
                    folder.display(),
                    folders[0].display()
                );
            }
        }
        let found = sweep_table::read(folder)?;
        let missing = part.numbers().find(|number| !found.contains_key(number));
        if let Some(number) = missing {
            bail!(
                "{}: shard {}/{} is not finished: number {number} is missing; run it again",
                folder.display(),
                part.shard.index,
                part.shard.count
            );
        }
        for (number, entry) in found {
            if let Some(other) = by.insert(number, folder) {
                bail!(
                    "number {number} is in both {} and {}",
                    other.display(),
                    folder.display()
                );
            }
            entries.insert(number, entry);
        }
        first.get_or_insert(part);
    }
    let first = first.context("nothing to merge")?;
    let gaps = (0..first.sweep.pieces()).filter(|number| !entries.contains_key(number));
    if let Some(number) = gaps.clone().next() {
        bail!(
            "{} of {} numbers are in no shard given, the first is {number}",
            gaps.count(),
            first.sweep.pieces()
        );
    }
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    check_room(out, &first.sweep)?;
    write_table(out, &entries)?;
    let whole = Part {
        shard: Shard::default(),
        ..first
    };
    whole.write(out)?;
    Ok((entries.len(), out.join("table.csv")))
}

/// Checks that the folder is empty, or has the whole table of the same sweep.
fn check_room(out: &Path, sweep: &Sweep) -> Result<()> {
    if out.join(shard::FILE).exists() {
        let there = Part::read(out)?;
        if let Some(difference) = sweep.differs_from(&there.sweep) {
            bail!(
                "--out {}: the folder has another sweep: {difference}; expected a new or empty \
                 folder, or the table of the same sweep",
                out.display()
            );
        }
        ensure!(
            there.shard == Shard::default(),
            "--out {}: the folder has shard {}/{} of this sweep; expected a folder for the joined \
             table",
            out.display(),
            there.shard.index,
            there.shard.count
        );
        return Ok(());
    }
    let is_empty = fs::read_dir(out)
        .with_context(|| format!("cannot read {}", out.display()))?
        .next()
        .is_none();
    ensure!(
        is_empty,
        "--out {}: expected a new or empty folder",
        out.display()
    );
    Ok(())
}
