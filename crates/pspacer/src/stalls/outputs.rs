// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks, before anything is read or written, that outputs do not take the place of what is read
//! or of each other.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns what is wrong with the outputs: options and their files.
pub fn fault(inputs: &[&Path], outputs: &[(&str, &Path)]) -> Option<String> {
    outputs.iter().enumerate().find_map(|(i, (option, path))| {
        let name = path.display();
        if let Err(fault) = psp_files::write::check(path) {
            return Some(format!("{option} {name}: {fault}"));
        }
        if inputs.iter().any(|input| are_same(input, path)) {
            return Some(format!(
                "{option} {name} is a file that is read: expected another file"
            ));
        }
        let before = outputs[..i].iter().find(|(_, other)| are_same(other, path));
        before.map(|(other, _)| format!("{option} and {other} name one file: expected two"))
    })
}

/// Returns whether two paths lead to one file, or would.
fn are_same(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        (Err(_), Err(_)) => place(a).is_some_and(|place_a| Some(place_a) == place(b)),
        _ => false,
    }
}

/// Returns the path of a file that does not exist yet, by its folder's true path.
fn place(path: &Path) -> Option<PathBuf> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}
