// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is for the kernel's own tree follows the sources: the specification of psp's part of
//! netlink, and the patch series.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::common::root;

#[test]
fn the_specification_is_what_the_header_gives() {
    let script = root().join("packaging/upstream/spec.pl");
    let ran = Command::new("perl").arg(script).arg("--check").output();
    let ran = ran.unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
}

#[test]
fn the_series_has_every_file_of_the_scheduler() {
    let series = fs::read_to_string(root().join("packaging/upstream/series.sh")).unwrap();
    let patches = series.lines().filter_map(|line| line.strip_prefix("core "));
    let named: Vec<_> = patches.flat_map(str::split_whitespace).collect();
    let once: BTreeSet<_> = named.iter().map(ToString::to_string).collect();
    assert_eq!(named.len(), once.len(), "a file is in two patches");
    let files: BTreeSet<_> = fs::read_dir(root().join("core/src"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|file| file.trim_end_matches(".c").to_owned())
        .collect();
    assert_eq!(once, files);
}
