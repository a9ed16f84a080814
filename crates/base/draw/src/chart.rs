// SPDX-License-Identifier: MIT OR Apache-2.0
//! Curves on logarithmic axes of numbers that come from no run.

use crate::figure::Figure;
use crate::lines::{Line, Lines};
use crate::scale::Kind;
use crate::theme::COLOURS;

/// Factor by which the y axis goes beyond the values.
const ROOM: f64 = 1.2;
/// Factor by which the x axis goes beyond the values, so that the last tick's label ends within the
/// plot.
const ROOM_AFTER: f64 = 1.6;

/// One of a [`Chart`]'s curves.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartCurve {
    pub label: String,
    /// Points `x, [low, middle, high]`, in order of x; all values are above 0. A shade goes from
    /// low to high where they differ.
    pub points: Vec<(f64, [f64; 3])>,
}

/// A plot with two logarithmic axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Short name, for the file name.
    pub slug: &'static str,
    /// The title: what the plot shows.
    pub title: String,
    /// Name of the x axis, with the unit.
    pub x_name: String,
    /// Name of the y axis, with the unit.
    pub y_name: String,
    pub curves: Vec<ChartCurve>,
}

pub fn chart(chart: &Chart) -> Figure {
    let points = || chart.curves.iter().flat_map(|c| &c.points);
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, 0.0f64), |(low, high), v| {
            (low.min(v), high.max(v))
        })
    };
    let x = range(&mut points().map(|p| p.0));
    let y = range(&mut points().flat_map(|p| p.1));
    let lines = Lines {
        lines: chart
            .curves
            .iter()
            .enumerate()
            .map(|(at, curve)| Line {
                label: curve.label.clone(),
                colour: at % COLOURS,
                points: curve.points.clone(),
                target: None,
            })
            .collect(),
        x: (Kind::Log, x.0, x.1 * ROOM_AFTER),
        x_name: chart.x_name.clone(),
        y: (Kind::Log, y.0 / ROOM, y.1 * ROOM),
        y_name: chart.y_name.clone(),
        marks: Vec::new(),
        dots: true,
    };
    Figure::new(chart.slug, chart.title.clone(), "", |width| {
        lines.draw(width)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_have_names_and_values_places() {
        let curve = |label: &str, high| ChartCurve {
            label: label.to_owned(),
            points: vec![(10.0, [1.0; 3]), (1000.0, [high; 3])],
        };
        let figure = chart(&Chart {
            slug: "c",
            title: "Cost".to_owned(),
            x_name: "classes".to_owned(),
            y_name: "ns".to_owned(),
            curves: vec![curve("heap", 100.0), curve("wheel", 10.0)],
        });
        let svg = figure.svg();
        assert!(svg.contains(">heap<") && svg.contains(">wheel<"), "{svg}");
        assert!(svg.contains(">1,000<"), "a tick at the last value: {svg}");
        assert_eq!(svg.matches("<circle").count(), 4, "a dot each: {svg}");
    }

    #[test]
    fn no_data_gives_an_empty_chart() {
        let figure = chart(&Chart {
            slug: "c",
            title: String::new(),
            x_name: String::new(),
            y_name: String::new(),
            curves: Vec::new(),
        });
        assert!(figure.svg().starts_with("<svg"));
    }
}
