// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer topology`: checks a topology, alone or against what a manager has granted.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::budgets::{budgets, read_topology};
use super::outcome::{CONNECTION, OUTPUT, Outcome, REFUSED, RUN};
use super::talk::{Credentials, failed, json};
use manager_proto::answer::Misfit;

/// Arguments of `pspacer topology`.
#[derive(Debug, Args)]
pub struct TopologyArgs {
    /// Hosts, routers and segments, as TOML
    #[arg(value_name = "NET.toml")]
    pub file: PathBuf,
    /// Say which reservations of this manager would not fit the file, for an operator; the token is in the
    /// environment, PSPACER_TOKEN, or in --token-file [default: only check the file, and say what streams
    /// may take of each link]
    #[arg(long, value_name = "URL", help_heading = CONNECTION)]
    pub manager: Option<String>,
    /// Who asks, and whom to trust
    #[command(flatten)]
    pub credentials: Credentials,
    /// End the reservations that do not fit the file. From then on, until it is started again, the manager
    /// grants only what fits the file and the topology that it has
    #[arg(long, help_heading = RUN, requires = "manager")]
    pub drain: bool,
    /// One JSON array on standard output of what does not fit, nothing else there
    #[arg(long, help_heading = OUTPUT, requires = "manager")]
    pub json: bool,
}

/// Checks a topology. Its status is that of a refusal if reservations do not fit and stay.
///
/// # Errors
/// When the file cannot be read or is refused, or the manager cannot be reached or refuses.
pub fn topology(args: &TopologyArgs) -> Result<Outcome> {
    let (text, file) = read_topology(&args.file)?;
    let Some(url) = &args.manager else {
        return Ok(Outcome {
            text: budgets(&file),
            status: 0,
        });
    };
    let misfits = match args.credentials.client(url)?.fit(text, args.drain) {
        Ok(misfits) => misfits,
        Err(error) => return failed(error),
    };
    let is_refused = !misfits.is_empty() && !args.drain;
    let status = if is_refused { REFUSED } else { 0 };
    if args.json {
        return json(&misfits, status);
    }
    let verb = if args.drain { "ended" } else { "does not fit:" };
    let line = |of: &Misfit| format!("{verb} {} of {}: {}\n", of.id, of.coordinator, of.why);
    let mut text: String = misfits.iter().map(line).collect();
    if misfits.is_empty() {
        text = format!("all reservations of {url} fit {}\n", args.file.display());
    }
    Ok(Outcome { text, status })
}
