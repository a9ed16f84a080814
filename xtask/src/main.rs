// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask`: commands for developers of pspacer.

mod bench_pages;
mod bench_stalls;
mod calibrate;
mod corpus;
mod guests;
mod judgement;
mod notes;
mod processors;
mod profile;
mod suite;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Parser;

/// What only developers of pspacer run
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// checkpatch and sparse over what is compiled into a kernel
    Lint,
    /// The tests of a tier: `make check`, `make test`, `make test-all`
    Test(suite::Test),
    /// The conformance cases of tests/tdc, each in a namespace of one guest
    Tdc(guests::Tdc),
    /// Random netlink operations under traffic; the same seed repeats them
    Fuzz(guests::Fuzz),
    /// The qdisc's own tests on machines of another order of bytes or another size of a word
    Machines(guests::Machines),
    /// Where the instructions of a frame go: an experiment's cells, by function
    Profile(profile::Profile),
    /// Frames a second through qdiscs against the number of processors that send
    Processors(processors::Processors),
    /// Write the manual page of the pspacer command to standard output
    Man,
    /// How often the verdicts of `pspacer stalls` are right, by confidence
    Calibrate(calibrate::Calibrate),
    /// tests/stalls-corpus: writes the captures with their truth, or compares them
    Corpus(corpus::Corpus),
    /// Parts of `make bench`
    #[command(subcommand)]
    Bench(bench_pages::Bench),
}

fn main() -> ExitCode {
    match run(&Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<()> {
    match command {
        Command::Lint => guests::lint(),
        Command::Test(args) => suite::main(args),
        Command::Tdc(args) => {
            let ran = guests::tdc(args)?;
            print!("{}", ran.tap());
            ensure!(ran.is_ok(), "a case failed");
            Ok(())
        }
        Command::Fuzz(args) => {
            let ran = guests::fuzz(args)?;
            print!("{}", ran.output);
            ensure!(ran.status == 0, "the guest found something wrong");
            Ok(())
        }
        Command::Machines(args) => guests::machines(args),
        Command::Profile(args) => {
            print!("{}", profile::main(args)?);
            Ok(())
        }
        Command::Processors(args) => {
            print!("{}", processors::main(args)?);
            Ok(())
        }
        Command::Man => {
            let mut page = vec![];
            xtask::man::write(&mut page, pspacer::command())?;
            Ok(std::io::stdout().write_all(&page)?)
        }
        Command::Calibrate(args) => calibrate::main(args),
        Command::Corpus(args) => corpus::main(args),
        Command::Bench(part) => bench_pages::main(part),
    }
}
