// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder for what must not outlive the system's run: a lock, so that changes are made by one
//! at a time, what a change that waits to be confirmed goes back to, and what byte queue limits were
//! before.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs4::FileExt;

/// Where the folder is. `RUNTIME_DIRECTORY` does not move it: a plugin of a runtime that systemd
/// started has that of the runtime.
const FOLDER: &str = "/run/pspacer";
/// Names another folder: for tests.
const VARIABLE: &str = "PSPACER_RUN";

/// Returns the folder's path, also where there is none.
#[must_use]
pub fn path() -> PathBuf {
    let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    named.map_or_else(|| PathBuf::from(FOLDER), PathBuf::from)
}

/// Returns the folder, which exists.
///
/// # Errors
/// If it cannot be made.
pub fn folder() -> Result<PathBuf> {
    let path = path();
    fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
    Ok(path)
}

/// Held while changes are made; ends with the process, however that ends.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits until nobody else makes changes.
    ///
    /// # Errors
    /// If the file cannot be locked.
    pub fn take(folder: &Path) -> Result<Self> {
        let path = folder.join("lock");
        let lock = || -> std::io::Result<File> {
            let mut options = File::options();
            let file = options.create(true).append(true).open(&path)?;
            FileExt::lock(&file)?;
            Ok(file)
        };
        let file = lock().with_context(|| path.display().to_string())?;
        Ok(Self { _file: file })
    }
}

/// Writes a file in one step: it is there as a whole, or as it was before.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let beside = path.with_extension("new");
    let write = || -> std::io::Result<()> {
        fs::write(&beside, text)?;
        fs::rename(&beside, path)
    };
    let written = write();
    if written.is_err() {
        // A disk that is full keeps no part of it.
        let _ = fs::remove_file(&beside);
    }
    written.with_context(|| path.display().to_string())
}
