// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots TCP over time: the bandwidth, and below it the congestion window.

use draw::figure::Figure;
use draw::grid::{Grid, Panel};
use draw::lines::Line;
use draw::scale::round_up;
use draw::theme::COLOURS;
use metrics::curves::{Curves, FlowCurves};
use scenario::result::RunResult;
use units::display::{rate_unit, time_unit};

use crate::sweep;

/// Most points of a bandwidth curve.
const POINTS: usize = 100;
const MIB: f64 = 1024.0 * 1024.0;

/// One flow of one cell, as drawn.
struct Shown<'a> {
    label: String,
    curves: &'a Curves,
    flow: &'a FlowCurves,
}

/// Draws the flows of one cell whose TCP state was sampled; `None` if there are none.
pub fn transfer(curves: &Curves) -> Option<Figure> {
    let shown = sampled(curves).map(|flow| Shown {
        label: flow.name.clone(),
        curves,
        flow,
    });
    figure("TCP over time", &shown.collect::<Vec<_>>())
}

/// Draws the cells that differ in the parameter varied first over each other: one figure for each
/// combination of the other parameters.
pub fn transfers(run: &RunResult, curves: &[Option<Curves>]) -> Vec<Figure> {
    let varying = sweep::varying(run);
    let Some((first, others)) = varying.split_first() else {
        return Vec::new();
    };
    let mut groups: Vec<(String, Vec<Shown<'_>>)> = Vec::new();
    for (cell, curves) in run.cells.iter().zip(curves) {
        let Some(curves) = curves else { continue };
        let group = sweep::cell_name(cell, others);
        let value = cell.params.get(&first.name).map_or("", String::as_str);
        for flow in sampled(curves) {
            let label = if curves.flows.len() > 1 {
                format!("{value}, {}", flow.name)
            } else {
                value.to_owned()
            };
            let shown = Shown {
                label,
                curves,
                flow,
            };
            match groups.iter_mut().find(|(name, _)| *name == group) {
                Some((_, all)) => all.push(shown),
                None => groups.push((group.clone(), vec![shown])),
            }
        }
    }
    let readable = |(_, all): &&(String, Vec<Shown<'_>>)| (2..=COLOURS).contains(&all.len());
    let titled = |(name, all): &(String, Vec<Shown<'_>>)| {
        let title = match name.as_str() {
            "" => "TCP over time".to_owned(),
            name => format!("TCP over time, {name}"),
        };
        figure(&title, all)
    };
    groups.iter().filter(readable).filter_map(titled).collect()
}

fn sampled(curves: &Curves) -> impl Iterator<Item = &FlowCurves> {
    curves.flows.iter().filter(|f| f.tcp.is_some())
}

fn figure(title: &str, all: &[Shown<'_>]) -> Option<Figure> {
    let duration_s = all.iter().map(|s| s.curves.duration_s).reduce(f64::max)?;
    let seconds = time_unit(duration_s);
    let rates: Vec<Vec<(f64, f64)>> = all.iter().map(bandwidth).collect();
    let windows: Vec<Vec<(f64, f64)>> = all.iter().map(window).collect();
    let highest = |curves: &[Vec<(f64, f64)>]| {
        let values = curves.iter().flatten().map(|p| p.1);
        values.fold(0.0, f64::max)
    };
    let unit = rate_unit(highest(&rates));
    let panel = |title: String, curves: &[Vec<(f64, f64)>], size: f64| Panel {
        title,
        lines: curves
            .iter()
            .zip(all)
            .enumerate()
            .map(|(i, (points, shown))| Line {
                label: shown.label.clone(),
                colour: i % COLOURS,
                points: points
                    .iter()
                    .map(|(at_s, value)| (at_s / seconds.size, [value / size; 3]))
                    .collect(),
                target: None,
            })
            .collect(),
        highest: round_up(highest(curves) * 1.04 / size, 4),
    };
    let grid = Grid {
        panels: vec![
            panel(format!("bandwidth, {}", unit.name), &rates, unit.size),
            panel("congestion window, MiB".to_owned(), &windows, MIB),
        ],
        columns: 1,
        x: (0.0, duration_s / seconds.size),
        x_name: format!("time, {}", seconds.name),
        legend: all
            .iter()
            .enumerate()
            .map(|(i, s)| (s.label.clone(), i % COLOURS))
            .collect(),
    };
    let caption = "Link-layer rate on the wire, and the congestion window as the sender reports \
                   it: a loss shows as a fall of the window, an even rate as a level line.";
    Some(Figure::new("tcp", title, caption, |width| grid.draw(width)))
}

/// Returns the flow's rate over time: seconds, bits per second.
fn bandwidth(shown: &Shown<'_>) -> Vec<(f64, f64)> {
    let merge = shown.flow.bytes.len().div_ceil(POINTS).max(1);
    let length_s = shown.curves.interval_s * merge as f64;
    let place = |(i, bytes): (usize, &[u64])| {
        let bits = bytes.iter().sum::<u64>() as f64 * 8.0;
        let part_s = shown.curves.interval_s * bytes.len() as f64;
        ((i as f64 + 0.5) * length_s, bits / part_s)
    };
    shown
        .flow
        .bytes
        .chunks(merge)
        .enumerate()
        .map(place)
        .collect()
}

/// Returns the flow's congestion window over time: seconds, bytes.
fn window(shown: &Shown<'_>) -> Vec<(f64, f64)> {
    let samples = shown.flow.tcp.iter();
    samples
        .flat_map(|tcp| tcp.time_s.iter().zip(&tcp.cwnd_bytes))
        .map(|(at_s, bytes)| (*at_s, *bytes as f64))
        .collect()
}
