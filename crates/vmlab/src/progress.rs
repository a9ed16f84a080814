// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is going on, for whoever shows it.

use std::path::Path;

/// One thing that takes time.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// Packages are being fetched: bytes so far, and in all.
    Download {
        /// Which set of packages.
        set: &'a str,
        /// Bytes here.
        done_bytes: u64,
        /// Bytes in all.
        total_bytes: u64,
    },
    /// Packages are being unpacked: so many of so many.
    Unpack {
        /// Which set of packages.
        set: &'a str,
        /// Packages done.
        done: usize,
        /// Packages in all.
        total: usize,
    },
    /// Something is compiled.
    Build {
        /// What.
        what: &'a str,
    },
    /// A guest was started with so many cells.
    Boot {
        /// Number of the boot, from 0.
        boot: usize,
        /// Index of its first cell.
        first_cell: usize,
        /// Its cells.
        cells: usize,
    },
    /// A guest has come to a point of a cell.
    Cell {
        /// Number of the boot, from 0.
        boot: usize,
        /// Index of the cell.
        cell: usize,
        /// Share of the cell that is over, 0 to 1.
        done: f64,
    },
    /// A guest has ended.
    BootEnd {
        /// Number of the boot, from 0.
        boot: usize,
        /// It gave results.
        ok: bool,
    },
    /// A file is about to be written, or a folder made, in the folder of the results.
    Output {
        /// Its path.
        path: &'a Path,
        /// It is a folder.
        is_folder: bool,
    },
    /// One line worth reading.
    Note {
        /// The line.
        text: &'a str,
    },
}

/// Receives events; from several threads at once when guests run side by side.
pub trait Progress: Sync {
    /// Something happened.
    fn event(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Sync> Progress for F {
    fn event(&self, event: &Event<'_>) {
        self(event);
    }
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn event(&self, _event: &Event<'_>) {}
}
