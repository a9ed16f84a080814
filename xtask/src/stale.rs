// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask stale`: which pages of the results are older than the code that their figures come from.

use std::fs;

use anyhow::{Context, Result, ensure};
use clap::Args;
use lab_run::catalogue;
use lab_run::made_of::MadeOf;

/// Options of `cargo xtask stale`.
#[derive(Debug, Args)]
pub struct Stale {
    /// Only the experiment of this name
    #[arg(long)]
    only: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Fail if a page is stale
    #[arg(long)]
    exit_code: bool,
}

/// Prints what of each page has changed since it was measured.
pub fn main(args: &Stale) -> Result<()> {
    let sources = vmlab::Sources::find()?;
    let root = sources.path();
    let mut found = vec![];
    for folder in catalogue::folders()? {
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if args.only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        let path = root.join("docs/results").join(format!("{name}.md"));
        let page = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let changed = match MadeOf::read(&page) {
            None => vec!["not known".to_owned()],
            Some(made) => {
                let now = MadeOf::of(root, &folder, &made.engines())?;
                made.differing(&now)
                    .into_iter()
                    .map(ToOwned::to_owned)
                    .collect()
            }
        };
        found.push((name, changed));
    }
    ensure!(
        !found.is_empty(),
        "no experiment is called {}",
        args.only.as_deref().unwrap_or_default()
    );
    if args.json {
        let rows = found
            .iter()
            .map(|(name, changed)| serde_json::json!({"page": name, "changed": changed}));
        println!("{:#}", serde_json::Value::from_iter(rows));
    } else {
        for (name, changed) in &found {
            let said = if changed.is_empty() {
                "fresh".to_owned()
            } else {
                changed.join(", ")
            };
            println!("{name:<32} {said}");
        }
    }
    let stale = found
        .iter()
        .filter(|(_, changed)| !changed.is_empty())
        .count();
    ensure!(
        stale == 0 || !args.exit_code,
        "{stale} of {} pages are older than the code",
        found.len()
    );
    Ok(())
}
