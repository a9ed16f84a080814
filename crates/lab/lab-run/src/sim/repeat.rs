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
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::finished::Finished;
use crate::made_of;
use crate::progress::{Progress, Steps};
use crate::results_dir::{ResultsDir, Writer};
use crate::sim::support::{follows_seed, has_segments};
use crate::stored::{Id, Stored};
use crate::workers::side_by_side;

/// A piece of a scenario: one run of a cell, or all runs of a cell whose runs are joined.
pub(super) struct OneRun<'a> {
    pub cell: &'a Cell,
    /// Seed of the first run: the scenario's, plus the number of the run.
    pub seed: u64,
    /// Number of runs, with seeds that count up.
    pub runs: u64,
    /// Whether it is the first piece of the cell: more is told of it.
    pub is_first: bool,
    /// The folder of the results, if the piece writes files: the first of a cell may.
    pub out: Option<&'a ResultsDir>,
    pub steps: &'a Steps<'a>,
}

/// Where a piece is in its scenario.
#[derive(Clone, Copy)]
struct Place<'a> {
    cell: &'a Cell,
    seed: u64,
    runs: u64,
    is_first: bool,
}

/// Returns the pieces of a scenario: all of its first cell, then of the second, and so on.
fn places(scenario: &Scenario) -> Vec<Place<'_>> {
    let all = scenario.runs.max(1);
    let runs = if has_segments(scenario) { all } else { 1 };
    let of = |cell| {
        (0..all / runs).map(move |number| Place {
            cell,
            seed: scenario.seed.wrapping_add(number),
            runs,
            is_first: number == 0,
        })
    };
    scenario.cells.iter().flat_map(of).collect()
}

/// Returns the pieces of a scenario as the store knows them. The runs of a cell in which no seed
/// decides anything are the same piece.
pub(super) fn ids(scenario: &Scenario) -> Vec<Id> {
    let of = |place: Place<'_>| {
        let Place { cell, runs, .. } = place;
        let follows = follows_seed(cell);
        let seed = if follows { place.seed } else { scenario.seed };
        // The first run has more to tell, so it stands for all that are equal.
        let seeds = follows.then_some((place.seed, runs));
        let run = seed.wrapping_sub(scenario.seed);
        // A run's nanoseconds are far below 2^52.
        #[allow(clippy::cast_precision_loss)]
        let simulated_s = (cell.duration_ns + cell.settle_ns) as f64 / 1e9 * runs as f64;
        let key = made_of::of_simulated(cell, seeds);
        Id {
            own_key: key.clone(),
            key,
            name: format!(
                "{} simulated {} {run} {simulated_s}",
                scenario.name, cell.index
            ),
            engine: Engine::Netsim,
            simulated_s,
            is_further: false,
        }
    };
    places(scenario).into_iter().map(of).collect()
}

/// Measures a piece, unless the store has it.
pub(super) fn fill<T: Serialize + DeserializeOwned>(
    scenario: &Scenario,
    number: usize,
    (stored, id): (&Stored, &Id),
    work: impl Fn(&OneRun<'_>) -> Result<T>,
) -> Result<()> {
    let place = places(scenario);
    let place = *place.get(number).context("a piece that nobody has")?;
    let steps = Steps::of_cells(&vmlab::Quiet, "simulating", 1);
    let one = || run_once(scenario, place, (None, &steps), &work);
    stored.get(id, one).map(drop)
}

fn run_once<T>(
    scenario: &Scenario,
    place: Place<'_>,
    (out, steps): (Option<&ResultsDir>, &Steps<'_>),
    work: impl Fn(&OneRun<'_>) -> Result<T>,
) -> Result<T> {
    let Place {
        cell,
        seed,
        runs,
        is_first,
    } = place;
    let one = OneRun {
        cell,
        seed,
        runs,
        is_first,
        out: out.filter(|_| is_first),
        steps,
    };
    work(&one).with_context(|| format!("cell {} of {}, seed {seed}", cell.index, scenario.name))
}

/// All runs of a scenario, and the folder of the results.
pub(super) struct Repeated<'a, T> {
    scenario: &'a Scenario,
    /// The folder of the results.
    pub room: ResultsDir,
    /// What the pieces returned: all of the first cell, then of the second, and so on.
    pub pieces: std::vec::IntoIter<T>,
    wall_s: f64,
}

impl<'a, T: Send + Serialize + DeserializeOwned> Repeated<'a, T> {
    /// Opens the folder `out` and runs each cell `scenario.runs` times, with consecutive seeds. With
    /// a store, what it has does not run, and no piece writes a file.
    ///
    /// # Errors
    /// When the folder is not taken, or a run fails; the error names its cell and seed.
    pub fn new(
        scenario: &'a Scenario,
        out: &Path,
        jobs: Option<NonZeroUsize>,
        (progress, stored): (&dyn Progress, Option<&Stored>),
        work: impl Fn(&OneRun<'_>) -> Result<T> + Sync + Send,
    ) -> Result<Self> {
        let room = ResultsDir::open(out, Writer::Run)?;
        let begin = Instant::now();
        let places = places(scenario);
        let cells = places.iter().map(|place| place.runs).sum::<u64>();
        let cells = usize::try_from(cells).unwrap_or(usize::MAX);
        let steps = Steps::of_cells(progress, "simulating", cells);
        let pieces = match stored {
            None => side_by_side(places.len(), jobs, |number| {
                run_once(scenario, places[number], (Some(&room), &steps), &work)
            }),
            Some(stored) => ids(scenario)
                .iter()
                .zip(&places)
                .map(|(id, place)| {
                    let one = || run_once(scenario, *place, (None, &steps), &work);
                    stored.get(id, one).map(|(piece, _)| piece)
                })
                .collect(),
        };
        progress.clear();
        let pieces = pieces?.into_iter();
        Ok(Self {
            scenario,
            room,
            pieces,
            wall_s: begin.elapsed().as_secs_f64(),
        })
    }

    /// Returns what `run.json` says about the simulator's speed, for so many frames on lines.
    pub fn stats(&self, hops: u64) -> Value {
        let cells = self.scenario.cells.iter();
        let simulated_ns: u64 = cells.map(|cell| cell.duration_ns + cell.settle_ns).sum();
        let runs = self.scenario.runs.max(1) as f64;
        let simulated_s = simulated_ns as f64 / 1e9 * runs;
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
