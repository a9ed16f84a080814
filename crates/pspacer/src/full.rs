// SPDX-License-Identifier: MIT OR Apache-2.0
//! Subcommands of the feature `full`: all but those that run scenarios.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use clap::error::ErrorKind;
use clap_complete::Shell;
use manager::commands;

use crate::{
    doctor, exporter, import, measure, ping, predict, reflect, router, stalls, top, verify, watch,
};
use crate::{output, terminal};

/// Exit status of `--exit-code` if a stall was found.
const STALLED: u8 = 3;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Rates, gaps and burstiness of every flow in a capture or timeline
    Measure(measure::MeasureArgs),
    /// Why transfers stalled: a verdict for each TCP connection of a capture
    Stalls(stalls::StallsArgs),
    /// The file of this host
    #[command(flatten)]
    Host(host_apply::Command),
    /// The file of a host, of another system's files
    Import(import::ImportArgs),
    /// Why transfers stall, as they run: the TCP senders of this host, live (root)
    Watch(watch::WatchArgs),
    /// Delay of a host that reflects, by probes on a schedule
    Ping(ping::PingArgs),
    /// Answers the probes of ping
    Reflect(reflect::ReflectArgs),
    /// Forwards packets in user space, streams in time
    Router(router::RouterArgs),
    /// Sends a synthetic media stream: RFC 4175 video or AES67 audio
    SendStream(media::send::SendArgs),
    /// Every psp class of this host as it sends
    Top(top::TopArgs),
    /// What keeps this host from pacing well, and the command that mends it
    Doctor(doctor::DoctorArgs),
    /// Whether frames that leave were counted by the classes that the file gives them (root)
    Verify(verify::VerifyArgs),
    /// Statistics of psp for Prometheus, as OpenMetrics
    Exporter(exporter::ExporterArgs),
    /// Delay over cascaded routers: its distribution and its bounds
    Predict(predict::PredictArgs),
    /// Reservations: a manager, and what asks one
    #[command(flatten)]
    Reservations(manager::commands::Command),
    /// Puts the reservations of this host or router into force (root)
    Agent(agent::AgentArgs),
    /// Write what a shell needs to complete this command's words to standard output
    Completions {
        /// bash, zsh, fish, elvish or powershell
        #[arg(hide_possible_values = true)]
        shell: Shell,
    },
}

/// Between applying a file and whoever waits for the prompt.
const VERIFY_NS: u64 = 2_000_000_000;

/// Looks at what leaves after `apply`, if that is asked for, or somebody watches.
fn verified(args: &host_apply::ApplyArgs) -> Result<ExitCode> {
    let is_quiet = args.dry_run || args.confirmed || args.follow;
    match args.verify {
        Some(time_ns) => verify::after_apply(args, time_ns).map(|is_well| well_or(is_well, 1)),
        None if !is_quiet && std::io::stdout().is_terminal() => {
            // What was applied stays applied, whatever the look says.
            if let Err(error) = verify::after_apply(args, VERIFY_NS) {
                output::note(&format!("pspacer: not verified: {error:#}"));
            }
            Ok(ExitCode::SUCCESS)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Runs a subcommand. `whole` returns the whole command line.
pub fn run(command: &Command, whole: fn() -> clap::Command) -> Result<ExitCode> {
    match command {
        Command::Measure(args) => measure::main(args).map(|()| ExitCode::SUCCESS),
        Command::Stalls(args) => match args.fault() {
            Some(fault) => misused(whole(), "stalls", fault).exit(),
            None => stalls::main(args).map(|flowed| well_or(flowed, STALLED)),
        },
        Command::Host(command) => {
            let (out, note) = (&mut output::out(), &mut output::note);
            host_apply::run(command, &mut host_apply::Io { out, note })?;
            match command {
                host_apply::Command::Apply(args) => verified(args),
                _ => Ok(ExitCode::SUCCESS),
            }
        }
        Command::Import(args) => import::main(args).map(|()| ExitCode::SUCCESS),
        Command::Watch(args) => watch::main(args).map(|flowed| well_or(flowed, STALLED)),
        Command::Ping(args) => ping::main(args),
        Command::Reflect(args) => reflect::main(args).map(|()| ExitCode::SUCCESS),
        Command::Router(args) => router::main(args).map(|()| ExitCode::SUCCESS),
        Command::SendStream(args) => {
            let style = terminal::style();
            media::send::main(args, style, &mut output::out(), output::note)
                .map(|()| ExitCode::SUCCESS)
        }
        Command::Top(args) => top::main(args).map(|()| ExitCode::SUCCESS),
        Command::Doctor(args) => doctor::main(args).map(|is_fine| well_or(is_fine, 1)),
        Command::Verify(args) => verify::main(args).map(|is_well| well_or(is_well, 1)),
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
            agent::run(args, &mut agent::Io { out, note: warn }).map(|()| ExitCode::SUCCESS)
        }
        Command::Completions { shell } => {
            // The script is made in memory, because clap's own writer panics when writing fails.
            let mut script = vec![];
            clap_complete::generate(*shell, &mut whole(), "pspacer", &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Returns clap's error for arguments of a subcommand that contradict each other, with the
/// subcommand's own usage.
fn misused(mut whole: clap::Command, subcommand: &str, fault: String) -> clap::Error {
    whole.build();
    let command = match whole.find_subcommand_mut(subcommand) {
        Some(found) => found,
        None => &mut whole,
    };
    command.error(ErrorKind::ArgumentConflict, fault)
}

/// Returns the exit status of a subcommand that failed.
pub fn failure(command: &Command, error: &anyhow::Error) -> u8 {
    let failed = match command {
        Command::Ping(_) | Command::Doctor(_) | Command::Verify(_) => ping::TROUBLE,
        _ => 1,
    };
    failed.max(commands::status_of(error))
}

/// Returns the exit status of a subcommand that has a verdict: this one if it is bad.
fn well_or(is_well: bool, bad: u8) -> ExitCode {
    ExitCode::from(if is_well { 0 } else { bad })
}
