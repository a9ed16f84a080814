// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cache keeps downloads and builds between runs.
//!
//! An entry is complete or absent: it is built in a temporary folder, then renamed. Only one
//! process at a time fills an entry.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use fs4::FileExt;
use sha2::{Digest, Sha256};

use crate::error::{At, Error};

#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// A lock on an entry, held while the entry is being filled.
pub(crate) struct Lock(#[allow(dead_code, reason = "closing the file unlocks it")] File);

impl Cache {
    /// Returns the cache in `$PSPACER_CACHE`, else `$XDG_CACHE_HOME/pspacer`, else
    /// `~/.cache/pspacer`.
    ///
    /// # Errors
    /// [`Error::NoCache`] when none of the three is set.
    pub fn default_folder() -> Result<Self, Error> {
        let set = |name| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        set("PSPACER_CACHE")
            .or_else(|| set("XDG_CACHE_HOME").map(|path| path.join("pspacer")))
            .or_else(|| set("HOME").map(|path| path.join(".cache/pspacer")))
            .map(Self::at)
            .ok_or(Error::NoCache)
    }

    /// Uses the folder `root` as cache; it need not exist yet.
    pub fn at(root: PathBuf) -> Self {
        // The path is made absolute, because apt resolves relative paths against its own folders.
        Self {
            root: std::path::absolute(&root).unwrap_or(root),
        }
    }

    /// Returns the path of the cache.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Returns a folder in the cache, and makes it if it does not exist.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.root.join(name);
        fs::create_dir_all(&path).at("create", &path)?;
        Ok(path)
    }

    /// Waits until no other process works on `name`.
    pub(crate) fn lock(&self, name: &str) -> Result<Lock, Error> {
        let path = self.folder("locks")?.join(name);
        let file = File::create(&path).at("create", &path)?;
        FileExt::lock(&file).at("lock", &path)?;
        Ok(Lock(file))
    }

    /// Returns the folder `parent/name`. If it does not exist yet, `fill` makes it in a temporary
    /// folder.
    pub(crate) fn entry(
        &self,
        parent: &str,
        name: &str,
        fill: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<PathBuf, Error> {
        let folder = self.folder(parent)?;
        let path = folder.join(name);
        if path.is_dir() {
            return Ok(path);
        }
        let _lock = self.lock(&format!("{parent}-{name}"))?;
        if path.is_dir() {
            return Ok(path);
        }
        let temporary = tempfile::Builder::new()
            .prefix(".new-")
            .tempdir_in(&folder)
            .at("create a folder in", &folder)?;
        fill(temporary.path())?;
        let temporary = temporary.keep();
        fs::rename(&temporary, &path).at("move into place", &path)?;
        Ok(path)
    }
}

/// Returns the first 16 digits of the SHA-256 of some pieces. The borders between pieces count.
pub(crate) fn short_hash<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for piece in pieces {
        hash.update(u64::try_from(piece.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(piece);
    }
    hash.finalize()[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
