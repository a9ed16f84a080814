// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a scenario once in the laboratory.

use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use metrics::curves::Curves;
use scenario::Scenario;
use scenario::result::{CellResult, Engine};
use vmlab::{Event, RunSpec, RunStats};

use crate::finished::Finished;
use crate::ground_truth::judge::check;
use crate::measure_cell::measure;
use crate::progress::Progress;
use crate::results_dir::{ResultsDir, Writer};
use crate::runs;
use crate::sim::support::{is_needed, own_qdisc};

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
    if let Some(line) = own_qdisc(scenario) {
        bail!(
            "{}: tc: cqf is a qdisc of the simulator's own, which no kernel has: pspacer sim run \
             runs it",
            line.place
        );
    }
    ensure!(
        !is_needed(scenario),
        "{}: it has segments, or flows that name a stack, how much they send or when they are silent: pspacer sim run runs it",
        scenario.name
    );
    check(scenario)?;
    let room = ResultsDir::open(out, Writer::Run)?;
    let first = run_once(lab, scenario, (&room, out), (0, jobs), progress)?;
    let (mut cells, mut stats) = (first.cells, first.stats);
    for run in 1..scenario.runs {
        let scratch = tempfile::Builder::new()
            .prefix(".boot-run-")
            .tempdir_in(out)
            .with_context(|| format!("cannot make a folder in {}", out.display()))?;
        room.record_in_marker(scratch.path(), true)?;
        let text = &format!("{}: run {} of {}", scenario.name, run + 1, scenario.runs);
        progress.event(&Event::Note { text });
        let other = run_once(
            lab,
            scenario,
            (&room, scratch.path()),
            (run, jobs),
            progress,
        )?;
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

/// One run of all cells.
struct Once {
    kernel: String,
    cells: Vec<(CellResult, Curves)>,
    stats: RunStats,
}

/// Runs all cells once, the run of number `run`, into the folder `out`, which is `room` or below it.
fn run_once(
    lab: &vmlab::Lab,
    scenario: &Scenario,
    (room, out): (&ResultsDir, &Path),
    (run, jobs): (u64, Option<NonZeroUsize>),
    progress: &dyn Progress,
) -> Result<Once> {
    let spec = RunSpec {
        cells: &scenario.cells,
        per_boot: scenario.per_boot,
        kernel: scenario.kernel,
        seed: scenario.seed.wrapping_add(run),
        out_dir: out,
        jobs,
        timeout: None,
    };
    let noted = |event: &Event<'_>| match event {
        // A file that could not be added to the marker is kept; this run fails at its next file.
        Event::Output { path, is_folder } => drop(room.record_in_marker(path, *is_folder)),
        other => progress.event(other),
    };
    let ran = vmlab::run(lab, &spec, &noted);
    progress.clear();
    let ran = ran?;
    let mut cells = vec![];
    for (cell, output) in scenario.cells.iter().zip(&ran.cells) {
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
