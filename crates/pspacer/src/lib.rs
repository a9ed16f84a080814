// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `pspacer` command: its arguments, text and JSON output, progress and terminal.

// A failure to print must be an error and not a panic: see `output`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod doctor;
mod experiments;
mod exporter;
mod headings;
mod lab;
mod measure;
mod output;
mod ping;
mod predict;
mod progress;
mod reflect;
mod router;
mod scenario_run;
mod sim;
mod stalls;
mod terminal;
mod top;
mod values;
mod watch;

use std::process::ExitCode;

use anyhow::Result;
use clap::FromArgMatches;
use clap::error::ErrorKind;

use cli::{Cli, Command};
pub use cli::{GROUPS, STATUSES, command};
use manager::commands;

/// Exit status of `--exit-code` if a stall was found.
const STALLED: u8 = 3;

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let matches = cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    terminal::want(cli.color, cli.quiet);
    let result = run(&cli).and_then(|code| output::flush().map(|()| code));
    let failed = match &cli.command {
        Command::Ping(_) | Command::Doctor(_) => ping::TROUBLE,
        _ => 1,
    };
    result.unwrap_or_else(|error| match output::is_closed() {
        true => ExitCode::from(output::CLOSED),
        false => {
            output::error(&error);
            ExitCode::from(failed.max(commands::status_of(&error)))
        }
    })
}

fn run(cli: &Cli) -> Result<ExitCode> {
    match &cli.command {
        Command::Lab(lab) => lab::main(lab).map(bounds),
        Command::Sim(sim) => sim::main(sim).map(bounds),
        Command::Measure(args) => measure::main(args).map(|()| ExitCode::SUCCESS),
        Command::Stalls(args) => match args.fault() {
            Some(fault) => cli::command()
                .error(ErrorKind::ArgumentConflict, fault)
                .exit(),
            None => stalls::main(args).map(flowed),
        },
        Command::Host(command) => {
            let (out, note) = (&mut output::out(), &mut output::note);
            host_apply::run(command, &mut host_apply::Io { out, note }).map(|()| ExitCode::SUCCESS)
        }
        Command::Watch(args) => watch::main(args).map(flowed),
        Command::Ping(args) => ping::main(args),
        Command::Reflect(args) => reflect::main(args).map(|()| ExitCode::SUCCESS),
        Command::Router(args) => router::main(args).map(|()| ExitCode::SUCCESS),
        Command::SendStream(args) => {
            let style = terminal::style();
            media::send::main(args, style, &mut output::out(), output::note)
                .map(|()| ExitCode::SUCCESS)
        }
        Command::Top(args) => top::main(args).map(|()| ExitCode::SUCCESS),
        Command::Doctor(args) => doctor::main(args).map(|fine| match fine {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        }),
        Command::Exporter(args) => exporter::main(args).map(|()| ExitCode::SUCCESS),
        Command::Predict(args) => predict::main(args).map(|()| ExitCode::SUCCESS),
        Command::Reservations(command) => {
            let outcome = commands::run(command, terminal::style(), output::note)?;
            output::print(&outcome.text)?;
            Ok(ExitCode::from(outcome.status))
        }
        Command::Agent(args) => {
            let out = &mut output::out();
            let warn = &mut |problem: &str| output::error(&anyhow::anyhow!("{problem}"));
            agent::run(args, &mut agent::Io { out, warn }).map(|()| ExitCode::SUCCESS)
        }
        Command::Experiments(args) => experiments::main(args).map(bounds),
        Command::Completions { shell } => {
            // The script is made in memory, because clap's own writer panics when writing fails.
            let mut script = vec![];
            clap_complete::generate(*shell, &mut cli::command(), "pspacer", &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Returns the exit status of `--exit-code`: success if nothing stalled.
fn flowed(flowed: bool) -> ExitCode {
    match flowed {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(STALLED),
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
