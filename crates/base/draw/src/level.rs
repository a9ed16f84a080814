// SPDX-License-Identifier: MIT OR Apache-2.0
//! A level over time, such as that of a buffer, with the values that it may not exceed.

use crate::figure::Figure;
use crate::lines::{Line, Lines};
use crate::scale::Kind;

/// Part of the y axis above the values.
const ROOM: f64 = 1.08;

/// A level over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Level {
    /// Short name, for the file name.
    pub slug: &'static str,
    /// The title: what the plot shows.
    pub title: String,
    /// The caption: how to read it.
    pub caption: String,
    /// Name of the x axis, with the unit.
    pub x_name: String,
    /// Name of the y axis, with the unit.
    pub y_name: String,
    /// Points `x, [least, middle, largest]`, in order of x; a shade goes from the least to the
    /// largest.
    pub points: Vec<(f64, [f64; 3])>,
    /// Values with a name, at which a line is drawn. Those far above the level are left out.
    pub marks: Vec<(f64, String)>,
}

pub fn level(of: &Level) -> Figure {
    let ends = || of.points.iter().flat_map(|(_, values)| *values);
    let least_mark = of.marks.iter().map(|mark| mark.0).reduce(f64::min);
    let high = ends().chain(least_mark).fold(0.0, f64::max);
    let low = ends().fold(0.0, f64::min);
    let last = of.points.last().map_or(0.0, |point| point.0);
    let lines = Lines {
        lines: vec![Line {
            label: String::new(),
            colour: 0,
            points: of.points.clone(),
            target: None,
        }],
        x: (Kind::Linear, 0.0, last),
        x_name: of.x_name.clone(),
        y: (Kind::Linear, low, (high - low) * ROOM + low),
        y_name: of.y_name.clone(),
        marks: of.marks.clone(),
        dots: false,
    };
    Figure::new(of.slug, of.title.clone(), of.caption.clone(), |width| {
        lines.draw(width)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, [f64; 3])>) -> String {
        let mark = |value: f64, name: &str| (value, name.to_owned());
        let of = Level {
            slug: "vrx",
            title: "VRX".to_owned(),
            y_name: "packets".to_owned(),
            points,
            marks: vec![mark(9.0, "narrow"), mark(864.0, "wide")],
            ..Level::default()
        };
        level(&of).svg()
    }

    #[test]
    fn the_nearest_mark_is_always_drawn() {
        let low = plot(vec![(0.0, [0.0, 1.0, 2.0]), (1.0, [1.0, 1.5, 3.0])]);
        assert!(low.contains(">narrow<") && !low.contains(">wide<"), "{low}");
        assert!(low.contains("class=\"band f0\""), "a shade: {low}");
        let high = plot(vec![(0.0, [0.0, 1.0, 1000.0])]);
        assert!(
            high.contains(">narrow<") && high.contains(">wide<"),
            "{high}"
        );
    }

    #[test]
    fn no_data_gives_an_empty_plot() {
        let svg = plot(Vec::new());
        assert!(svg.starts_with("<svg") && !svg.contains("NaN"), "{svg}");
    }
}
