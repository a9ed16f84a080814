// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `pspacer` command.

mod bars;
mod catalogue;
mod cells;
mod cli;
mod conformance;
mod experiments;
mod lab;
mod man;
mod measure;
mod paper;
mod runs;
mod sim;
mod terminal;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};

use cli::{Cli, Command};

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("pspacer: a bound does not hold");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("pspacer: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// `false` if everything ran and a bound did not hold.
fn run(cli: &Cli) -> Result<bool> {
    match &cli.command {
        Command::Lab(lab) => lab::main(lab),
        Command::Sim(sim) => sim::main(sim),
        Command::Measure(args) => measure::main(args).map(|()| true),
        Command::Experiments(args) => experiments::main(args),
        Command::Man => Ok(man::write(std::io::stdout().lock(), Cli::command()).map(|()| true)?),
    }
}
