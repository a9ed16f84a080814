// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line. `docs/man/pspacer.1` is made from it (`pspacer man`).

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::sim::{Shard, seeds};

/// Precise packet pacing: run it in the laboratory, measure it on a wire
#[derive(Debug, Parser)]
#[command(
    name = "pspacer",
    version,
    after_help = "Exit status: 0 all well; 1 a run, a file or a bound failed (the reason is on standard \
                  error); 2 the command line is wrong; 3 with --exit-code of stalls or watch, \
                  something stopped. Of ping: 0 there was an answer; 1 there was none; 2 anything else; \
                  3 a round trip was above --stop-above.\n\nSee tc-psp(8) for the qdisc itself."
)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The laboratory: a real Linux kernel in virtual time
    #[command(subcommand)]
    Lab(Lab),
    /// The simulator: the same scenarios on models of hosts, links and TCP
    #[command(subcommand)]
    Sim(Sim),
    /// Rates, gaps and burstiness of every flow in a capture or timeline
    Measure(crate::measure::MeasureArgs),
    /// Why transfers stopped: a verdict for each TCP connection of a capture
    Stalls(crate::stalls::StallsArgs),
    /// Why transfers stop, as they run: the TCP senders of this host, live (root)
    Watch(crate::watch::WatchArgs),
    /// Delay of a host that reflects, by probes on a schedule
    Ping(crate::ping::PingArgs),
    /// Answers the probes of ping
    Reflect(crate::reflect::ReflectArgs),
    /// Forwards packets in user space, streams in time
    Router(crate::router::RouterArgs),
    /// Delay over cascaded routers: its distribution and its bounds
    Predict(crate::predict::PredictArgs),
    /// Run every experiment and write the results beside the papers' figures
    Experiments(Experiments),
    /// Write the manual page of this command to standard output
    #[command(hide = true)]
    Man,
}

/// `pspacer lab`.
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// What there is to run
    List {
        /// One JSON array on standard output
        #[arg(long)]
        json: bool,
    },
    /// Run a scenario: a file, a folder under experiments/, or its name
    Run(LabRun),
    /// checkpatch and sparse over what is compiled into a kernel
    #[command(hide = true)]
    Lint,
    /// The conformance cases of tests/tdc, each in a namespace of one guest
    #[command(hide = true)]
    Tdc(LabTdc),
    /// Random netlink operations under traffic; the same seed repeats them
    #[command(hide = true)]
    Fuzz(LabFuzz),
}

/// Which guest a test runs in.
#[derive(Debug, Args)]
pub struct Guest {
    /// Kernel to boot [default: 6.1]
    #[arg(long, value_name = "6.1|6.12|7")]
    pub kernel: Option<String>,
    /// The debug kernel instead; built first if the cache has none
    #[arg(long)]
    pub debug: bool,
}

/// `pspacer lab tdc`.
#[derive(Debug, Args)]
pub struct LabTdc {
    /// Where
    #[command(flatten)]
    pub guest: Guest,
    /// Only the case with this id, or those whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
}

/// `pspacer lab fuzz`.
#[derive(Debug, Args)]
pub struct LabFuzz {
    /// Where
    #[command(flatten)]
    pub guest: Guest,
    /// Everything follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub operations: u64,
}

/// Which scenario, with what changed in it.
#[derive(Debug, Args)]
pub struct Chosen {
    /// Scenario file, experiment folder, or the name of either
    pub scenario: String,
    /// Change a parameter, a sweep or a key of the scenario; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Short or full
    #[command(flatten)]
    pub form: Form,
}

/// One run of a scenario, on either engine: `pspacer sim run`.
#[derive(Debug, Args)]
pub struct Run {
    /// What
    #[command(flatten)]
    pub chosen: Chosen,
    /// Seed instead of the scenario's; the same seed repeats a run to the byte
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Folder of the results; replaced if it is one of ours, refused if it is not
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// result.json on standard output, nothing else there
    #[arg(long)]
    pub json: bool,
    /// Guests or cells side by side [default: one for each core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}

/// `pspacer lab run`.
#[derive(Debug, Args)]
pub struct LabRun {
    /// What and where to
    #[command(flatten)]
    pub run: Run,
    /// Kernel to boot instead of the scenario's
    #[arg(long, value_name = "6.1|6.12|7")]
    pub kernel: Option<String>,
    /// Look for newer kernels and programs, even if the cache has some
    #[arg(long)]
    pub refresh: bool,
}

/// Which form of a scenario is run.
#[derive(Debug, Args)]
pub struct Form {
    /// The full form: every cell, as long as docs/results.md is made with
    #[arg(long)]
    pub full: bool,
    /// The short form, what `[quick]` in the scenario says (the default)
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
}

/// `pspacer experiments`.
#[derive(Debug, Args)]
pub struct Experiments {
    /// Short or full
    #[command(flatten)]
    pub form: Form,
    /// Where results.md and figures/ go [default: docs of the full form, out/quick of the short one]
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// Only the experiment of this name, or those whose name contains it; the other sections of
    /// results.md stay
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// One JSON object on standard output, nothing else there: of the one experiment of --only
    #[arg(long, requires = "only")]
    pub json: bool,
    /// Take the laboratory's results of an earlier call where they are of the same cells and seed,
    /// and newer than the scenario; why flows stopped is judged anew from their captures
    #[arg(long)]
    pub reuse: bool,
    /// Guests side by side [default: one for each core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}

/// `pspacer sim`.
#[derive(Debug, Subcommand)]
pub enum Sim {
    /// Run a scenario: a file, a folder under experiments/, or its name
    Run(Run),
    /// Run a scenario's cells with many seeds, into one table; run again, it goes on where it was
    Sweep(SimSweep),
    /// Join the shards of a sweep into one table
    Merge(SimMerge),
}

/// `pspacer sim sweep`.
#[derive(Debug, Args)]
pub struct SimSweep {
    /// What
    #[command(flatten)]
    pub chosen: Chosen,
    /// Seeds, such as 1..100 or 1,2,5 [default: the scenario's]
    #[arg(long, value_name = "SEEDS", value_parser = parse_seeds)]
    pub seeds: Option<Seeds>,
    /// Folder of the table; that of the same sweep is gone on with
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Only part I of N, I from 0: for the array jobs of a cluster
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Cells side by side [default: one for each core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}

/// Seeds of a sweep, in order.
#[derive(Clone, Debug)]
pub struct Seeds(pub Vec<u64>);

fn parse_seeds(text: &str) -> Result<Seeds, String> {
    seeds(text).map(Seeds)
}

/// `pspacer sim merge`.
#[derive(Debug, Args)]
pub struct SimMerge {
    /// The folders of all shards
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Folder of the joined table
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}
