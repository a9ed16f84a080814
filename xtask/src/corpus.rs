// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask corpus`: the cases of tests/stalls-corpus as captures, for any tool.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use tcp_stacks::corpus::Case;

/// Arguments of `cargo xtask corpus`.
#[derive(Debug, Args)]
pub struct Corpus {
    /// The folder for the captures, NAME.pcap of each case
    folder: PathBuf,
    /// Only the cases whose names contain TEXT
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// The cases
    #[arg(long, value_name = "DIR", default_value = "tests/stalls-corpus")]
    cases: PathBuf,
}

/// Runs the command.
pub fn main(args: &Corpus) -> Result<()> {
    fs::create_dir_all(&args.folder)?;
    let mut count = 0;
    for entry in fs::read_dir(&args.cases)? {
        let path = entry?.path();
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.extension().is_none_or(|ext| ext != "toml") || !name.contains(&args.only) {
            continue;
        }
        let shown = path.display();
        let text = fs::read_to_string(&path).with_context(|| format!("{shown}"))?;
        let case = Case::parse(&text).map_err(|fault| anyhow!("{shown}: {fault}"))?;
        let out = args.folder.join(format!("{name}.pcap"));
        fs::write(&out, case.capture.pcap()).with_context(|| format!("{}", out.display()))?;
        count += 1;
    }
    println!("{count} captures in {}", args.folder.display());
    Ok(())
}
