// SPDX-License-Identifier: MIT OR Apache-2.0
//! Curves over time or over another quantity: lines with their names at the end, and bands for
//! groups.

use units::display::short;

use crate::figure::is_narrow;
use crate::scale::{Kind, Scale};
use crate::svg::{Anchor, Canvas, Frame, spread, text_width};

/// A point of a curve: `x, [low, middle, high]` in the axes' units.
pub type Place = (f64, [f64; 3]);

/// One curve.
#[derive(Clone, Debug)]
pub struct Line {
    /// The curve's name, which stands at its end.
    pub label: String,
    /// Index of the curve's colour.
    pub colour: usize,
    /// The curve's points; a shade from low to high is drawn where they differ.
    pub points: Vec<Place>,
    /// Height of a dashed target line, drawn over the curve's length.
    pub target: Option<f64>,
}

/// A plot of curves.
#[derive(Clone, Debug)]
pub struct Lines {
    pub lines: Vec<Line>,
    /// Range and kind of the x axis.
    pub x: (Kind, f64, f64),
    /// Name of the x axis, with the unit.
    pub x_name: String,
    /// Range and kind of the y axis.
    pub y: (Kind, f64, f64),
    /// Name of the y axis, with the unit.
    pub y_name: String,
    /// Values at which a reference line is drawn, with the line's name.
    pub marks: Vec<(f64, String)>,
    /// Whether a dot is drawn at each point.
    pub dots: bool,
}

const LINE_HEIGHT: f64 = 17.0;
/// Names longer than this, in pixels, do not stand at their line's end.
const LONGEST_NAME: f64 = 150.0;
/// Factor by which bold text is wider.
const BOLD: f64 = 1.08;

impl Lines {
    /// Draws the plot on a page of this width.
    pub fn draw(&self, width: f64) -> Canvas {
        let narrow = is_narrow(width);
        let names = self
            .lines
            .iter()
            .map(|l| text_width(&l.label))
            .fold(0.0, f64::max);
        // Long names, or names without room beside the plot, stand above it.
        let above = narrow || names > LONGEST_NAME;
        let legend = if above {
            self.legend_rows(width)
        } else {
            Vec::new()
        };
        // A lone line needs no name: the title names it.
        let named = self.lines.len() > 1;
        let legend_height = if named {
            legend.len() as f64 * LINE_HEIGHT
        } else {
            0.0
        };
        let y_labels = self
            .y_ticks()
            .into_iter()
            .map(|t| text_width(&t.1))
            .fold(0.0, f64::max);
        let frame = Frame {
            left: y_labels.max(20.0) + 12.0,
            right: width
                - if above || !named {
                    10.0
                } else {
                    names * BOLD + 20.0
                },
            top: 34.0 + legend_height,
            bottom: legend_height + if narrow { 224.0 } else { 284.0 },
        };
        let mut canvas = Canvas::new(width, frame.bottom + 44.0);
        let x = Scale::new(self.x.0, self.x.1, self.x.2, frame.left, frame.right);
        let y = Scale::new(self.y.0, self.y.1, self.y.2, frame.bottom, frame.top);
        canvas.text((0.0, 12.0), Anchor::Start, "unit", &self.y_name);
        frame.y_axis(&mut canvas, &y, &self.y_ticks(), "");
        let wanted = if narrow { 5 } else { 9 };
        let ticks: Vec<_> = x
            .ticks(wanted)
            .into_iter()
            .map(|t| (t, short(t, 4)))
            .collect();
        frame.x_axis(&mut canvas, &x, &ticks, &self.x_name);
        self.draw_marks(&mut canvas, &frame, &y);
        self.lines
            .iter()
            .for_each(|line| draw_line(&mut canvas, line, &x, &y));
        self.draw_dots(&mut canvas, &x, &y);
        if named && above {
            draw_legend(&mut canvas, &self.lines, &legend);
        } else if named {
            self.draw_names(&mut canvas, &frame, &x, &y);
        }
        canvas
    }

    fn y_ticks(&self) -> Vec<(f64, String)> {
        let y = Scale::new(self.y.0, self.y.1, self.y.2, 1.0, 0.0);
        y.ticks(5).into_iter().map(|t| (t, short(t, 4))).collect()
    }

    fn draw_marks(&self, canvas: &mut Canvas, frame: &Frame, y: &Scale) {
        for (value, name) in &self.marks {
            let (low, high) = y.range();
            if !(low..=high).contains(value) {
                continue;
            }
            let at = y.at(*value);
            canvas.line((frame.left, at), (frame.right, at), "mark");
            canvas.text((frame.left + 6.0, at - 5.0), Anchor::Start, "note", name);
        }
    }

    fn draw_dots(&self, canvas: &mut Canvas, x: &Scale, y: &Scale) {
        for line in self.lines.iter().filter(|_| self.dots) {
            for (at, v) in &line.points {
                let class = format!("f{}", line.colour);
                canvas.dot((x.at(*at), y.at(v[1])), 2.6, &class);
            }
        }
    }

    /// Draws the names at the right end, where the lines end.
    fn draw_names(&self, canvas: &mut Canvas, frame: &Frame, x: &Scale, y: &Scale) {
        let end = |l: &Line| l.points.last().map_or(frame.bottom, |(_, v)| y.at(v[1]));
        let wished: Vec<_> = self.lines.iter().map(end).collect();
        let placed = spread(&wished, 15.0, frame.top + 2.0, frame.bottom - 2.0);
        for ((line, wished), at) in self.lines.iter().zip(wished).zip(placed) {
            let from = line.points.last().map_or(frame.right, |(at, _)| x.at(*at));
            // Draws a leader if the name stands at another height than the line's end.
            if (wished - at).abs() > 3.0 && frame.right - from < 12.0 {
                let class = format!("line s{}", line.colour);
                canvas.polyline(
                    &[(frame.right + 3.0, wished), (frame.right + 10.0, at)],
                    &class,
                );
            }
            let class = format!("label f{}", line.colour);
            canvas.text(
                (frame.right + 14.0, at + 4.0),
                Anchor::Start,
                &class,
                &line.label,
            );
        }
    }

    /// Returns the indices of the lines, in legend rows that fit the width.
    fn legend_rows(&self, width: f64) -> Vec<Vec<usize>> {
        legend_rows(
            &self
                .lines
                .iter()
                .map(|l| l.label.as_str())
                .collect::<Vec<_>>(),
            width,
        )
    }
}

/// Draws one curve on its axes.
pub fn draw_line(canvas: &mut Canvas, line: &Line, x: &Scale, y: &Scale) {
    let places: Vec<_> = line
        .points
        .iter()
        .map(|(at, v)| (x.at(*at), v.map(|v| y.at(v))))
        .collect();
    let colour = line.colour;
    if line.points.iter().any(|(_, [low, _, high])| low != high) {
        let upper = places.iter().map(|(at, v)| (*at, v[2]));
        let lower = places.iter().rev().map(|(at, v)| (*at, v[0]));
        canvas.area(
            &upper.chain(lower).collect::<Vec<_>>(),
            &format!("band f{colour}"),
        );
    }
    if let (Some(target), Some(first), Some(last)) = (line.target, places.first(), places.last()) {
        let at = y.at(target);
        canvas.line((first.0, at), (last.0, at), &format!("target s{colour}"));
    }
    let middle: Vec<_> = places.iter().map(|(at, v)| (*at, v[1])).collect();
    canvas.polyline(&middle, &format!("line s{colour}"));
}

/// Divides names into legend rows that fit the width; returns the indices of the names.
pub fn legend_rows(names: &[&str], width: f64) -> Vec<Vec<usize>> {
    let mut rows: Vec<Vec<usize>> = Vec::new();
    let mut used = f64::INFINITY;
    for (i, name) in names.iter().enumerate() {
        let need = text_width(name) + 34.0;
        if used + need > width {
            rows.push(Vec::new());
            used = 0.0;
        }
        used += need;
        if let Some(row) = rows.last_mut() {
            row.push(i);
        }
    }
    rows
}

fn draw_legend(canvas: &mut Canvas, lines: &[Line], rows: &[Vec<usize>]) {
    let entries: Vec<_> = lines.iter().map(|l| (l.label.as_str(), l.colour)).collect();
    legend(canvas, &entries, rows, 29.0);
}

/// Draws a legend: rows of names with a dot each, the first row at height `top`.
pub fn legend(canvas: &mut Canvas, entries: &[(&str, usize)], rows: &[Vec<usize>], top: f64) {
    let mut y = top;
    for row in rows {
        let mut x = 0.0;
        for &(name, colour) in row.iter().filter_map(|&i| entries.get(i)) {
            canvas.dot((x + 5.0, y - 4.0), 4.5, &format!("f{colour}"));
            canvas.text((x + 14.0, y), Anchor::Start, "name", name);
            x += text_width(name) + 34.0;
        }
        y += LINE_HEIGHT;
    }
}
