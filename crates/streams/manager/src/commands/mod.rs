// SPDX-License-Identifier: MIT OR Apache-2.0
//! The subcommands `manager`, `topology`, `reserve`, `renew`, `reservations` and `release`: arguments and
//! text.

mod budgets;
mod outcome;
mod serve;
mod talk;
mod topology;

use anyhow::Result;
use clap::Subcommand;
use draw::terminal::Style;

pub use outcome::{CONNECTION, OUTPUT, Outcome, RUN, Usage, some_time, status_of};
pub use serve::ManagerArgs;
pub use talk::{
    Connection, Credentials, Managers, ReleaseArgs, RenewArgs, ReservationsArgs, ReserveArgs,
};
pub use topology::TopologyArgs;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Decides over reservations for streams: the bandwidth manager of segments
    Manager(ManagerArgs),
    /// Checks a network's file, and which reservations would not fit it
    Topology(TopologyArgs),
    /// Asks a manager for a reservation
    Reserve(ReserveArgs),
    /// Makes a reservation last longer
    Renew(RenewArgs),
    /// The reservations of a manager, its links, or their parts
    Reservations(ReservationsArgs),
    /// Frees a reservation
    Release(ReleaseArgs),
}

/// Runs a subcommand. `note` gets a line when a manager is ready.
///
/// # Errors
/// When a file cannot be read, a manager cannot be reached, or it refuses what it is asked.
pub fn run(command: &Command, style: Style, note: impl FnOnce(&str)) -> Result<Outcome> {
    match command {
        Command::Manager(args) => serve::manager(args, note),
        Command::Topology(args) => topology::topology(args),
        Command::Reserve(args) => talk::reserve(args),
        Command::Renew(args) => talk::renew(args),
        Command::Reservations(args) => talk::reservations(args, style),
        Command::Release(args) => talk::release(args),
    }
}
