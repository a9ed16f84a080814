// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer router`: forwards packets in user space, and the packets of streams on a schedule.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use router::Report;
use router::config::read;
use router::text::{budgets, summary};
use serde::Serialize;

use crate::headings::{OUTPUT, RUN};
use crate::output;

/// Arguments of `pspacer router`.
#[derive(Debug, Args)]
pub struct RouterArgs {
    /// Devices, routes and streams, as TOML
    #[arg(value_name = "CONFIG.toml")]
    pub config: PathBuf,
    /// Only check the configuration, and say what each device may send in a period
    #[arg(long, help_heading = RUN)]
    pub check: bool,
    /// One JSON object on standard output at the end, nothing else there
    #[arg(long, conflicts_with = "check", help_heading = OUTPUT)]
    pub json: bool,
}

/// The JSON object that `--json` prints.
#[derive(Serialize)]
struct Json<'a> {
    format: &'static str,
    #[serde(flatten)]
    report: &'a Report,
}

/// Forwards packets until SIGINT or SIGTERM, sends what is still queued, and reports what became of
/// all packets.
///
/// # Errors
/// When the configuration cannot be read or is refused, or a device cannot be used.
pub fn main(args: &RouterArgs) -> Result<()> {
    let name = || args.config.display().to_string();
    let text = psp_files::read::text(&args.config).with_context(name)?;
    let config = read(&text).with_context(name)?;
    let mut out = output::out();
    if args.check {
        out.write_all(budgets(&config).as_bytes())?;
        return Ok(());
    }
    let ready = || output::note("pspacer: routing; SIGINT or SIGTERM ends it");
    let report = router::run(&config, ready)?;
    if args.json {
        let json = Json {
            format: "pspacer-router-1",
            report: &report,
        };
        serde_json::to_writer_pretty(&mut out, &json)?;
        writeln!(out)?;
    } else {
        out.write_all(summary(&report).as_bytes())?;
    }
    Ok(())
}
