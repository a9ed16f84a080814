// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer import`: makes the file of a host of the files of another system.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use host_import::{Choice, Direction, Input};
use psp_files::{read, write};

use crate::headings::OUTPUT;
use crate::output;
use crate::values::rate;

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
    /// The device that the host's file is about
    #[arg(long, value_name = "DEV", default_value = "eth0")]
    pub device: String,
    /// What the device sends: download to circuits, or upload from them
    #[arg(long, value_enum, default_value_t = Way::Download)]
    pub direction: Way,
    /// Line of the device [default: what it reports]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub line: Option<u64>,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub output: Option<PathBuf>,
}

/// A direction.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Way {
    /// To circuits
    Download,
    /// From circuits
    Upload,
}

fn read(path: &Path) -> Result<(String, Vec<u8>)> {
    let name = path.display().to_string();
    let bytes = read::bytes(path).with_context(|| name.clone())?;
    Ok((name, bytes))
}

fn input((name, bytes): &(String, Vec<u8>)) -> Input<'_> {
    Input { name, bytes }
}

/// Makes the file.
///
/// # Errors
/// A fault in a file, or what cannot be read or written.
pub fn main(args: &ImportArgs) -> Result<()> {
    let From::Libreqos(args) = &args.from;
    let devices = read(&args.shaped_devices)?;
    let network = args.network.as_deref().map(read).transpose()?;
    let choice = Choice {
        device: args.device.clone(),
        direction: match args.direction {
            Way::Download => Direction::Download,
            Way::Upload => Direction::Upload,
        },
        line_bps: args.line,
    };
    let imported = host_import::libreqos(input(&devices), network.as_ref().map(input), &choice)?;
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
