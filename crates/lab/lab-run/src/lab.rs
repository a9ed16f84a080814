// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a scenario in the laboratory: as a whole into a folder, or guest by guest into the store.

use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use metrics::curves::Curves;
use scenario::result::{CellResult, Engine};
use scenario::{Cell, Scenario};
use serde::{Deserialize, Serialize};
use vmlab::{Event, RunSpec, RunStats};

use crate::finished::Finished;
use crate::ground_truth::judge::check;
use crate::made_of;
use crate::measure_cell::measure;
use crate::progress::Progress;
use crate::remarks::say_unmeasured;
use crate::results_dir::{ResultsDir, Writer};
use crate::runs;
use crate::sim::support::{is_needed, own_tc};
use crate::stored::{Id, Stored};

/// Runs after which a guest whose cells agree in all of them is not repeated.
const ENOUGH: usize = 3;

/// What was measured of one guest.
#[derive(Serialize, Deserialize)]
struct Booted {
    /// The kernel's release.
    kernel: String,
    cells: Vec<(CellResult, Curves)>,
}

/// Refuses a scenario that no kernel runs.
fn check_kernels(scenario: &Scenario) -> Result<()> {
    if let Some((line, word)) = own_tc(scenario) {
        bail!(
            "{}: tc: {word} is the simulator's own, which no kernel has: pspacer sim run runs it",
            line.place
        );
    }
    ensure!(
        !is_needed(scenario),
        "{}: it has segments, or flows that name a stack, how much they send or when they are silent: pspacer sim run runs it",
        scenario.name
    );
    check(scenario)
}

/// Returns the pieces of a scenario: all guests of its first run, then of the second, and so on.
/// Nothing boots, but modules and programs are compiled if the cache has none.
///
/// # Errors
/// When no kernel can run it, or what a guest needs cannot be had.
pub fn pieces(lab: &vmlab::Lab, scenario: &Scenario, progress: &dyn Progress) -> Result<Vec<Id>> {
    check_kernels(scenario)?;
    let told = |event: &vmlab::Event<'_>| progress.event(event);
    let command = made_of::command(&scenario.cells);
    let mut all = vec![];
    let spec = |run| spec(scenario, &scenario.cells, run, (Path::new(""), None));
    let specs: Vec<_> = (0..scenario.runs).map(spec).collect();
    let mut guests = vmlab::keys(lab, &specs, &command, &told)?.into_iter();
    for run in 0..scenario.runs {
        for (cells, guest) in boots(scenario).zip(&mut guests) {
            let cells_ns = cells.iter().map(|cell| cell.duration_ns + cell.settle_ns);
            // A guest's nanoseconds are far below 2^52.
            #[allow(clippy::cast_precision_loss)]
            let simulated_s = cells_ns.sum::<u64>() as f64 / 1e9;
            let first = cells.first().map_or(0, |cell| cell.index);
            all.push(Id {
                key: made_of::of_guest(&guest.all, cells),
                own_key: made_of::of_guest(&guest.own, cells),
                name: format!(
                    "{} {} {first} {run} {simulated_s}",
                    scenario.name, scenario.kernel
                ),
                engine: Engine::Vmlab,
                simulated_s,
                is_further: run >= ENOUGH as u64,
            });
        }
    }
    Ok(all)
}

/// Returns the cells of each guest of a run.
fn boots(scenario: &Scenario) -> impl Iterator<Item = &[Cell]> {
    scenario.cells.chunks(scenario.per_boot.max(1))
}

/// Returns whether the piece with this number need not run, because the first runs of its cells agree,
/// as far as the store knows them.
pub fn is_settled(scenario: &Scenario, number: usize, stored: &Stored, ids: &[Id]) -> bool {
    let count = boots(scenario).count().max(1);
    if number / count < ENOUGH {
        return false;
    }
    let first = |run: usize| ids.get(number % count + run * count);
    let known = (0..ENOUGH).map(|run| stored.known::<Booted>(first(run)?));
    let Some(known) = known.collect::<Option<Vec<_>>>() else {
        return false;
    };
    let cells = known.first().map_or(0, |booted| booted.cells.len());
    (0..cells).all(|cell| {
        let of_cell: Vec<_> = known.iter().filter_map(|b| b.cells.get(cell)).collect();
        let runs: Vec<_> = of_cell.iter().map(|(result, _)| result).collect();
        runs::agree(&runs)
    })
}

/// Measures the piece with this number, unless the store has it. What the guest left is gone then.
pub fn fill(
    lab: &vmlab::Lab,
    scenario: &Scenario,
    number: usize,
    stored: (&Stored, &Id),
) -> Result<()> {
    piece(lab, scenario, number, stored).map(drop)
}

fn piece(
    lab: &vmlab::Lab,
    scenario: &Scenario,
    number: usize,
    (stored, id): (&Stored, &Id),
) -> Result<(Booted, f64)> {
    let count = boots(scenario).count().max(1);
    let cells = boots(scenario).nth(number % count).unwrap_or_default();
    let run = (number / count) as u64;
    stored.get(id, || {
        let folder = tempfile::Builder::new()
            .prefix("pspacer-guest-")
            .tempdir()?;
        let room = ResultsDir::open(folder.path(), Writer::Run)?;
        let one = NonZeroUsize::new(1);
        let spec = spec(scenario, cells, run, (folder.path(), one));
        let once = run_once(lab, &spec, &room, &vmlab::Quiet)
            .with_context(|| format!("scenario {}", scenario.name))?;
        let mut cells = once.cells;
        if run > 0 {
            // Of a further run only the metrics count.
            cells
                .iter_mut()
                .for_each(|(_, curves)| *curves = Curves::default());
        }
        Ok(Booted {
            kernel: once.kernel,
            cells,
        })
    })
}

/// Puts together what was measured of a scenario's pieces, which are `ids`, and writes into `out`.
/// What is not in the store runs.
pub fn assemble(
    lab: &vmlab::Lab,
    scenario: &Scenario,
    out: &Path,
    (stored, ids): (&Stored, &[Id]),
) -> Result<Finished> {
    let room = ResultsDir::open(out, Writer::Run)?;
    let (mut cells, mut kernel) = (Vec::<(CellResult, Curves)>::new(), String::new());
    let mut stats = RunStats::default();
    for (number, id) in ids.iter().enumerate() {
        if is_settled(scenario, number, stored, ids) {
            continue;
        }
        let (booted, wall_s) = piece(lab, scenario, number, (stored, id))?;
        stats.wall_s += wall_s;
        stats.simulated_s += id.simulated_s;
        kernel = booted.kernel;
        for (again, curves) in booted.cells {
            match cells.iter_mut().find(|(cell, _)| cell.dir == again.dir) {
                Some((cell, _)) => runs::add(cell, &again),
                None => cells.push((again, curves)),
            }
        }
    }
    stats.speed = stats.simulated_s / stats.wall_s;
    Finished::write(
        scenario,
        (Engine::Vmlab, kernel),
        (cells, vec![]),
        &room,
        &stats,
    )
}

/// Runs a scenario in the laboratory, writes into `out`, and measures what was recorded. If the
/// scenario says so, each cell runs several times, with seeds that count up; of the runs after the
/// first only the measurements are kept.
pub fn run(
    lab: &vmlab::Lab,
    scenario: &Scenario,
    out: &Path,
    jobs: Option<NonZeroUsize>,
    progress: &dyn Progress,
) -> Result<Finished> {
    check_kernels(scenario)?;
    let room = ResultsDir::open(out, Writer::Run)?;
    let once = |run, out: &Path| {
        let spec = spec(scenario, &scenario.cells, run, (out, jobs));
        run_once(lab, &spec, &room, progress)
    };
    let first = once(0, out)?;
    say_unmeasured(progress, scenario);
    let (mut cells, mut stats) = (first.cells, first.stats);
    for run in 1..scenario.runs {
        let scratch = tempfile::Builder::new()
            .prefix(".boot-run-")
            .tempdir_in(out)
            .with_context(|| format!("cannot make a folder in {}", out.display()))?;
        room.record_in_marker(scratch.path(), true)?;
        let text = &format!("{}: run {} of {}", scenario.name, run + 1, scenario.runs);
        progress.event(&Event::Note { text });
        let other = once(run, scratch.path())?;
        for ((cell, _), (again, _)) in cells.iter_mut().zip(&other.cells) {
            runs::add(cell, again);
        }
        stats.wall_s += other.stats.wall_s;
        stats.simulated_s += other.stats.simulated_s;
        stats.boots.extend(other.stats.boots);
    }
    stats.speed = stats.simulated_s / stats.wall_s;
    let engine = (Engine::Vmlab, first.kernel);
    Finished::write(scenario, engine, (cells, vec![]), &room, &stats)
}

/// Describes the run of number `run` of some cells, into the folder `out_dir`.
fn spec<'a>(
    scenario: &'a Scenario,
    cells: &'a [Cell],
    run: u64,
    (out_dir, jobs): (&'a Path, Option<NonZeroUsize>),
) -> RunSpec<'a> {
    RunSpec {
        cells,
        per_boot: scenario.per_boot,
        kernel: scenario.kernel,
        seed: scenario.seed.wrapping_add(run),
        out_dir,
        jobs,
        timeout: None,
    }
}

/// One run of all cells.
struct Once {
    kernel: String,
    cells: Vec<(CellResult, Curves)>,
    stats: RunStats,
}

/// Runs all cells once, into a folder that is `room` or below it.
fn run_once(
    lab: &vmlab::Lab,
    spec: &RunSpec<'_>,
    room: &ResultsDir,
    progress: &dyn Progress,
) -> Result<Once> {
    let noted = |event: &Event<'_>| match event {
        // A file that could not be added to the marker is kept; this run fails at its next file.
        Event::Output { path, is_folder } => drop(room.record_in_marker(path, *is_folder)),
        other => progress.event(other),
    };
    let ran = vmlab::run(lab, spec, &noted);
    progress.clear();
    let ran = ran?;
    let mut cells = vec![];
    for (cell, output) in spec.cells.iter().zip(&ran.cells) {
        let (mut measured, drawn) =
            measure(cell, (room, &output.dir), output.zero_ns, &output.busy_ns)?;
        measured.tc.clone_from(&output.tc);
        measured.flow_reports.clone_from(&output.flow_reports);
        cells.push((measured, drawn));
    }
    Ok(Once {
        kernel: ran.kernel_release,
        cells,
        stats: ran.stats,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::result::{FlowMetrics, FlowResult, WindowResult};

    fn booted(dropped: u64) -> Booted {
        let metrics = FlowMetrics {
            dropped,
            ..FlowMetrics::default()
        };
        let cell = CellResult {
            windows: vec![WindowResult {
                flows: vec![FlowResult {
                    metrics,
                    ..FlowResult::default()
                }],
                ..WindowResult::default()
            }],
            ..CellResult::default()
        };
        Booted {
            kernel: String::new(),
            cells: vec![(cell, Curves::default())],
        }
    }

    /// Five runs of two guests: the first guest's runs agree, the second's do not.
    #[test]
    fn a_guest_whose_first_runs_agree_has_no_more() {
        let text = "name = \"a\"\ntitle = \"A\"\nduration = \"10ms\"\nruns = 5\n[sweep]\n\
                    delay = [\"1ms\", \"2ms\"]\n[[host]]\nname = \"tx\"\n[[host]]\nname = \"rx\"\n\
                    [[cable]]\nname = \"wire\"\nends = [\"tx:eth0\", \"rx:eth0\"]\n\
                    rate = \"1gbit\"\ndelay = \"${delay}\"\n";
        let scenario = scenario::parse("a.toml", text, &scenario::Options::default()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let cache = vmlab::Cache::at(folder.path().to_owned());
        let stored = Stored::at(&cache, vmlab::Answers::Stored).unwrap();
        let id = |number: usize| Id {
            own_key: String::new(),
            key: number.to_string(),
            name: number.to_string(),
            engine: Engine::Vmlab,
            simulated_s: 1.0,
            is_further: number >= 6,
        };
        let ids: Vec<_> = (0..10).map(id).collect();
        let settled = || -> Vec<usize> {
            let numbers = 0..ids.len();
            numbers
                .filter(|number| is_settled(&scenario, *number, &stored, &ids))
                .collect()
        };
        for (number, id) in ids.iter().enumerate().take(5) {
            assert!(settled().is_empty(), "nobody knows before all three ran");
            let dropped = if number % 2 == 0 { 7 } else { number as u64 };
            stored.get(id, || Ok(booted(dropped))).unwrap();
        }
        assert_eq!(settled(), [6, 8]);
        stored.get(&ids[5], || Ok(booted(5))).unwrap();
        assert_eq!(settled(), [6, 8]);
    }
}
