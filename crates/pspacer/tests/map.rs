// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the crates in the map of the source.

use std::fs;

use crate::common::root;

/// The map of the source.
pub const MAP: &str = "docs/contribute/architecture.md";

/// A row of the tables of crates in the map.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Its folder, below `crates/`.
    pub folder: String,
    /// The crates of ours that it uses, in order of name.
    pub uses: Vec<String>,
    /// Those that only its tests use.
    pub tests_use: Vec<String>,
}

/// Reads the tables of crates: one for each wing, `### WING`, from below.
pub fn rows(map: &str) -> Vec<(String, Row)> {
    let names = |cell: &str| -> Vec<String> {
        let mut names: Vec<_> = cell
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect();
        names.sort_unstable();
        names
    };
    let (_, section) = map.split_once("\n## Crates\n").unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut wing = "";
    let mut rows = vec![];
    for line in section.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            // The programs belong to no wing.
            wing = heading.split('`').nth(1).unwrap_or_default();
        }
        let cells: Vec<&str> = line.split('|').collect();
        let ["", name, _, uses, tests_use, ""] = cells[..] else {
            continue;
        };
        let Some(name) = name.split('`').nth(1) else {
            continue;
        };
        let row = Row {
            folder: format!("{wing}/{name}").trim_start_matches('/').to_owned(),
            uses: names(uses),
            tests_use: names(tests_use),
        };
        rows.push((name.to_owned(), row));
    }
    rows
}

/// Returns the crates in the map of the source.
pub fn map_rows() -> Vec<(String, Row)> {
    rows(&fs::read_to_string(root().join(MAP)).unwrap())
}
