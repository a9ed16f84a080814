// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merges the shards of one sweep into one table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::sim::shard::{Part, Shard};
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
    let whole = Part {
        shard: Shard::default(),
        ..first
    };
    whole.check_folder(out)?;
    write_table(out, &entries)?;
    whole.write(out)?;
    Ok((entries.len(), out.join("table.csv")))
}
