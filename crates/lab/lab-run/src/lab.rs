// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a scenario once in the laboratory.

use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use scenario::Scenario;
use scenario::result::Engine;
use vmlab::{Event, RunSpec};

use crate::finished::Finished;
use crate::ground_truth::judge::check;
use crate::measure_cell::measure;
use crate::progress::Progress;
use crate::results_dir::{ResultsDir, Writer};
use crate::sim::support::{is_needed, own_qdisc};

/// Runs a scenario in the laboratory, writes into `out`, and measures what was recorded.
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
        "{}: it has segments, several runs, or flows that name a stack, how much they send or when they are silent: pspacer sim run runs it",
        scenario.name
    );
    check(scenario)?;
    let room = ResultsDir::open(out, Writer::Run)?;
    let spec = RunSpec {
        cells: &scenario.cells,
        per_boot: scenario.per_boot,
        kernel: scenario.kernel,
        seed: scenario.seed,
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
            measure(cell, (&room, &output.dir), output.zero_ns, &output.busy_ns)?;
        measured.tc.clone_from(&output.tc);
        measured.flow_reports.clone_from(&output.flow_reports);
        cells.push((measured, drawn));
    }
    let engine = (Engine::Vmlab, ran.kernel_release);
    Finished::write(scenario, engine, (cells, vec![]), &room, &ran.stats)
}
