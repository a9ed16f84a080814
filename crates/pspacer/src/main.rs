// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `pspacer` command.

mod bars;
mod both;
mod catalogue;
mod cells;
mod cli;
mod conformance;
mod experiments;
mod lab;
mod man;
mod measure;
mod paper;
mod ping;
mod predict;
mod reflect;
mod router;
mod runs;
mod sim;
mod stalls;
mod terminal;
mod truth;
mod watch;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};

use cli::{Cli, Command};

/// What `--exit-code` asks for.
const STOPPED: u8 = 3;

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("pspacer: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<ExitCode> {
    match &cli.command {
        Command::Lab(lab) => lab::main(lab).map(bounds),
        Command::Sim(sim) => sim::main(sim).map(bounds),
        Command::Measure(args) => measure::main(args).map(|()| ExitCode::SUCCESS),
        Command::Stalls(args) => stalls::main(args).map(flowed),
        Command::Watch(args) => watch::main(args).map(flowed),
        Command::Ping(args) => Ok(ping::main(args)),
        Command::Reflect(args) => reflect::main(args).map(|()| ExitCode::SUCCESS),
        Command::Router(args) => router::main(args).map(|()| ExitCode::SUCCESS),
        Command::Predict(args) => predict::main(args).map(|()| ExitCode::SUCCESS),
        Command::Experiments(args) => experiments::main(args).map(bounds),
        Command::Man => {
            man::write(std::io::stdout().lock(), Cli::command())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Of `--exit-code`: whether nothing stopped.
fn flowed(flowed: bool) -> ExitCode {
    match flowed {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(STOPPED),
    }
}

/// Of a run: whether all bounds hold.
fn bounds(hold: bool) -> ExitCode {
    if hold {
        return ExitCode::SUCCESS;
    }
    eprintln!("pspacer: a bound does not hold");
    ExitCode::FAILURE
}
