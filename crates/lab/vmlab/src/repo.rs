// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the project's own sources, which are compiled for the guest.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use crate::cache::short_hash;
use crate::error::{At, Error};
use crate::source_text::{Language, deciding};

/// The project's folder, with `kernel/`, `core/`, `lab/` and the rest.
#[derive(Clone, Debug)]
pub struct Sources {
    root: PathBuf,
}

/// Returns the folders to search for the project: `$PSPACER_ROOT` alone if it is set; else the
/// current folder and those above it, then the folder where the program is installed
/// (`../share/pspacer`), then the folders above the program.
pub fn roots() -> Vec<PathBuf> {
    if let Some(root) = named_root() {
        return vec![root];
    }
    let current = env::current_dir().unwrap_or_default();
    let program = env::current_exe().unwrap_or_default();
    let folder = program.parent().unwrap_or(Path::new(""));
    let prefix = folder.parent().unwrap_or(Path::new(""));
    let around = current.ancestors().map(Path::to_owned);
    let installed = prefix.join("share/pspacer");
    let above = folder.ancestors().map(Path::to_owned);
    around.chain([installed]).chain(above).collect()
}

/// Returns `$PSPACER_ROOT`, if it is set.
pub fn named_root() -> Option<PathBuf> {
    let root = env::var_os("PSPACER_ROOT").filter(|root| !root.is_empty());
    root.map(PathBuf::from)
}

impl Sources {
    /// Returns the first of [`roots`] that contains the sources.
    ///
    /// # Errors
    /// [`Error::NoSources`] when none of them has the sources.
    pub fn find() -> Result<Self, Error> {
        roots()
            .into_iter()
            .find_map(|root| Self::at(root).ok())
            .ok_or(Error::NoSources)
    }

    /// Uses the sources in the folder `root`.
    ///
    /// # Errors
    /// [`Error::NoSources`] when the folder does not contain them.
    pub fn at(root: PathBuf) -> Result<Self, Error> {
        if ["lab/wire/Kbuild", "kernel/Kbuild", "tc/Makefile"]
            .iter()
            .all(|file| root.join(file).is_file())
        {
            Ok(Self { root })
        } else {
            Err(Error::NoSources)
        }
    }

    /// Returns the folder of the sources.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Returns every source file under some folders, sorted; files that a build leaves behind are
    /// none.
    pub(crate) fn files(&self, folders: &[&str]) -> Result<Vec<PathBuf>, Error> {
        let mut files = Vec::new();
        for folder in folders {
            let top = self.root.join(folder);
            for entry in WalkDir::new(&top).sort_by_file_name() {
                let entry = entry.map_err(std::io::Error::from).at("read", &top)?;
                if entry.file_type().is_file() && is_source(entry.path()) {
                    let path = entry
                        .path()
                        .strip_prefix(&self.root)
                        .unwrap_or(entry.path());
                    files.push(path.to_owned());
                }
            }
        }
        Ok(files)
    }

    /// Returns the bytes of a file; of C, where only what `decides` is wanted, without comments and
    /// blank lines.
    fn bytes(&self, file: &Path, text: Text) -> Result<Vec<u8>, Error> {
        let path = self.root.join(file);
        let bytes = fs::read(&path).at("read", &path)?;
        let extension = file.extension().unwrap_or_default().to_string_lossy();
        let language = Language::of(&extension);
        Ok(match (text, language) {
            (Text::Deciding, Language::C) => {
                deciding(&String::from_utf8_lossy(&bytes), language).into_bytes()
            }
            _ => bytes,
        })
    }

    /// Returns a hash that identifies what some folders compile to. A comment changes none, nor does
    /// a test.
    pub(crate) fn hash(&self, folders: &[&str]) -> Result<String, Error> {
        let mut pieces = Vec::new();
        let is_test = |file: &PathBuf| file.components().any(|part| part.as_os_str() == "tests");
        for file in self
            .files(folders)?
            .into_iter()
            .filter(|file| !is_test(file))
        {
            pieces.push(file.to_string_lossy().into_owned().into_bytes());
            pieces.push(self.bytes(&file, Text::Deciding)?);
        }
        Ok(short_hash(pieces.iter().map(Vec::as_slice)))
    }

    /// Copies some folders, so that builds write nothing among the sources.
    pub(crate) fn copy(&self, folders: &[&str], to: &Path, text: Text) -> Result<(), Error> {
        for file in self.files(folders)? {
            let target = to.join(&file);
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder).at("create", folder)?;
            }
            let from = self.root.join(&file);
            fs::write(&target, self.bytes(&file, text)?).at("write", &target)?;
            // Scripts that a build starts are executable.
            let mode = from.metadata().at("read", &from)?.permissions();
            fs::set_permissions(&target, mode).at("write", &target)?;
        }
        Ok(())
    }
}

/// What of a source is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    Whole,
    /// What decides what is compiled: then no number of a line that ends up in the result depends
    /// on comments.
    Deciding,
}

/// Returns whether a file is a source, and not left behind by a build.
fn is_source(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    matches!(extension.as_ref(), "c" | "h" | "S" | "sh")
        || ["Kbuild", "Makefile"].contains(&name.as_ref())
        || name.starts_with("Makefile.")
        || name.starts_with("Kbuild.")
        || extension == "mk"
}
