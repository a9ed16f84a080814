// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plot of bandwidth over time.

use draw::figure::Figure;
use draw::lines::{Line, Lines};
use draw::scale::{Kind, round_up};
use metrics::curves::{Curves, FlowCurves};
use units::display::{rate_unit, short, time, time_unit};

use crate::series::{self, MOST_LINES, Point};

/// Returns the rate that one more frame adds to a point of the curve, in bit/s. `None` if that is
/// less than a fiftieth of the rate of every flow, because such a step cannot be seen.
fn frame_step_bps(curves: &Curves, merge: usize) -> Option<f64> {
    let step = |f: &FlowCurves| {
        f64::from(f.mtu.saturating_add(14)) * 8.0 / (curves.interval_s * merge as f64)
    };
    let mean = |f: &FlowCurves| {
        let active = f.bytes.iter().filter(|b| **b > 0).count().max(1) as f64;
        f.bytes.iter().sum::<u64>() as f64 * 8.0 / (active * curves.interval_s)
    };
    let shown = curves
        .flows
        .iter()
        .filter(|f| step(f) * 50.0 > mean(f) && mean(f) > 0.0);
    shown.map(step).reduce(f64::max)
}

/// Curves with more points than this are drawn as a shade from the least to the largest value.
const MOST_POINTS: usize = 160;

/// Merges neighbouring points into their least, mean and largest value.
fn thin(points: &[Point]) -> Vec<Point> {
    let together = points.len().div_ceil(MOST_POINTS).max(1);
    let one = |points: &[Point]| {
        let mean =
            |of: fn(&Point) -> f64| points.iter().map(of).sum::<f64>() / points.len().max(1) as f64;
        Point {
            at_s: mean(|p| p.at_s),
            low: points.iter().map(|p| p.low).fold(f64::INFINITY, f64::min),
            middle: mean(|p| p.middle),
            high: points.iter().map(|p| p.high).fold(0.0, f64::max),
        }
    };
    points.chunks(together).map(one).collect()
}

/// Draws the bandwidth of every flow over time, or of groups of flows as bands. `None` if there is
/// nothing to draw.
pub fn bandwidth(curves: &Curves) -> Option<Figure> {
    let merge = series::merge(curves);
    let groups = series::groups(curves);
    let (mut lines, mut thinned) = (Vec::new(), false);
    for group in &groups {
        let all = series::bandwidth(curves, group, merge);
        let points = thin(&all);
        thinned |= points.len() < all.len();
        if !points.is_empty() {
            lines.push((group, points));
        }
    }
    let highest = lines
        .iter()
        .flat_map(|(group, points)| points.iter().map(|p| p.high).chain(group.target_bps()));
    let highest = highest.fold(0.0, f64::max);
    if highest <= 0.0 {
        return None;
    }
    let (unit, seconds) = (rate_unit(highest), time_unit(curves.duration_s));
    let targets = lines.iter().any(|(group, _)| group.target_bps().is_some());
    let lines = lines
        .into_iter()
        .map(|(group, points)| Line {
            label: group.label.clone(),
            colour: group.colour,
            points: points
                .iter()
                .map(|p| {
                    (
                        p.at_s / seconds.size,
                        [p.low, p.middle, p.high].map(|v| v / unit.size),
                    )
                })
                .collect(),
            target: group.target_bps().map(|t| t / unit.size),
        })
        .collect();
    let interval = time(curves.interval_s * merge as f64);
    let mut caption = format!("Link-layer rate in intervals of {interval}.");
    if let Some(step) = frame_step_bps(curves, merge) {
        let unit = rate_unit(step);
        caption.push_str(&format!(
            " A frame more or less in one of them is {} {}.",
            short(step / unit.size, 2),
            unit.name
        ));
    }
    if curves.flows.len() > MOST_LINES {
        caption.push_str(" Lines are medians; shades reach from the slowest flow to the fastest.");
    } else if thinned {
        caption.push_str(" Lines are means of a few; shades reach from the least to the largest.");
    }
    if targets {
        caption.push_str(" A precisely paced flow lies on its target, drawn dashed.");
    }
    let plot = Lines {
        lines,
        x: (Kind::Linear, 0.0, curves.duration_s / seconds.size),
        x_name: format!("time, {}", seconds.name),
        y: (Kind::Linear, 0.0, round_up(highest * 1.04 / unit.size, 5)),
        y_name: unit.name.to_owned(),
        marks: Vec::new(),
        dots: false,
    };
    Some(Figure::new(
        "bandwidth",
        "Bandwidth over time",
        caption,
        |width| plot.draw(width),
    ))
}
