// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plot of burstiness over time.

use draw::figure::Figure;
use draw::lines::{Line, Lines};
use draw::scale::{Kind, round_up};
use metrics::curves::Curves;
use units::display::time_unit;

use crate::series::{self, MOST_LINES};

/// Most points of a curve: with more, the plot becomes black.
const POINTS: usize = 200;
/// Queues longer than this, in MTU, are drawn on a logarithmic axis.
const LINEAR_MTU: f64 = 12.0;

/// Draws the queue of the virtual bottleneck over time. `None` if nothing was sent.
pub fn burstiness(curves: &Curves) -> Option<Figure> {
    let intervals = curves.flows.iter().map(|f| f.bytes.len()).max()?;
    let merge = intervals.div_ceil(POINTS).max(1);
    let seconds = time_unit(curves.duration_s);
    let mut lines = Vec::new();
    let (mut lowest, mut highest) = (f64::INFINITY, 0.0f64);
    for group in &series::groups(curves) {
        let points = series::queue(curves, group, merge);
        for p in &points {
            lowest = if p.low > 0.0 {
                lowest.min(p.low)
            } else {
                lowest
            };
            highest = highest.max(p.high);
        }
        if !points.is_empty() {
            let place = |p: &series::Point| (p.at_s / seconds.size, [p.low, p.middle, p.high]);
            lines.push(Line {
                label: group.label.clone(),
                colour: group.colour,
                points: points.iter().map(place).collect(),
                target: None,
            });
        }
    }
    if highest <= 0.0 {
        return None;
    }
    let y = if highest > LINEAR_MTU {
        (Kind::Log, lowest.clamp(0.1, 1.0), highest * 1.1)
    } else {
        (Kind::Linear, 0.0, round_up(highest.max(2.0) * 1.1, 5))
    };
    let mut caption = format!(
        "Largest queue at a virtual bottleneck that drains at the flow's own average rate, in \
         the window “{}”. An even flow stays at 1 MTU; up to 2 MTU counts as precise pacing.",
        curves.queue_window
    );
    if curves.flows.len() > MOST_LINES {
        caption
            .push_str(" Lines are medians; shades reach from the least bursty flow to the most.");
    }
    let plot = Lines {
        lines,
        x: (Kind::Linear, 0.0, curves.duration_s / seconds.size),
        x_name: format!("time, {}", seconds.name),
        y,
        y_name: "queue, MTU".to_owned(),
        marks: vec![(2.0, "precise: 2 MTU".to_owned())],
        dots: false,
    };
    Some(Figure::new(
        "burstiness",
        "Burstiness over time",
        caption,
        |width| plot.draw(width),
    ))
}
