// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots one-way delays over time, as two captures show them.

use draw::figure::Figure;
use draw::lines::{Line, Lines, Place};
use draw::scale::Kind;
use draw::theme::COLOURS;

/// Part of the values' range that the y axis goes beyond them.
const ROOM: f64 = 0.06;

/// Draws a line for each direction: its name, and points of time in s and the least, the median
/// and the largest delay in ms.
pub fn one_way(curves: Vec<(String, Vec<Place>)>) -> Figure {
    let points = || curves.iter().flat_map(|(_, points)| points);
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(v), high.max(v))
        })
    };
    let x = range(&mut points().map(|point| point.0));
    let y = range(&mut points().flat_map(|point| point.1).chain([0.0]));
    let room = (y.1 - y.0) * ROOM;
    let lines = curves.iter().enumerate().map(|(at, (label, points))| Line {
        label: label.clone(),
        colour: at % COLOURS,
        points: points.clone(),
        target: None,
    });
    let plot = Lines {
        lines: lines.collect(),
        x: (Kind::Linear, x.0, x.1),
        x_name: "time, s".to_owned(),
        y: (
            Kind::Linear,
            if y.0 < 0.0 { y.0 - room } else { 0.0 },
            y.1 + room,
        ),
        y_name: "one-way delay, ms".to_owned(),
        marks: Vec::new(),
        dots: false,
    };
    let caption = "Of packets that both captures have: the median of each interval, shaded from the \
                   least to the largest. Half of the least round trip bounds the error of all alike.";
    Figure::new("one-way", "One-way delay over time", caption, |width| {
        plot.draw(width)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_direction_has_a_line() {
        let curve = |name: &str, ms| {
            (
                name.to_owned(),
                vec![(0.0, [ms; 3]), (1.0, [ms, 2.0 * ms, 3.0 * ms])],
            )
        };
        let svg = one_way(vec![curve("a → b", 10.0), curve("b → a", 4.0)]).svg();
        assert!(svg.contains(">a → b<") && svg.contains(">b → a<"), "{svg}");
        assert!(
            svg.contains("one-way delay, ms") && !svg.contains("NaN"),
            "{svg}"
        );
    }
}
