// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folders of a test, found when it runs. `env!` would write the clone's path into the program, and guests
//! that carry it would be others in each clone.

#![allow(clippy::panic, reason = "tests fail that way")]

use std::env::current_exe;
use std::path::{Path, PathBuf};

/// Returns the folder of the crate, in which cargo and xtask run its tests.
pub fn crate_folder() -> &'static Path {
    Path::new(".")
}

/// Returns the project's folder, which has the lock, above the crate's.
///
/// # Panics
/// If no folder above has one.
pub fn root() -> &'static Path {
    let above = ["..", "../..", "../../.."].map(Path::new);
    let root = above
        .into_iter()
        .find(|folder| folder.join("Cargo.lock").exists());
    root.unwrap_or_else(|| panic!("no Cargo.lock above the crate's folder"))
}

/// Returns a folder for what a test compiles, cargo's `CARGO_TARGET_TMPDIR`.
///
/// # Panics
/// If the program's own path is not known.
pub fn output_folder() -> PathBuf {
    let program = current_exe().unwrap_or_else(|error| panic!("this program: {error}"));
    // TARGET/PROFILE/deps/PROGRAM
    let target = program.ancestors().nth(3).unwrap_or(Path::new("."));
    target.join("tmp")
}
