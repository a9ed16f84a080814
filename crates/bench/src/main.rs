// SPDX-License-Identifier: MIT OR Apache-2.0
//! For `make bench`.

mod stalls;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use bench::{Dpdk, Structures, figures, page};
use clap::Parser;
use serde::de::DeserializeOwned;
use vmlab::{Cache, Event};

/// Parts of `make bench`; see bench/Makefile.
#[derive(Parser)]
enum Command {
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
    Stalls(stalls::StallsArgs),
}

fn main() -> ExitCode {
    match run(&Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<()> {
    match command {
        Command::Dpdk => {
            let note = |event: &Event<'_>| {
                if let Event::Note { text } = event {
                    eprintln!("bench: {text}");
                }
            };
            let root = vmlab::dpdk(&Cache::default_folder()?, &note)?;
            println!("{}", root.display());
            Ok(())
        }
        Command::Page {
            structures,
            dpdk,
            docs,
        } => {
            let structures: Structures = read(structures)?;
            let dpdk: Option<Dpdk> = dpdk.as_deref().map(read).transpose()?;
            write_page(&structures, dpdk.as_ref(), docs)
        }
        Command::Stalls(args) => stalls::main(args),
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
