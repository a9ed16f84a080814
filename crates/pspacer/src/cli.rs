// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the command line. `docs/man/pspacer.1` is generated from it (`cargo xtask man`).

use clap::{CommandFactory, Parser, Subcommand};

use crate::experiments::ExperimentsArgs;
use crate::headings::OUTPUT;
use crate::terminal::Colour;
use crate::{lab, sim};

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
    Lab(lab::Command),
    /// The simulator: the same scenarios on models of hosts, links and TCP
    #[command(subcommand)]
    Sim(sim::Command),
    /// Run every experiment and write the results beside the papers' figures
    Experiments(ExperimentsArgs),
    /// The subcommands that the demo does without
    #[cfg(feature = "full")]
    #[command(flatten)]
    Full(crate::full::Command),
}
