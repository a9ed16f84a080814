// SPDX-License-Identifier: MIT OR Apache-2.0
//! The subcommands `plan`, `apply`, `save`, `restore` and `remove`: they read a host's file and the
//! kernel's tables, and make the changes of a plan (docs/use/host-file.md). What the file says and
//! which changes lead to it is `host-config`'s. Others that make such plans use [`observe`] and
//! [`DeviceWork`], or [`check`] and [`make`], with the same [`Lock`].

#![forbid(unsafe_code)]

mod applied;
mod args;
mod back;
mod choice;
mod commands;
mod confirm;
#[cfg(test)]
mod confirm_tests;
mod device;
mod follow;
mod make;
mod match_objects;
mod observe;
mod queue_limits;
mod read;
mod rights;
mod run_dir;
mod work;

use anyhow::Result;

pub use args::{ApplyArgs, Chosen, Command, PlanArgs, RemoveArgs, RestoreArgs, SaveArgs};
pub use choice::choose;
pub use commands::{Differences, class_names, devices_of, differences};
pub use device::DeviceWork;
pub use make::{check, make};
pub use observe::{Observed, observe};
pub use run_dir::{CALL_WAIT, Lock, folder, path, write};
pub use work::Io;

/// Runs a subcommand.
///
/// # Errors
/// A fault in a file, what is in the way, or the kernel's refusal.
pub fn run(command: &Command, io: &mut Io<'_>) -> Result<()> {
    match command {
        Command::Plan(args) => commands::plan(args, io),
        Command::Apply(args) if args.follow => follow::follow(args.drain, io),
        Command::Apply(args) => commands::apply(args, io),
        Command::Save(args) => commands::save(args, io),
        Command::Restore(args) => commands::restore(args, io),
        Command::Remove(args) => commands::remove(args, io),
    }
}
