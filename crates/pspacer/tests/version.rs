// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command, the module and its DKMS package have one version.

#![allow(clippy::unwrap_used, reason = "tests fail that way")]

mod common;

use std::fs;

use common::root;

/// What stands between the quotes behind `key` in a file.
fn quoted(file: &str, key: &str) -> String {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let (_, behind) = text.split_once(key).unwrap();
    behind.split('"').nth(1).unwrap().to_owned()
}

#[test]
fn command_module_and_package_have_one_version() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(quoted("kernel/sch_psp.c", "MODULE_VERSION("), version);
    assert_eq!(quoted("kernel/dkms.conf", "PACKAGE_VERSION="), version);
}
