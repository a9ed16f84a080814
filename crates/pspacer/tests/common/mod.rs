// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of the command share.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The project's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The command, run there.
pub fn pspacer(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pspacer"))
        .args(args)
        .current_dir(root())
        .output()
        .unwrap()
}
