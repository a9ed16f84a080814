// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the figures of a run and of a cell.

use draw::Figure;
use metrics::curves::Curves;
use scenario::result::RunResult;

use crate::charts;
use crate::streams;

/// Returns the figures over all cells: every flow in a few cells beside each other, else curves
/// over a swept number, else a comparison of the cells; then the cells over time.
pub fn run_figures(run: &RunResult, curves: &[Option<Curves>]) -> Vec<Figure> {
    let mut figures = Vec::new();
    // Streams on segments deliver what is offered: they differ only in their delays.
    if !streams::are_meant(run) {
        figures = charts::by_flow(run, curves);
        if figures.is_empty() {
            figures = charts::sweep(run);
        }
        if figures.is_empty() {
            figures.extend(charts::compare(run));
        }
    }
    figures.extend(charts::waits(run, curves));
    let are_frames_drawn = figures.iter().any(|f| f.slug == charts::FRAMES);
    figures.extend(charts::closeups(run, curves, are_frames_drawn));
    figures.extend(charts::transfers(run, curves));
    figures
}

/// Returns the figures of one cell.
pub fn cell_figures(curves: &Curves) -> Vec<Figure> {
    [
        charts::transfer(curves),
        charts::bandwidth(curves),
        charts::gaps(curves),
        charts::burstiness(curves),
    ]
    .into_iter()
    .flatten()
    .collect()
}
