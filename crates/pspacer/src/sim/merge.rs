// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer sim merge`: the shards of one sweep as one table.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail, ensure};

use super::shard::{Part, Shard};
use super::table::{self, write_table};
use crate::cli::SimMerge;
use crate::output::print;

/// Merges folders; refuses what is not one whole sweep.
pub fn main(args: &SimMerge) -> Result<()> {
    let mut first: Option<Part> = None;
    let mut entries = BTreeMap::new();
    let mut by = BTreeMap::new();
    for folder in &args.folders {
        let part = Part::read(folder)?;
        if let Some(first) = &first {
            if let Some(difference) = first.sweep.differs_from(&part.sweep) {
                bail!(
                    "{}: another sweep than that of {}: {difference} there",
                    folder.display(),
                    args.folders[0].display()
                );
            }
        }
        let found = table::read(folder)?;
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
    let gaps = (0..first.sweep.len()).filter(|number| !entries.contains_key(number));
    if let Some(number) = gaps.clone().next() {
        bail!(
            "{} of {} numbers are in no shard given, the first is {number}",
            gaps.count(),
            first.sweep.len()
        );
    }
    let out = &args.out;
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    // A file of that name may be anybody's.
    let is_ours = Part::read(out).is_ok() && !args.folders.contains(out);
    let is_empty = fs::read_dir(out)
        .with_context(|| format!("cannot read {}", out.display()))?
        .next()
        .is_none();
    ensure!(
        is_empty || is_ours,
        "--out {}: expected a new or empty folder",
        out.display()
    );
    write_table(out, &entries)?;
    let whole = Part {
        shard: Shard::default(),
        ..first
    };
    whole.write(out)?;
    let (rows, table) = (entries.len(), out.join("table.csv"));
    print(&format!("{rows} rows of work: {}\n", table.display()))
}
