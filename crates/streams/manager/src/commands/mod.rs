// SPDX-License-Identifier: MIT OR Apache-2.0
//! The subcommands `manager`, `reserve`, `reservations` and `release`: arguments and text.

mod outcome;
mod serve;
mod talk;

use anyhow::Result;
use clap::Subcommand;
use draw::terminal::Style;

pub use outcome::{CONNECTION, OUTPUT, Outcome, RUN, Usage, some_time, status_of};
pub use serve::ManagerArgs;
pub use talk::{Connection, Credentials, Managers, ReleaseArgs, ReservationsArgs, ReserveArgs};

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Decides over reservations for streams: the bandwidth manager of segments
    Manager(ManagerArgs),
    /// Asks a manager for a reservation
    Reserve(ReserveArgs),
    /// The reservations of a manager, or its links
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
        Command::Reserve(args) => talk::reserve(args),
        Command::Reservations(args) => talk::reservations(args, style),
        Command::Release(args) => talk::release(args),
    }
}
