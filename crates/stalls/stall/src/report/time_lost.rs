// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots time lost as lying bars, a row for each cause or pair of hosts, divided by side.

use draw::figure::{Figure, is_narrow};
use draw::lines::{legend, legend_rows};
use draw::scale::{Kind, Scale};
use draw::svg::{Anchor, Canvas, Frame, text_width};
use units::display::short;

pub const SIDES: usize = 4;

/// One row: its name, and the time lost on each side, s.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeLost {
    /// Name of the cause or of the pair.
    pub name: String,
    /// Time lost by side, s, in the order of the names of sides.
    pub sides_s: [f64; SIDES],
}

const ROW_HEIGHT: f64 = 24.0;
const BAR_HEIGHT: f64 = 15.0;
const LEGEND_HEIGHT: f64 = 17.0;

/// Draws the rows, in their order. `sides` names the sides.
pub fn time_lost(
    slug: &'static str,
    title: &str,
    caption: &str,
    sides: [&str; SIDES],
    rows: &[TimeLost],
) -> Figure {
    Figure::new(slug, title, caption, |width| draw(sides, rows, width))
}

fn draw(sides: [&str; SIDES], rows: &[TimeLost], width: f64) -> Canvas {
    let used: Vec<(&str, usize)> = sides
        .into_iter()
        .enumerate()
        .filter(|(side, _)| rows.iter().any(|row| row.sides_s[*side] > 0.0))
        .map(|(side, name)| (name, side))
        .collect();
    let names: Vec<_> = used.iter().map(|(name, _)| *name).collect();
    let legends = legend_rows(&names, width);
    let top = 12.0 + legends.len() as f64 * LEGEND_HEIGHT;
    // On a narrow page a name stands above its bar.
    let is_above = is_narrow(width);
    let row_height = if is_above {
        ROW_HEIGHT * 1.7
    } else {
        ROW_HEIGHT
    };
    let widest = rows.iter().map(|r| text_width(&r.name)).fold(0.0, f64::max);
    let frame = Frame {
        left: if is_above {
            0.0
        } else {
            widest.min(width / 2.0) + 12.0
        },
        right: width - 64.0,
        top,
        bottom: top + rows.len() as f64 * row_height,
    };
    let mut canvas = Canvas::new(width, frame.bottom + 44.0);
    legend(&mut canvas, &used, &legends, 12.0);
    let most_s = rows
        .iter()
        .map(|row| row.sides_s.iter().sum())
        .fold(0.0, f64::max);
    let x = Scale::new(Kind::Linear, 0.0, most_s, frame.left, frame.right);
    let wanted = if is_above { 4 } else { 8 };
    let ticks: Vec<_> = x
        .ticks(wanted)
        .into_iter()
        .map(|t| (t, short(t, 4)))
        .collect();
    frame.x_axis(&mut canvas, &x, &ticks, "time lost, s");
    for (place, row) in rows.iter().enumerate() {
        let above = if is_above {
            row_height - ROW_HEIGHT
        } else {
            0.0
        };
        let upper = frame.top + place as f64 * row_height + above + (ROW_HEIGHT - BAR_HEIGHT) / 2.0;
        let lower = upper + BAR_HEIGHT;
        let baseline = lower - 3.5;
        if is_above {
            canvas.text((0.0, upper - 4.0), Anchor::Start, "name", &row.name)
        } else {
            canvas.text((frame.left - 8.0, baseline), Anchor::End, "name", &row.name)
        }
        let mut sum_s = 0.0;
        for (side, side_s) in row.sides_s.iter().enumerate().filter(|(_, s)| **s > 0.0) {
            let (from, to) = (x.at(sum_s), x.at(sum_s + side_s));
            sum_s += side_s;
            let corners = [(from, upper), (to, upper), (to, lower), (from, lower)];
            canvas.area(&corners, &format!("bar f{side}"));
        }
        let value = short(sum_s, 3);
        canvas.text((x.at(sum_s) + 6.0, baseline), Anchor::Start, "tick", &value);
    }
    canvas
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(rows: &[TimeLost]) -> String {
        let sides = ["sender", "receiver", "network", "unknown"];
        time_lost("t", "Time lost", "", sides, rows).svg()
    }

    #[test]
    fn a_row_has_its_name_its_sum_and_a_part_for_each_side() {
        let row = |name: &str, sides_s| TimeLost {
            name: name.to_owned(),
            sides_s,
        };
        let svg = plot(&[
            row("RTO tail", [0.0, 0.0, 2.0, 0.0]),
            row("a & b", [0.5, 0.0, 0.75, 0.0]),
        ]);
        assert!(svg.contains(">RTO tail<") && svg.contains(">a &amp; b<"));
        assert!(svg.contains(">2<") && svg.contains(">1.25<"), "{svg}");
        assert_eq!(svg.matches("class=\"bar f2\"").count(), 2);
        assert_eq!(svg.matches("class=\"bar f0\"").count(), 1);
        // The legend names the sides that are drawn.
        assert!(svg.contains(">network<") && svg.contains(">sender<"));
        assert!(!svg.contains(">receiver<") && !svg.contains(">unknown<"));
    }

    #[test]
    fn nothing_is_drawn_as_nothing() {
        let svg = plot(&[]);
        assert!(svg.starts_with("<svg") && !svg.contains("NaN"), "{svg}");
    }
}
