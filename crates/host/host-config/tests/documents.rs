// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of hosts that the documents show are read without a fault.

use std::fs;
use std::path::Path;

use host_config::Host;

/// Returns what stands in a document from a line `[[device]]` to the end of its block.
fn files(document: &str) -> Vec<String> {
    let mut lines = document.lines();
    let mut found = vec![];
    while let Some(line) = lines.by_ref().find(|line| line.trim() == "[[device]]") {
        let rest = lines
            .by_ref()
            .take_while(|line| !line.starts_with("```") && line.trim() != "EOF");
        let file: Vec<&str> = std::iter::once(line).chain(rest).collect();
        found.push(file.join("\n"));
    }
    found
}

#[test]
fn hosts_in_documents_are_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    for (document, expected) in [
        ("README.md", 1),
        ("docs/use/host-file.md", 1),
        ("docs/use/recipes.md", 6),
    ] {
        let text = fs::read_to_string(root.join(document)).unwrap();
        let files = files(&text);
        assert_eq!(files.len(), expected, "{document}");
        for file in files {
            if let Err(fault) = Host::read(document, &file) {
                panic!("{fault}\n{file}");
            }
        }
    }
}
