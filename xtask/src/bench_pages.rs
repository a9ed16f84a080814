// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make bench`: fetches DPDK's packages, and writes the page of the measurements.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Subcommand;
use serde::de::DeserializeOwned;
use vmlab::{Cache, Event};
use xtask::bench::figures::figures;
use xtask::bench::model::{Dpdk, Structures};
use xtask::bench::page::page;

use crate::bench_stalls;

/// Parts of `make bench`; see `bench/Makefile`.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Fetches DPDK's packages if the cache has none; prints the folder they
    /// are unpacked in.
    Dpdk,
    /// Writes benchmarks.md and its plots.
    Page {
        /// What `structures --json` wrote.
        #[arg(long)]
        structures: PathBuf,
        /// What `dpdk --json` wrote, if it ran.
        #[arg(long)]
        dpdk: Option<PathBuf>,
        /// Where the page goes; plots into its folder figures.
        #[arg(long)]
        docs: PathBuf,
    },
    /// Makes captures, analyses them, and writes stalls-benchmark.md.
    Stalls(bench_stalls::StallsArgs),
}

/// Runs one part of `make bench`.
pub fn main(command: &Bench) -> Result<()> {
    match command {
        Bench::Dpdk => {
            let note = |event: &Event<'_>| {
                if let Event::Note { text } = event {
                    eprintln!("bench: {text}");
                }
            };
            let root = vmlab::dpdk(&Cache::default_folder()?, &note)?;
            println!("{}", root.display());
            Ok(())
        }
        Bench::Page {
            structures,
            dpdk,
            docs,
        } => {
            let structures: Structures = read(structures)?;
            let dpdk: Option<Dpdk> = dpdk.as_deref().map(read).transpose()?;
            write_page(&structures, dpdk.as_ref(), docs)
        }
        Bench::Stalls(args) => bench_stalls::main(args),
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not what it writes", path.display()))
}

fn write_page(structures: &Structures, dpdk: Option<&Dpdk>, docs: &Path) -> Result<()> {
    let folder = docs.join("figures");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for plot in figures(structures, dpdk) {
        write(&folder.join(&plot.name), &plot.svg)?;
    }
    let path = docs.join("benchmarks.md");
    write(&path, &page(structures, dpdk))?;
    println!("bench: wrote {}", path.display());
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
