// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of the laboratory, around the guest and inside it.

use std::io;
use std::path::{Path, PathBuf};

use scenario::Place;

use crate::console::Failure;

/// An error of the laboratory. Its text is one sentence, with the path of the log if there is one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action: "read", "create", ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        source: io::Error,
    },
    /// A folder for results contains files.
    #[error(
        "{}: the folder has files; expected none, or an empty folder",
        path.display()
    )]
    Occupied { path: PathBuf },
    /// A program is missing or may not be started.
    #[error("cannot start `{program}`: {source}")]
    Start { program: String, source: io::Error },
    /// A program ended with an error.
    #[error("{what} failed: {detail}")]
    Command {
        /// The task of the program.
        what: String,
        /// The end of the program's output.
        detail: String,
    },
    /// apt knows no Debian archive.
    #[error(
        "none of apt's sources is a Debian archive with a component main ({seen}); \
         the laboratory's kernels and QEMU come from one: add it to apt's sources"
    )]
    NoArchive {
        /// The sources that apt has.
        seen: String,
    },
    /// Packages are neither in the cache nor available from an archive.
    #[error(
        "the packages for {set} are not in the cache {} and could not be fetched: {detail}",
        cache.display()
    )]
    Packages {
        set: &'static str,
        cache: PathBuf,
        /// apt's message.
        detail: String,
    },
    /// A package lacks a file that it should contain.
    #[error("{set}: {} is not in the packages", missing.display())]
    Incomplete { set: &'static str, missing: PathBuf },
    /// A kernel module is missing or damaged.
    #[error("kernel module {name}: {detail}")]
    Module {
        name: String,
        /// The fault of the module.
        detail: String,
    },
    /// A conformance case is not in tdc's form.
    #[error("{}: {detail}", file.display())]
    Case {
        /// File with the case.
        file: PathBuf,
        /// The fault of the case.
        detail: String,
    },
    /// No host's file can say what a line of tc(8) says.
    #[error("{place}: {detail}")]
    HostFile {
        /// Place of the line.
        place: Place,
        /// What it cannot say.
        detail: String,
    },
    /// A program of a host is none of the guest's.
    #[error(
        "{place}: `run` names \"{name}\", expected `pspacer` or a program of the guest, such as \
         `sleep`, `tc` or `psp-send`"
    )]
    NoProgram {
        /// Place of the program.
        place: Place,
        name: String,
    },
    /// The command is not beside the program that runs.
    #[error(
        "a psp of BPF, and a [[program]] that runs `pspacer`, need that command beside this \
         program: build it, and run the scenario with it"
    )]
    NoCommand,
    /// The project's own sources were not found.
    #[error(
        "the sources of the kernel modules are not found: run inside the project's folder, \
         or set PSPACER_ROOT to it"
    )]
    NoSources,
    /// This machine cannot run the laboratory.
    #[error("the laboratory runs programs for x86-64 Linux, and this machine is {0}")]
    Machine(&'static str),
    /// The cache folder cannot be determined.
    #[error("neither PSPACER_CACHE, XDG_CACHE_HOME nor HOME says where to keep downloads")]
    NoCache,
    /// The threads that wait for the guests could not be started.
    #[error("cannot start threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    #[error("{failure}; the guest's console is in {}", console.display())]
    Guest {
        /// The kind of failure.
        failure: Failure,
        console: PathBuf,
    },
    /// The results are incomplete or damaged.
    #[error("the guest's results: {detail}; its console is in {}", console.display())]
    Results {
        /// The fault of the results.
        detail: String,
        console: PathBuf,
    },
}

/// Adds the path and the attempted action to an input or output error.
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
