// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the fuzzer has found worth keeping (docs/contribute/fuzzing.md).

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]

use std::fs::File;
use std::io::Read;

use crate::folders::root;

/// Returns the inputs of a target by name, from the archive `fuzz/corpus/TARGET.tar`.
///
/// # Panics
/// If the archive cannot be read, or has fewer than `least` inputs.
pub fn corpus(target: &str, least: usize) -> Vec<(String, Vec<u8>)> {
    let archive = root().join(format!("fuzz/corpus/{target}.tar"));
    let file =
        File::open(&archive).unwrap_or_else(|error| panic!("{}: {error}", archive.display()));
    let mut archive = tar::Archive::new(file);
    let inputs: Vec<_> = archive
        .entries()
        .unwrap()
        .map(|entry| {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().display().to_string();
            let mut bytes = vec![];
            entry.read_to_end(&mut bytes).unwrap();
            (name, bytes)
        })
        .collect();
    assert!(inputs.len() >= least, "{target}: {} inputs", inputs.len());
    inputs
}
