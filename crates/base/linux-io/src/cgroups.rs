// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's cgroups of version 2, as folders. Each has a number for as long as it exists.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where the hierarchy is, alone or beside those of version 1.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// What is there.
const IS_ROOT: &str = "cgroup.controllers";

/// Returns where the hierarchy is; `None`: this host has none.
pub fn root() -> Option<PathBuf> {
    let mut roots = ROOTS.iter().map(Path::new);
    let root = roots.find(|root| root.join(IS_ROOT).exists());
    root.map(Path::to_owned)
}

/// Returns the number of the cgroup at a folder; `None`: there is none.
pub fn number(folder: &Path) -> Option<u64> {
    let metadata = fs::metadata(folder).ok()?;
    metadata.is_dir().then(|| metadata.ino())
}
