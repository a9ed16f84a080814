// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports the progress of a run to whoever displays it.

use std::path::Path;

/// A step that takes time.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// The archive is being asked which packages a set has.
    Lists {
        /// The set of packages.
        set: &'a str,
    },
    /// Packages are being fetched.
    Download {
        /// The set of packages.
        set: &'a str,
        /// Bytes fetched so far.
        done_bytes: u64,
        total_bytes: u64,
    },
    /// Packages are being unpacked.
    Unpack {
        /// The set of packages.
        set: &'a str,
        /// Packages unpacked so far.
        done: usize,
        total: usize,
    },
    /// Something is being compiled.
    Build {
        /// What is being compiled.
        what: &'a str,
    },
    /// A guest was started.
    Boot {
        /// Number of the boot, from 0.
        boot: usize,
        /// Index of its first cell.
        first_cell: usize,
        cells: usize,
    },
    /// A guest has reached a point of a cell.
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
        /// Whether it delivered results.
        ok: bool,
    },
    /// A file is about to be written, or a folder about to be made, in the folder of the results.
    Output {
        path: &'a Path,
        /// Whether it is a folder.
        is_folder: bool,
    },
    /// A line for the user to read.
    Note { text: &'a str },
}

/// Receives events; from several threads at once when guests run side by side.
pub trait Progress: Sync {
    fn event(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Sync> Progress for F {
    fn event(&self, event: &Event<'_>) {
        self(event);
    }
}

/// Displays nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn event(&self, _event: &Event<'_>) {}
}
