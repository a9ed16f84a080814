// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask corpus`: the captures of tests/stalls-corpus.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use stalls_corpus::{cases, folder};

/// Arguments of `cargo xtask corpus`.
#[derive(Debug, Args)]
pub struct Corpus {
    /// Write nothing; fail if a file differs
    #[arg(long)]
    check: bool,
    /// Print the packets of the cases whose names contain TEXT, and stop
    #[arg(long, value_name = "TEXT")]
    show: Option<String>,
    /// The folder
    #[arg(long, value_name = "DIR", default_value = "tests/stalls-corpus")]
    folder: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// If a file differs or cannot be read or written.
pub fn main(args: &Corpus) -> Result<()> {
    let all = cases::all();
    if let Some(text) = &args.show {
        for case in all.iter().filter(|c| c.name.contains(text.as_str())) {
            println!("{}\n{}", case.name, case.packets());
        }
        return Ok(());
    }
    let name = args.folder.display();
    if args.check {
        let differences = folder::differences(&args.folder, &all);
        let differences = differences.with_context(|| format!("{name}: read"))?;
        ensure!(differences.is_empty(), "{}", differences.join("\n"));
        println!("{} cases, all as made", all.len());
        return Ok(());
    }
    folder::write(&args.folder, &all).with_context(|| format!("{name}: write"))?;
    println!("{} cases in {name}", all.len());
    Ok(())
}
