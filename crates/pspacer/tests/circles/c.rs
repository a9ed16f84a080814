// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which C files call functions of which, in one folder. Kernel style is assumed: a function's name is in
//! the lines before a `{` of its own, and what it calls is indented.

use std::collections::{BTreeMap, BTreeSet};

use super::Graph;

/// Returns the calls between the C files of a folder, but for those of functions in `up`. A function that several
/// files define (`static`) is nobody's.
pub fn c_calls(files: &[(String, String)], folder: &str, up: &[&str]) -> Graph {
    let is_of = |name: &str| {
        let rest = name.strip_prefix(folder).unwrap_or("/");
        (rest.ends_with(".c") || rest.ends_with(".h")) && !rest.contains('/')
    };
    let texts: Vec<(&str, String)> = files
        .iter()
        .filter(|(name, _)| is_of(name))
        .map(|(name, text)| (name.as_str(), code(text)))
        .collect();
    let mut owners: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, text) in &texts {
        for function in defined(text) {
            owners.entry(function).or_default().insert(*name);
        }
    }
    let mut graph = Graph::new();
    for (name, text) in &texts {
        let targets = graph.entry((*name).to_owned()).or_default();
        let bodies = text
            .lines()
            .filter(|line| line.starts_with(char::is_whitespace));
        for called in bodies
            .flat_map(called)
            .filter(|called| !up.contains(called))
        {
            let Some(owners) = owners.get(called).filter(|owners| owners.len() == 1) else {
                continue;
            };
            let others = owners.iter().filter(|owner| *owner != name);
            targets.extend(others.map(|&owner| owner.to_owned()));
        }
    }
    graph
}

/// Returns the text without comments and without what is in quotes.
fn code(text: &str) -> String {
    let mut left = text;
    let mut kept = String::new();
    while let Some(at) = left.find(['/', '"']) {
        let (before, rest) = left.split_at(at);
        kept += before;
        let end = if rest.starts_with("/*") {
            rest.find("*/").map(|end| end + 2)
        } else if rest.starts_with("//") {
            rest.find('\n')
        } else if let Some(quoted) = rest.strip_prefix('"') {
            let quoted = quoted.replace("\\\\", "  ").replace("\\\"", "  ");
            quoted.find('"').map(|end| end + 2)
        } else {
            kept += "/";
            Some(1)
        };
        left = &rest[end.unwrap_or(rest.len())..];
    }
    kept + left
}

/// Returns the names of functions that are defined.
fn defined(text: &str) -> impl Iterator<Item = &str> {
    let mut name = None;
    text.lines().filter_map(move |line| {
        if line == "{" {
            return name.take();
        }
        if line.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
            name = called(line).next();
        } else if line.trim().is_empty() || line.ends_with(';') {
            name = None;
        }
        None
    })
}

/// Returns the names before an opening bracket.
fn called(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices('(').filter_map(|(at, _)| {
        let before = line[..at].trim_end();
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let name = &before[before.trim_end_matches(is_part).len()..];
        (!name.is_empty()).then_some(name)
    })
}
