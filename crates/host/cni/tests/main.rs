// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of this crate, in one program: a module for each file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail that way"
)]

use std::path::PathBuf;
use std::time::Duration;

mod budget;
mod call;
mod claims;
mod config;
#[path = "../../host-apply/tests/guest.rs"]
mod guest;
mod kubernetes;
mod names;
mod pods_lab;
mod real_lab;
mod refusals;

/// How long a guest may take.
const GUEST_TIMEOUT: Duration = Duration::from_secs(600);

/// Returns the plugin, which cargo has built beside this program. It says so in a variable, too, whose
/// name has a hyphen: shells drop that, and a toolchain may be started by one.
fn plugin() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let built = this.ancestors().nth(2).unwrap().join("pspacer-cni");
    assert!(built.exists(), "{}: no such file", built.display());
    built
}
