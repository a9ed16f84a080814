// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `pspacer` command: its arguments, text and JSON output, progress and terminal.

// A failure to print must be an error and not a panic: see `output`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod experiments;
mod headings;
mod lab;
mod output;
mod progress;
mod scenario_run;
mod sim;
mod terminal;
// The demo has few of the options that take these values.
#[cfg_attr(not(feature = "full"), allow(dead_code))]
mod values;

#[cfg(feature = "full")]
mod doctor;
#[cfg(feature = "full")]
mod exporter;
#[cfg(feature = "full")]
mod full;
#[cfg(feature = "full")]
mod import;
#[cfg(feature = "full")]
mod measure;
#[cfg(feature = "full")]
mod ping;
#[cfg(feature = "full")]
mod predict;
#[cfg(feature = "full")]
mod reflect;
#[cfg(feature = "full")]
mod router;
#[cfg(feature = "full")]
mod stalls;
#[cfg(feature = "full")]
mod top;
#[cfg(feature = "full")]
mod verify;
#[cfg(feature = "full")]
mod watch;

use std::process::ExitCode;

use anyhow::Result;
use clap::FromArgMatches;
use cli::{Cli, Command};
pub use cli::{GROUPS, STATUSES, command};

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let matches = cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    terminal::want(cli.color, cli.quiet);
    let result = run(&cli).and_then(|code| output::flush().map(|()| code));
    result.unwrap_or_else(|error| {
        if output::is_closed() {
            ExitCode::from(output::CLOSED)
        } else {
            output::error(&error);
            ExitCode::from(match &cli.command {
                #[cfg(feature = "full")]
                Command::Full(command) => full::failure(command, &error),
                _ => 1,
            })
        }
    })
}

fn run(cli: &Cli) -> Result<ExitCode> {
    match &cli.command {
        Command::Lab(lab) => lab::main(lab).map(bounds),
        Command::Sim(sim) => sim::main(sim).map(bounds),
        Command::Experiments(args) => experiments::main(args).map(bounds),
        #[cfg(feature = "full")]
        Command::Full(command) => full::run(command, cli::command),
    }
}

/// Returns the exit status of a run: success if all bounds hold.
fn bounds(hold: bool) -> ExitCode {
    if hold {
        return ExitCode::SUCCESS;
    }
    output::error(&anyhow::anyhow!("a bound does not hold"));
    ExitCode::FAILURE
}
