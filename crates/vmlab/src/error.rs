// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong around the guest, and inside it.

use std::io;
use std::path::{Path, PathBuf};

use crate::console::Failure;

/// An error of the laboratory. One sentence each; where there is a log, its
/// path is in it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: "read", "create", ...
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A folder for results that has files.
    #[error(
        "{}: the folder has files; expected none, or an empty folder",
        path.display()
    )]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
    /// A program that is not there, or not allowed.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// Its name.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// A program that ended with an error.
    #[error("{what} failed: {detail}")]
    Command {
        /// What was being done.
        what: String,
        /// The last of what it said.
        detail: String,
    },
    /// apt knows no Debian archive.
    #[error(
        "none of apt's sources is a Debian archive with a component main ({seen}); \
         the laboratory's kernels and QEMU come from one: add it to apt's sources"
    )]
    NoArchive {
        /// What sources there are.
        seen: String,
    },
    /// Packages that are neither in the cache nor to be had.
    #[error(
        "the packages for {set} are not in the cache {} and could not be fetched: {detail}",
        cache.display()
    )]
    Packages {
        /// Which set.
        set: &'static str,
        /// The cache.
        cache: PathBuf,
        /// What apt said.
        detail: String,
    },
    /// A package that does not hold what it should.
    #[error("{set}: {} is not in the packages", missing.display())]
    Incomplete {
        /// Which set.
        set: &'static str,
        /// What was looked for.
        missing: PathBuf,
    },
    /// A kernel module that is not there, or not one.
    #[error("kernel module {name}: {detail}")]
    Module {
        /// Its name.
        name: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A conformance case that is not one.
    #[error("{}: {detail}", file.display())]
    Case {
        /// Where it is.
        file: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The project's own sources were not found.
    #[error(
        "the sources of the kernel modules are not found: run inside the project's folder, \
         or set PSPACER_ROOT to it"
    )]
    NoSources,
    /// This machine cannot run the laboratory.
    #[error("the laboratory runs programs for x86-64 Linux, and this machine is {0}")]
    Machine(&'static str),
    /// No cache folder can be told.
    #[error("neither PSPACER_CACHE, XDG_CACHE_HOME nor HOME says where to keep downloads")]
    NoCache,
    /// No threads to wait for the guests in.
    #[error("cannot start threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The guest failed.
    #[error("{failure}; the guest's console is in {}", console.display())]
    Guest {
        /// How.
        failure: Failure,
        /// The console log.
        console: PathBuf,
    },
    /// The results are not what they should be.
    #[error("the guest's results: {detail}; its console is in {}", console.display())]
    Results {
        /// What is wrong.
        detail: String,
        /// The console log.
        console: PathBuf,
    },
}

/// Adds the path and what was tried to an input or output error.
pub(crate) trait At<T> {
    /// `action` completes "cannot ... PATH".
    fn at(self, action: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io {
            action,
            path: path.to_owned(),
            source,
        })
    }
}
