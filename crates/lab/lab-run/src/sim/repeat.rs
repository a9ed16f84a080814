// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs every cell of a scenario as often as the scenario says, and writes the results.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use draw::Plot;
use metrics::curves::Curves;
use scenario::result::{CellResult, Engine, TransferRow};
use scenario::{Cell, Scenario};
use serde_json::{Value, json};

use crate::finished::Finished;
use crate::progress::{Progress, Steps};
use crate::results_dir::{ResultsDir, Writer};
use crate::workers::side_by_side;

/// All runs of a scenario, and the folder of the results.
pub(super) struct Repeated<'a, T> {
    scenario: &'a Scenario,
    /// The folder of the results.
    pub room: ResultsDir,
    /// Number of runs of each cell.
    pub runs: usize,
    /// Number of pieces of each cell.
    pub pieces_of_cell: usize,
    /// What the runs returned, each of them a piece or joined with those next to it: all pieces of
    /// the first cell, then of the second, and so on.
    pub pieces: std::vec::IntoIter<T>,
    wall_s: f64,
}

/// One run of a cell.
pub(super) struct OneRun<'a> {
    pub cell: &'a Cell,
    /// Seed of the run: the scenario's, plus the number of the run.
    pub seed: u64,
    /// The folder of the results, for the first run of the cell: only that one writes files.
    pub out: Option<&'a ResultsDir>,
    pub steps: &'a Steps<'a>,
}

impl<'a, T: Send> Repeated<'a, T> {
    /// Opens the folder `out` and runs each cell `scenario.runs` times, with consecutive seeds.
    /// Each run is a piece.
    ///
    /// # Errors
    /// When the folder is not taken, or a run fails; the error names its cell and seed.
    pub fn new(
        scenario: &'a Scenario,
        out: &Path,
        jobs: Option<NonZeroUsize>,
        progress: &dyn Progress,
        work: impl Fn(&OneRun<'_>) -> Result<T> + Sync + Send,
    ) -> Result<Self> {
        Self::joined(scenario, out, jobs, progress, (1, work, |_: &mut T, _| {}))
    }

    /// Does what [`Repeated::new`] does, and joins so many consecutive runs of a cell to a piece, in
    /// their order: what thousand runs measured may not fit into memory.
    ///
    /// # Errors
    /// As [`Repeated::new`].
    pub fn joined(
        scenario: &'a Scenario,
        out: &Path,
        jobs: Option<NonZeroUsize>,
        progress: &dyn Progress,
        (runs_of_piece, work, join): (
            usize,
            impl Fn(&OneRun<'_>) -> Result<T> + Sync + Send,
            impl Fn(&mut T, T) + Sync + Send,
        ),
    ) -> Result<Self> {
        let room = ResultsDir::open(out, Writer::Run)?;
        let begin = Instant::now();
        // The scenario has at most 10,000 runs.
        let runs = usize::try_from(scenario.runs).unwrap_or(1).max(1);
        let steps = Steps::of_cells(progress, "simulating", scenario.cells.len() * runs);
        let run_once = |cell: &Cell, run: usize| {
            let one = OneRun {
                cell,
                seed: scenario.seed.wrapping_add(run as u64),
                out: (run == 0).then_some(&room),
                steps: &steps,
            };
            work(&one).with_context(|| {
                format!(
                    "cell {} of {}, seed {}",
                    cell.index, scenario.name, one.seed
                )
            })
        };
        let runs_of_piece = runs_of_piece.clamp(1, runs);
        let pieces_of_cell = runs.div_ceil(runs_of_piece);
        let count = scenario.cells.len() * pieces_of_cell;
        let pieces = side_by_side(count, jobs, |index| {
            let cell = &scenario.cells[index / pieces_of_cell];
            let first = index % pieces_of_cell * runs_of_piece;
            let mut piece = run_once(cell, first)?;
            for run in first + 1..runs.min(first + runs_of_piece) {
                join(&mut piece, run_once(cell, run)?);
            }
            Ok(piece)
        });
        progress.clear();
        let pieces = pieces?.into_iter();
        Ok(Self {
            scenario,
            room,
            runs,
            pieces_of_cell,
            pieces,
            wall_s: begin.elapsed().as_secs_f64(),
        })
    }

    /// Returns what `run.json` says about the simulator's speed, for so many frames on lines.
    pub fn stats(&self, hops: u64) -> Value {
        let cells = self.scenario.cells.iter();
        let simulated_ns: u64 = cells.map(|cell| cell.duration_ns + cell.settle_ns).sum();
        let simulated_s = simulated_ns as f64 / 1e9 * self.runs as f64;
        json!({
            "wall_s": self.wall_s,
            "simulated_s": simulated_s,
            "speed": simulated_s / self.wall_s,
            "packet_hops": hops,
            "packet_hops_per_s": (hops as f64 / self.wall_s).round(),
        })
    }

    /// Writes the results of the cells, the plots of the scenario, and `stats`.
    pub fn finish(
        self,
        results: (Vec<(CellResult, Curves)>, Vec<TransferRow>),
        plots: Vec<Plot>,
        stats: &Value,
    ) -> Result<Finished> {
        let engine = (Engine::Netsim, String::new());
        let mut finished = Finished::write(self.scenario, engine, results, &self.room, stats)?;
        for plot in &plots {
            let path = self.room.path().join(&plot.name);
            self.room.write(&path, plot.svg.as_bytes())?;
        }
        finished.plots = plots;
        Ok(finished)
    }
}
