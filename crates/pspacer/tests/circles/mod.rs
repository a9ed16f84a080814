// SPDX-License-Identifier: MIT OR Apache-2.0
//! Circles of files: files that import each other, in C or in Rust, or that call each other in C.
//!
//! An import is a `use`, or a path in the code, that leads to an item of
//! another file. A re-export leads on to the file that defines the item.
//! `mod x;` alone is no import, and neither is a `pub use` of a name that the
//! file itself does not use. Code for tests (`#[cfg(test)]`) is left out.

mod c;
mod rust;

use std::collections::{BTreeMap, BTreeSet};

pub use c::c_calls;
pub use rust::rust_imports;

/// Which files each file imports.
pub type Graph = BTreeMap<String, BTreeSet<String>>;

/// Returns the `#include "..."` between the C files among `files`, as the compiler finds them:
/// beside the including file, or below one of `folders`.
pub fn c_includes(files: &[(String, String)], folders: &[&str]) -> Graph {
    let known: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let mut graph = Graph::new();
    for (name, text) in files {
        if !(name.ends_with(".c") || name.ends_with(".h")) {
            continue;
        }
        let beside = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let targets = graph.entry(name.clone()).or_default();
        for line in text.lines().map(str::trim_start) {
            let Some(path) = line
                .strip_prefix("#include")
                .and_then(|rest| rest.split(['"', '<', '>']).nth(1))
            else {
                continue;
            };
            // The compiler looks beside the file only for names in quotes.
            let first = line.contains('"').then_some(&beside);
            let found = first
                .into_iter()
                .chain(folders)
                .map(|folder| plain(&format!("{folder}/{path}")))
                .find(|path| known.contains(path.as_str()));
            targets.extend(found);
        }
    }
    graph
}

/// Returns a path without `.` and `..`.
fn plain(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the sets of files that reach each other, each in order of name.
pub fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = graph
        .keys()
        .map(|from| (from.as_str(), reached(graph, from)))
        .collect();
    let reaches = |from: &str, to: &str| reach.get(from).is_some_and(|all| all.contains(to));
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for from in graph.keys().filter(|name| reaches(name, name)) {
        let same = graph
            .keys()
            .filter(|to| reaches(from, to) && reaches(to, from));
        found.insert(same.cloned().collect());
    }
    found.into_iter().collect()
}

fn reached<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&str> = vec![from];
    while let Some(at) = next.pop() {
        for to in graph.get(at).into_iter().flatten() {
            if seen.insert(to.as_str()) {
                next.push(to);
            }
        }
    }
    seen
}
