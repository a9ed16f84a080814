// SPDX-License-Identifier: MIT OR Apache-2.0
//! Closeups: a stretch of time in fine intervals, with the cells beside each other.

use draw::figure::Figure;
use draw::grid::{Grid, Panel};
use draw::lines::Line;
use draw::scale::round_up;
use draw::theme::COLOURS;
use metrics::curves::{CloseupCurves, Curves};
use scenario::result::RunResult;
use units::display::{rate_unit, time, time_unit};

use crate::frames::is_of_frames;
use crate::sweep;

/// A panel with more points than this is drawn as a shade from the least to the largest value.
const MOST_POINTS: usize = 200;

/// Draws one figure for each closeup, with a panel for every cell that has it. If
/// `are_frames_drawn`, the closeup whose frames are drawn one by one is left out.
pub fn closeups(run: &RunResult, curves: &[Option<Curves>], are_frames_drawn: bool) -> Vec<Figure> {
    let mut names: Vec<&str> = Vec::new();
    for curves in curves.iter().flatten() {
        for closeup in &curves.closeups {
            // Frames that are drawn one by one need no curve of their rate.
            let is_drawn = are_frames_drawn && is_of_frames(curves, closeup);
            if !is_drawn && !names.contains(&closeup.name.as_str()) {
                names.push(&closeup.name);
            }
        }
    }
    names
        .into_iter()
        .filter_map(|name| figure(run, curves, name))
        .collect()
}

/// A cell's name, its flows' names, and its recorded closeup.
struct Shown<'a> {
    title: String,
    flows: Vec<&'a str>,
    closeup: &'a CloseupCurves,
}

fn figure(run: &RunResult, curves: &[Option<Curves>], name: &str) -> Option<Figure> {
    let varying = sweep::varying(run);
    let mut cells = Vec::new();
    for (cell, curves) in run.cells.iter().zip(curves) {
        let found = curves.as_ref().and_then(|c| {
            let closeup = c.closeups.iter().find(|c| c.name == name)?;
            let flows = c.flows.iter().map(|f| f.name.as_str()).collect();
            Some((closeup, flows))
        });
        if let Some((closeup, flows)) = found {
            let title = sweep::cell_name(cell, &varying);
            cells.push(Shown {
                title,
                flows,
                closeup,
            });
        }
    }
    let first = cells.first()?;
    let rates = |c: &Shown<'_>| bits_per_second(c.closeup, &sum(c.closeup));
    let highest = cells.iter().flat_map(rates).fold(0.0, f64::max);
    if highest <= 0.0 {
        return None;
    }
    let unit = rate_unit(highest);
    let ends_s = cells.iter().map(|c| end_s(c.closeup)).fold(0.0, f64::max);
    let seconds = time_unit(ends_s);
    let panels = cells
        .iter()
        .map(|c| Panel {
            title: c.title.clone(),
            lines: lines(c, unit.size, seconds.size),
            highest: round_up(highest * 1.02 / unit.size, 4),
        })
        .collect();
    let mut caption = format!(
        "Link-layer rate in {}, in intervals of {}; shades reach from the least to the largest of \
         neighbouring ones.",
        unit.name,
        time(first.closeup.interval_s)
    );
    if first.flows.len() > 1 {
        caption.push_str(" The sum of the flows is drawn too.");
    }
    let grid = Grid {
        panels,
        columns: 2,
        x: (first.closeup.from_s / seconds.size, ends_s / seconds.size),
        x_name: format!("time, {}", seconds.name),
        legend: names(first),
    };
    let title = format!("Closeup: {name}");
    Some(Figure::new("closeup", title, caption, |width| {
        grid.draw(width)
    }))
}

fn end_s(closeup: &CloseupCurves) -> f64 {
    let intervals = closeup.bytes.iter().map(Vec::len).max().unwrap_or(0);
    closeup.from_s + intervals as f64 * closeup.interval_s
}

/// Returns the bytes of all flows together in each interval.
fn sum(closeup: &CloseupCurves) -> Vec<u64> {
    let intervals = closeup.bytes.iter().map(Vec::len).max().unwrap_or(0);
    let at = |i: usize| closeup.bytes.iter().filter_map(|b| b.get(i)).sum();
    (0..intervals).map(at).collect()
}

fn bits_per_second(closeup: &CloseupCurves, bytes: &[u64]) -> Vec<f64> {
    // Bytes of an interval stay far below 2^53.
    let rate = |bytes: &u64| *bytes as f64 * 8.0 / closeup.interval_s;
    bytes.iter().map(rate).collect()
}

/// Returns the names of a panel's lines, with the indices of their colours.
fn names(shown: &Shown<'_>) -> Vec<(String, usize)> {
    let mut names: Vec<String> = shown.flows.iter().map(|n| (*n).to_owned()).collect();
    if let [only] = &mut names[..] {
        *only = time(shown.closeup.interval_s);
    } else {
        names.push("sum".to_owned());
    }
    if let Some(of) = shown.closeup.mean_of {
        let mean = time(shown.closeup.interval_s * of as f64);
        names.push(format!("mean over {mean}"));
    }
    let coloured = names.into_iter().enumerate();
    coloured.map(|(i, name)| (name, i % COLOURS)).collect()
}

fn lines(shown: &Shown<'_>, unit: f64, second: f64) -> Vec<Line> {
    let closeup = shown.closeup;
    let mut all: Vec<(Vec<f64>, usize)> = closeup
        .bytes
        .iter()
        .map(|bytes| (bits_per_second(closeup, bytes), 1))
        .collect();
    let sum = bits_per_second(closeup, &sum(closeup));
    if all.len() > 1 {
        all.push((sum.clone(), 1));
    }
    all.extend(closeup.mean_of.map(|of| (sum, of)));
    let named = all.into_iter().zip(names(shown));
    named
        .map(|((rates, mean_of), (label, colour))| Line {
            label,
            colour,
            points: points(closeup, &rates, mean_of, unit, second),
            target: None,
        })
        .collect()
}

/// Returns the means of `mean_of` intervals each, thinned to what a panel can show.
fn points(
    closeup: &CloseupCurves,
    rates: &[f64],
    mean_of: usize,
    unit: f64,
    second: f64,
) -> Vec<(f64, [f64; 3])> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let means: Vec<f64> = rates.chunks(mean_of.max(1)).map(mean).collect();
    let together = means.len().div_ceil(MOST_POINTS).max(1);
    let length_s = closeup.interval_s * (mean_of.max(1) * together) as f64;
    let place = |(i, values): (usize, &[f64])| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let at_s = closeup.from_s + (i as f64 + 0.5) * length_s;
        let spread = [low, mean(values), high].map(|v| v / unit);
        (at_s / second, spread)
    };
    means.chunks(together).enumerate().map(place).collect()
}
