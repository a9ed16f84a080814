// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the subcommands in a guest.

use std::path::{Path, PathBuf};

use host_apply::{ApplyArgs, Chosen, Command, Io, RemoveArgs};

/// Runs a subcommand and returns what it prints.
///
/// # Panics
/// If it fails, with what it says and what it printed before.
pub fn run(command: &Command) -> String {
    let mut out = Vec::new();
    let mut io = Io {
        out: &mut out,
        note: &mut |_| {},
    };
    let ran = host_apply::run(command, &mut io);
    let said = String::from_utf8(out).unwrap();
    ran.unwrap_or_else(|error| panic!("{error:#}\n{said}"));
    said
}

fn apply_args(files: Vec<PathBuf>, follow: bool) -> ApplyArgs {
    ApplyArgs {
        chosen: Chosen {
            files,
            device: None,
            take_over: false,
        },
        dry_run: false,
        confirm: None,
        confirmed: false,
        follow,
        verify: None,
        drain: 10_000_000_000,
    }
}

pub fn apply(file: &Path) -> String {
    run(&Command::Apply(apply_args(vec![file.to_owned()], false)))
}

/// Applies again what was applied, as long as this process lives.
pub fn follow() -> String {
    run(&Command::Apply(apply_args(Vec::new(), true)))
}

/// Takes away what there is on a device.
pub fn remove(device: &str) -> String {
    let device = device.to_owned();
    run(&Command::Remove(RemoveArgs { device }))
}
