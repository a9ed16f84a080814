// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress of a run, for the program that displays it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Steps of one cell: per cent of it.
const CELL_STEPS: f64 = 100.0;

/// Receives the laboratory's events and the simulator's steps, from several
/// threads at once.
pub trait Progress: vmlab::Progress {
    /// Reports that `done` of `total` steps of `what` are complete.
    fn steps(&self, what: &str, done: u64, total: u64);

    /// Reports that a piece of work has ended: its display may be removed.
    fn clear(&self);
}

impl Progress for vmlab::Quiet {
    fn steps(&self, _what: &str, _done: u64, _total: u64) {}

    fn clear(&self) {}
}

/// Counts the steps of one piece of work.
pub struct Steps<'a> {
    progress: &'a dyn Progress,
    what: &'static str,
    total: u64,
    done: AtomicU64,
}

impl<'a> Steps<'a> {
    /// Starts the count at `done` of `total` steps.
    pub fn new(progress: &'a dyn Progress, what: &'static str, done: u64, total: u64) -> Self {
        progress.steps(what, done, total);
        Self {
            progress,
            what,
            total,
            done: AtomicU64::new(done),
        }
    }

    /// Counts the steps of `count` cells.
    pub fn of_cells(progress: &'a dyn Progress, what: &'static str, count: usize) -> Self {
        Self::new(progress, what, 0, count as u64 * CELL_STEPS as u64)
    }

    /// Reports that `steps` more are complete.
    pub fn add(&self, steps: u64) {
        let done = self.done.fetch_add(steps, Ordering::Relaxed) + steps;
        self.progress.steps(self.what, done, self.total);
    }

    /// Returns a function that reports the progress of one cell. It is called again and again with
    /// the completed share of the cell, from 0 to 1.
    pub fn cell(&self) -> impl FnMut(f64) + '_ {
        let mut reported = 0;
        move |share| {
            // The value is between 0 and `CELL_STEPS`.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let steps = (share * CELL_STEPS) as u64;
            if steps > reported {
                self.add(steps - reported);
                reported = steps;
            }
        }
    }
}
