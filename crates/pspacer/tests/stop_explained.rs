// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/understand/a-stop-explained.md quotes what its commands print.

use std::fs;

use crate::common::{root, well};

#[test]
fn the_page_quotes_what_its_commands_print() {
    let scenario = root().join("docs/examples/a-stop.toml");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    well(&[
        "sim",
        "run",
        scenario.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ]);
    let capture = out.join("cell-0/sender.pcapng");
    let said = well(&[
        "stalls",
        capture.to_str().unwrap(),
        "--min-duration",
        "100ms",
    ]);
    let page = fs::read_to_string(root().join("docs/understand/a-stop-explained.md")).unwrap();
    let (_, quoted) = page.split_once("```text\n").unwrap();
    let (quoted, _) = quoted.split_once("```").unwrap();
    for line in quoted.lines() {
        assert!(said.contains(line), "{line:?} is not in:\n{said}");
    }
}
