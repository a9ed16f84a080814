// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a script in the laboratory's guest.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use scenario::Kernel;
use vmlab::{Lab, Quiet, ScriptSpec, run_script};

/// Runs a command in a guest with these modules and files, each with its place there, and prints
/// what it says, which is returned. What it leaves comes into `folder`.
///
/// # Panics
/// If the command fails, with what it and the guest said.
pub fn run_in_guest(
    (kernel, modules): (Kernel, &[&str]),
    files: &[(PathBuf, String)],
    command: &str,
    timeout: Duration,
    folder: &Path,
) -> String {
    let files: Vec<_> = files
        .iter()
        .map(|(from, to)| (from.as_path(), to.as_str()))
        .collect();
    let spec = ScriptSpec {
        kernel,
        modules,
        files: &files,
        command,
        seed: 1,
        timeout,
        out_dir: folder,
    };
    let ran = run_script(&Lab::find().unwrap(), &spec, &Quiet).unwrap_or_else(|error| {
        let console = fs::read_to_string(folder.join("console.log"));
        panic!("{kernel}: {error}\n{}", console.unwrap_or_default())
    });
    assert_eq!(ran.status, 0, "{kernel}:\n{}", ran.output);
    println!("{kernel}:\n{}", ran.output);
    ran.output
}
