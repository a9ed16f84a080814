// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the command line. `docs/man/pspacer.1` is generated from it (`cargo xtask man`).

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};
use lab_run::sim::shard::{Shard, seeds};
use scenario::Kernel;

use crate::headings::{FILTERS, OUTPUT, RUN};
use crate::terminal::Colour;
use crate::values;
use crate::values::Pair;

/// Precise packet pacing: run it in the laboratory, measure it on a wire
#[derive(Debug, Parser)]
#[command(name = "pspacer", version, subcommand_required = true)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
    /// Only results and errors: no progress, no notes, and of ping no line for each answer
    #[arg(long, short, global = true, help_heading = OUTPUT)]
    pub quiet: bool,
    /// Colours: on a terminal unless NO_COLOR is set, always, or never
    #[arg(long, value_name = "WHEN", global = true, help_heading = OUTPUT, value_enum,
        default_value_t = Colour::Auto, hide_possible_values = true)]
    pub color: Colour,
}

/// The exit statuses and their meanings, for the manual page and `--help`.
pub const STATUSES: [(&str, &str); 5] = [
    ("0", "All is well. Of ping: an answer came."),
    (
        "1",
        "A run, a file or a bound failed: standard error says why. Of ping: no answer came. Of \
         doctor: something was found. Of verify: a class or its fq has a fault.",
    ),
    (
        "2",
        "The command line is wrong. Of ping, doctor and verify: that, or anything else failed.",
    ),
    (
        "3",
        "Of stalls and watch with --exit-code: something stalled. Of ping: --stop-above. Of \
         reserve: the stream does not fit. Of topology: reservations do not.",
    ),
    (
        "141",
        "The reader of standard output has gone. The command reports nothing then.",
    ),
];

/// The subcommands, grouped by subject.
pub const GROUPS: [(&str, &[&str]); 7] = [
    ("Scenarios", &["lab", "sim", "experiments"]),
    ("Captures", &["measure", "stalls"]),
    (
        "Host",
        &["plan", "apply", "save", "restore", "remove", "import"],
    ),
    (
        "Live",
        &["watch", "ping", "reflect", "router", "send-stream"],
    ),
    (
        "Reservations",
        &[
            "manager",
            "agent",
            "topology",
            "reserve",
            "renew",
            "reservations",
            "release",
        ],
    ),
    ("Monitoring", &["top", "doctor", "verify", "exporter"]),
    ("Others", &["predict", "completions", "help"]),
];

/// Returns the command line, whose help lists the subcommands by group.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let mut help = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (group, names) in GROUPS {
        let mut lines = String::new();
        for name in names {
            let about = match command.find_subcommand(name) {
                Some(found) => found.get_about().map(ToString::to_string),
                None if *name == "help" => Some("This text, or that of a subcommand".to_owned()),
                None => continue, // of the feature `full`
            };
            lines += &format!("  {name:<12} {}\n", about.unwrap_or_default());
        }
        if !lines.is_empty() {
            help += &format!("\n{group}:\n{lines}");
        }
    }
    help += "\nOptions:\n{options}{after-help}";
    let mut after = String::from("Exit status:\n");
    for (status, meaning) in STATUSES {
        after += &format!("  {status:<4} {meaning}\n");
    }
    after += "\nSee pspacer(1), and tc-psp(8) for the qdisc itself.";
    if cfg!(not(feature = "full")) {
        after +=
            "\nThis is the command of `make demo`: `make build` builds all subcommands, for speed.";
    }
    command.help_template(help).after_help(after)
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
    /// Run every experiment and write the results beside the papers' figures
    Experiments(Experiments),
    /// The subcommands that the demo does without
    #[cfg(feature = "full")]
    #[command(flatten)]
    Full(crate::full::Command),
}

/// `pspacer lab`.
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// What there is to run
    List {
        /// One JSON array on standard output
        #[arg(long, help_heading = OUTPUT)]
        json: bool,
    },
    /// Run a scenario: a file, a folder under experiments/, or its name
    Run(LabRun),
}

/// Which scenario, with what changed in it.
#[derive(Debug, Args)]
pub struct Chosen {
    /// Scenario file, experiment folder, or the name of either
    pub scenario: String,
    /// Change a parameter, a sweep or a key of the scenario; may be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = RUN, value_parser = values::pair)]
    pub set: Vec<Pair>,
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
    #[arg(long, value_name = "N", help_heading = RUN)]
    pub seed: Option<u64>,
    /// Folder of the results [default: out/NAME]. What pspacer wrote there is replaced; a folder
    /// with files, that pspacer has not marked, is refused
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    /// result.json on standard output, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Guests or cells side by side [default: one for each core]
    #[arg(long, value_name = "N", help_heading = RUN)]
    pub jobs: Option<NonZeroUsize>,
}

/// `pspacer lab run`.
#[derive(Debug, Args)]
pub struct LabRun {
    /// What and where to
    #[command(flatten)]
    pub run: Run,
    /// Kernel to boot instead of the scenario's
    #[arg(long, value_name = "6.1|6.12|7", help_heading = RUN, value_parser = values::kernel(),
        hide_possible_values = true)]
    pub kernel: Option<Kernel>,
    /// Look for newer kernels and programs, even if the cache has some
    #[arg(long, help_heading = RUN)]
    pub refresh: bool,
}

/// Which form of a scenario is run.
#[derive(Debug, Args)]
pub struct Form {
    /// The full form: every cell, as long as docs/results is made with
    #[arg(long, help_heading = RUN)]
    pub full: bool,
    /// The short form, what `[quick]` in the scenario says (the default)
    #[arg(long, conflicts_with = "full", help_heading = RUN)]
    pub quick: bool,
}

/// `pspacer experiments`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("told").multiple(true))]
pub struct Experiments {
    /// Short or full
    #[command(flatten)]
    pub form: Form,
    /// Where the index, the pages and figures/ go [default: of the full form docs/results of the
    /// source tree, or out/full without one; of the short form out/quick]
    #[arg(long, value_name = "DIR", help_heading = OUTPUT, alias = "results")]
    pub out: Option<PathBuf>,
    /// Only the experiment of this name, or those whose name contains it; the other pages
    /// and lines of the index stay
    #[arg(long, value_name = "TEXT", group = "told", help_heading = FILTERS)]
    pub only: Option<String>,
    /// One JSON object on standard output, nothing else there: of the one experiment of --only, or
    /// of --stale
    #[arg(long, requires = "told", help_heading = OUTPUT)]
    pub json: bool,
    /// Run nothing: list the runs behind each page of docs/results that differ from what would run
    /// now, and how long they take; compiles modules; exits with 1 if any does but for packages of
    /// others
    #[arg(long, group = "told", conflicts_with_all = ["full", "quick", "out", "again", "jobs"], help_heading = RUN)]
    pub stale: bool,
    /// Make the pages, too, of which nothing has changed since they were made
    #[arg(long, requires = "full", help_heading = RUN)]
    pub again: bool,
    /// Guests side by side [default: one for each core]
    #[arg(long, value_name = "N", help_heading = RUN)]
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
    #[arg(long, value_name = "SEEDS", value_parser = parse_seeds, help_heading = RUN)]
    pub seeds: Option<Seeds>,
    /// Folder of the table; that of the same sweep is gone on with
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    /// Only part I of N, I from 0: for the array jobs of a cluster
    #[arg(long, value_name = "I/N", help_heading = RUN)]
    pub shard: Option<Shard>,
    /// Cells side by side [default: one for each core]
    #[arg(long, value_name = "N", help_heading = RUN)]
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
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub out: PathBuf,
}
