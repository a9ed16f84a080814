// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots how metrics depend on a swept number.

use draw::figure::Figure;
use draw::lines::{Line, Lines};
use draw::scale::{Kind, round_up};
use draw::theme::COLOURS;
use scenario::result::{FlowMetrics, RunResult};
use units::display::{rate_unit, time_unit};

use crate::sweep::{self, Dimension, Varying};

/// Least number of swept values for a curve; runs with fewer are compared instead.
const FEWEST_VALUES: usize = 4;

/// A metric drawn over the swept number.
struct Metric {
    slug: &'static str,
    title: &'static str,
    y_name: &'static str,
    caption: &'static str,
    marks: &'static [(f64, &'static str)],
    of: fn(&FlowMetrics) -> Option<f64>,
}

/// The metric of TCP flows.
const GOODPUT: Metric = Metric {
    slug: "goodput",
    title: "Goodput",
    y_name: "payload delivered, Mbit/s",
    caption: "Payload acknowledged over the time.",
    marks: &[],
    of: |m| m.goodput_bps.map(|bps| bps / 1e6),
};

/// The metrics of other flows.
const METRICS: [Metric; 2] = [
    Metric {
        slug: "error",
        title: "Error of the rate",
        y_name: "error, % of the target",
        caption: "How far the achieved rate is from its target. Exact pacing lies on zero.",
        marks: &[(0.0, "")],
        of: |m| m.error_pct,
    },
    Metric {
        slug: "burstiness-by",
        title: "Burstiness",
        y_name: "largest queue, MTU",
        caption: "Largest queue at a bottleneck of the flow's own rate. Up to 2 MTU is precise \
                  pacing.",
        marks: &[(2.0, "precise: 2 MTU")],
        of: |m| m.burstiness_mtu,
    },
];

/// Draws one plot for each metric, if a parameter with at least four numeric values was swept. Each
/// combination of the other parameters has a line, with a shade from the least to the largest of a
/// cell's flows.
pub fn sweep(run: &RunResult) -> Vec<Figure> {
    let varying = sweep::varying(run);
    let numeric = |v: &&Varying| v.values.len() >= FEWEST_VALUES && sweep::quantities(v).is_some();
    let Some(by) = varying
        .iter()
        .filter(numeric)
        .max_by_key(|v| v.values.len())
    else {
        return Vec::new();
    };
    // TCP's burstiness follows its window, so only the goodput is drawn.
    let goodput = figure(run, by, &varying, &GOODPUT);
    if goodput.is_some() {
        return goodput.into_iter().collect();
    }
    METRICS
        .iter()
        .filter_map(|metric| figure(run, by, &varying, metric))
        .collect()
}

fn figure(run: &RunResult, by: &Varying, varying: &[Varying], metric: &Metric) -> Option<Figure> {
    let window = sweep::main_window(run)?;
    let (values, dimension) = sweep::quantities(by)?;
    let others: Vec<_> = varying
        .iter()
        .filter(|v| v.name != by.name)
        .cloned()
        .collect();
    let (low, high) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(*v), high.max(*v))
        });
    let (unit, size) = unit(dimension, high);
    // Values over more than two decades are drawn on a logarithmic axis.
    let log = low > 0.0 && high / low > 100.0;
    let mut lines: Vec<Line> = Vec::new();
    for cell in &run.cells {
        let spread = sweep::spread(cell, window, metric.of);
        let at = cell.params.get(&by.name).and_then(|v| sweep::quantity(v));
        let (Some(spread), Some((at, _))) = (spread, at) else {
            continue;
        };
        let label = sweep::cell_name(cell, &others);
        let known = lines.iter().position(|l| l.label == label);
        let index = known.unwrap_or_else(|| {
            let colour = lines.len() % COLOURS;
            lines.push(Line {
                label,
                colour,
                points: Vec::new(),
                target: None,
            });
            lines.len() - 1
        });
        lines[index].points.push((at / size, spread));
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let plot = Lines {
        y: y_axis(&lines, metric)?,
        lines,
        x: (
            if log { Kind::Log } else { Kind::Linear },
            low / size,
            high / size,
        ),
        x_name: if unit.is_empty() {
            by.name.clone()
        } else {
            format!("{}, {unit}", by.name)
        },
        y_name: metric.y_name.to_owned(),
        marks: metric
            .marks
            .iter()
            .map(|(at, name)| (*at, (*name).to_owned()))
            .collect(),
        dots: values.len() <= 40,
    };
    let title = format!("{} by {}", metric.title, by.name);
    let caption = format!("{} Window “{window}”.", metric.caption);
    Some(Figure::new(metric.slug, title, caption, |width| {
        plot.draw(width)
    }))
}

fn unit(dimension: Dimension, high: f64) -> (&'static str, f64) {
    match dimension {
        Dimension::Number => ("", 1.0),
        Dimension::Size => ("KiB", 1024.0),
        Dimension::Rate => {
            let unit = rate_unit(high);
            (unit.name, unit.size)
        }
        Dimension::Time => {
            let unit = time_unit(high);
            (unit.name, unit.size)
        }
    }
}

fn y_axis(lines: &[Line], metric: &Metric) -> Option<(Kind, f64, f64)> {
    let all = || lines.iter().flat_map(|l| l.points.iter().map(|p| p.1));
    let low = all().map(|v| v[0]).reduce(f64::min)?;
    let high = all().map(|v| v[2]).reduce(f64::max)?;
    if low > 0.0 && high / low > 30.0 && metric.slug != GOODPUT.slug {
        return Some((Kind::Log, low / 1.2, high * 1.2));
    }
    let marks = || metric.marks.iter().map(|m| m.0);
    let (low, high) = (marks().fold(low, f64::min), marks().fold(high, f64::max));
    let room = ((high - low) * 0.05).max(0.01);
    let below = if low < 0.0 {
        low - room
    } else {
        0.0_f64.min(low)
    };
    Some((
        Kind::Linear,
        below,
        if low < 0.0 {
            high + room
        } else {
            round_up(high + room, 5)
        },
    ))
}
