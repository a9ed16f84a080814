// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments of the subcommands.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Headings of groups of options, as the other subcommands have them.
const RUN: &str = "Run";
const FILTERS: &str = "Filters";
const OUTPUT: &str = "Output";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// What apply would change on this host, by its file
    Plan(PlanArgs),
    /// Make the kernel agree with the file of this host (root)
    Apply(ApplyArgs),
    /// What apply has set up, to standard output
    Save(SaveArgs),
    /// Make devices as they were when they were saved (root)
    Restore(RestoreArgs),
    /// Take away what apply has set up on a device (root)
    Remove(RemoveArgs),
}

/// Which devices, by which files.
#[derive(Debug, Args)]
pub struct Chosen {
    /// Files of the host [default: /etc/pspacer/*.toml]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only this device of the files
    #[arg(long, value_name = "DEV", help_heading = FILTERS)]
    pub device: Option<String>,
    /// Replace qdiscs, classes and filters that others configured on the devices
    #[arg(long, help_heading = RUN)]
    pub take_over: bool,
}

/// Arguments of `pspacer plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// What
    #[command(flatten)]
    pub chosen: Chosen,
    /// One JSON object on standard output, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

/// Arguments of `pspacer apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// What
    #[command(flatten)]
    pub chosen: Chosen,
    /// Only say what would be changed, as plan does
    #[arg(long, conflicts_with_all = ["confirm", "confirmed"], help_heading = RUN)]
    pub dry_run: bool,
    /// Take all changes back unless they are confirmed within this time: by Enter, or by
    /// apply --confirmed from anywhere
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = RUN)]
    pub confirm: Option<u64>,
    /// Keep the changes that wait to be confirmed
    #[arg(long, conflicts_with_all = ["confirm", "files", "device"], help_heading = RUN)]
    pub confirmed: bool,
    /// Then look for so long at what leaves, and say which frames do not come to their class; with
    /// the option given the exit status is 1 if there are some [default: 2s at a terminal]
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["dry_run",
        "confirmed", "follow"], help_heading = RUN)]
    pub verify: Option<u64>,
    /// Change nothing now, but stay: whenever an interface or a cgroup that a match names comes or is
    /// made anew, apply again what was applied last
    #[arg(long, conflicts_with_all = ["confirm", "confirmed", "dry_run", "files", "device",
        "take_over"], help_heading = RUN)]
    pub follow: bool,
    /// How long a class that goes may take to send its frames
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s",
        help_heading = RUN)]
    pub drain: u64,
}

/// Arguments of `pspacer save`.
#[derive(Debug, Args)]
pub struct SaveArgs {
    /// Devices [default: those on which apply has set up psp]
    #[arg(value_name = "DEV")]
    pub devices: Vec<String>,
}

/// Arguments of `pspacer restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// What save has written
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Wait for so long first, and do nothing if the file is deleted meanwhile
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = RUN)]
    pub after: Option<u64>,
    /// Guard changes that wait to be confirmed: of apply alone
    #[arg(long, hide = true, conflicts_with = "after")]
    pub guard: bool,
    /// How long a class that goes may take to send its frames
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s",
        help_heading = RUN)]
    pub drain: u64,
}

/// Arguments of `pspacer remove`.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// The device
    #[arg(value_name = "DEV")]
    pub device: String,
}

/// Parses a time above 0, in ns.
fn time(text: &str) -> Result<u64, String> {
    let known = units::parse::time_ns(text).filter(|time| *time > 0);
    known.ok_or_else(|| "expected a time above 0, such as 60s".to_owned())
}
