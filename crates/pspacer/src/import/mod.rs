// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer import`: makes the file of a host of the files of another system.
//!
//! Of LibreQoS these are `ShapedDevices.csv`, whose rows are read in `shaped_devices.rs`, and
//! `network.json`, in `network.rs`. A circuit becomes a class, and the node above it a group
//! (docs/use/subscribers.md).

mod circuits;
mod libreqos;
mod names;
mod network;
mod rate;
mod shaped_devices;
#[cfg(test)]
mod subscribers_tests;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use libreqos::{Choice, Input};
use psp_files::{read, write};

use crate::headings::OUTPUT;
use crate::output;

/// Arguments of `pspacer import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The system
    #[command(subcommand)]
    pub from: From,
}

/// The systems.
#[derive(Debug, Subcommand)]
pub enum From {
    /// Circuits of LibreQoS as classes, and the nodes above them as groups
    Libreqos(LibreqosArgs),
}

/// Arguments of `pspacer import libreqos`.
#[derive(Debug, Args)]
pub struct LibreqosArgs {
    /// Its table of circuits, ShapedDevices.csv
    #[arg(long, value_name = "FILE")]
    pub shaped_devices: PathBuf,
    /// Its nodes, network.json [default: circuits are in no groups]
    #[arg(long, value_name = "FILE")]
    pub network: Option<PathBuf>,
    #[command(flatten)]
    pub choice: Choice,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub output: Option<PathBuf>,
}

fn input(path: &Path) -> Result<Input> {
    let name = path.display().to_string();
    let bytes = read::bytes(path).with_context(|| name.clone())?;
    Ok(Input { name, bytes })
}

/// Makes the file.
pub fn main(args: &ImportArgs) -> Result<()> {
    let From::Libreqos(args) = &args.from;
    let devices = input(&args.shaped_devices)?;
    let network = args.network.as_deref().map(input).transpose()?;
    let imported = libreqos::libreqos(&devices, network.as_ref(), &args.choice)?;
    match &args.output {
        Some(file) => {
            write::replace(file, &imported.text).with_context(|| file.display().to_string())?
        }
        None => output::print(&imported.text)?,
    }
    for note in &imported.notes {
        output::note(&format!("pspacer: note: {note}"));
    }
    let circuits = imported.classes - imported.groups;
    output::note(&format!(
        "pspacer: circuits: {circuits}, groups: {}",
        imported.groups
    ));
    Ok(())
}
