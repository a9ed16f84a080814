// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of the corpus: writing it, and comparing it with what is made anew.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::case::Case;

/// Writes the folders of the cases, and removes folders of cases that are no more.
pub fn write(folder: &Path, cases: &[Case]) -> io::Result<()> {
    for case in cases {
        let own = folder.join(&case.name);
        fs::create_dir_all(&own)?;
        for (name, bytes) in case.files() {
            let path = own.join(name);
            if !fs::read(&path).is_ok_and(|old| old == bytes) {
                fs::write(path, bytes)?;
            }
        }
    }
    for name in strangers(folder, cases)? {
        fs::remove_dir_all(folder.join(name))?;
    }
    Ok(())
}

/// Returns what in the folder differs from the cases, a line for each file.
pub fn differences(folder: &Path, cases: &[Case]) -> io::Result<Vec<String>> {
    let mut lines = Vec::new();
    for case in cases {
        for (name, bytes) in case.files() {
            match fs::read(folder.join(&case.name).join(name)) {
                Ok(old) if old == bytes => {}
                Ok(_) => lines.push(format!("{}/{name}: differs", case.name)),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    lines.push(format!("{}/{name}: is missing", case.name));
                }
                Err(error) => return Err(error),
            }
        }
    }
    let unknown = strangers(folder, cases)?.into_iter();
    lines.extend(unknown.map(|name| format!("{name}: no case makes it")));
    Ok(lines)
}

/// Returns the folders that no case makes.
fn strangers(folder: &Path, cases: &[Case]) -> io::Result<Vec<String>> {
    let names: BTreeSet<&str> = cases.iter().map(|c| c.name.as_str()).collect();
    let mut unknown = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() && !names.contains(name.as_str()) {
            unknown.push(name);
        }
    }
    unknown.sort();
    Ok(unknown)
}
