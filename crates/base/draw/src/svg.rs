// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small SVG writer, and the frame of a plot with its axes.
//!
//! The style sheet (`theme.rs`) sets colours and fonts: a plot follows its reader's light or dark
//! mode.

use std::fmt::Write as _;

use crate::escape::escape;
use crate::scale::Scale;
use crate::theme::SVG_STYLE;

/// The part of a text that lies at its point.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    /// The begin of the text.
    Start,
    /// The middle of the text.
    Middle,
    /// The end of the text.
    End,
}

/// A drawing to which elements are added.
#[derive(Clone, Debug)]
pub struct Canvas {
    width: f64,
    height: f64,
    body: String,
}

/// Formats a coordinate with at most two decimals: enough for a picture, and the same bytes on
/// every machine.
fn place(v: f64) -> String {
    let text = format!("{v:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

impl Canvas {
    /// Makes an empty canvas, `width` by `height` pixels.
    pub fn new(width: f64, height: f64) -> Self {
        Self {
            width,
            height,
            body: String::new(),
        }
    }

    fn element(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.body.write_fmt(text);
        self.body.push('\n');
    }

    /// Draws a straight line.
    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(place);
        self.element(format_args!(
            r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#
        ));
    }

    /// Draws a line through points; nothing if there are none.
    pub fn polyline(&mut self, points: &[(f64, f64)], class: &str) {
        if let Some(path) = path(points) {
            self.element(format_args!(r#"<path class="{class}" d="{path}"/>"#));
        }
    }

    /// Draws a filled shape.
    pub fn area(&mut self, points: &[(f64, f64)], class: &str) {
        if let Some(path) = path(points) {
            self.element(format_args!(r#"<path class="{class}" d="{path}Z"/>"#));
        }
    }

    /// Draws bars that stand on `base`, each `(left, width, top)`, as one shape.
    pub fn bars(&mut self, bars: &[(f64, f64, f64)], base: f64, class: &str) {
        let mut d = String::new();
        for (left, width, top) in bars {
            let [left, top, width, base] = [*left, *top, *width, base].map(place);
            let _ = write!(d, "M{left} {base}V{top}h{width}V{base}z");
        }
        if !d.is_empty() {
            self.element(format_args!(r#"<path class="{class}" d="{d}"/>"#));
        }
    }

    /// Draws upright strokes, each `(x, upper end, lower end)`, as one shape.
    pub fn strokes(&mut self, strokes: &[(f64, f64, f64)], class: &str) {
        let mut d = String::new();
        for (x, upper, lower) in strokes {
            let [x, upper, lower] = [*x, *upper, *lower].map(place);
            let _ = write!(d, "M{x} {upper}V{lower}");
        }
        if !d.is_empty() {
            self.element(format_args!(r#"<path class="{class}" d="{d}"/>"#));
        }
    }

    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, class: &str) {
        let [x, y, radius] = [x, y, radius].map(place);
        self.element(format_args!(
            r#"<circle class="{class}" cx="{x}" cy="{y}" r="{radius}"/>"#
        ));
    }

    /// Writes a line of text with its baseline at y.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let ([x, y], text) = ([x, y].map(place), escape(text));
        self.element(format_args!(
            r#"<text class="{class}" x="{x}" y="{y}"{anchor}>{text}</text>"#
        ));
    }

    /// Returns the drawing as part of a page that has the style sheet.
    pub fn inline(&self, class: &str, title: &str) -> String {
        self.finish(class, title, "", "")
    }

    /// Returns the drawing as a file of its own.
    pub fn standalone(&self, title: &str) -> String {
        let style = format!("<style>{SVG_STYLE}</style>\n");
        let size = format!(
            r#" xmlns="http://www.w3.org/2000/svg" width="{}" height="{}""#,
            place(self.width),
            place(self.height)
        );
        self.finish("plot", title, &style, &size)
    }

    fn finish(&self, class: &str, title: &str, style: &str, attributes: &str) -> String {
        let (title, [w, h]) = (escape(title), [self.width, self.height].map(place));
        format!(
            "<svg class=\"{class}\" role=\"img\" aria-label=\"{title}\" viewBox=\"0 0 {w} {h}\"{attributes}>\n\
             <title>{title}</title>\n{style}{}</svg>\n",
            self.body
        )
    }
}

/// Encodes a path as relative steps in tenths, which takes a third of the bytes of absolute ones.
fn path(points: &[(f64, f64)]) -> Option<String> {
    // The coordinates of a picture are far below the range of `i32`.
    let tenths = |v: f64| (v * 10.0).round() as i32;
    let mut points = points.iter().map(|&(x, y)| (tenths(x), tenths(y)));
    let (mut x, mut y) = points.next()?;
    let mut d = format!("M{} {}", tenth(x), tenth(y));
    d.push('l');
    let start = d.len();
    for (to_x, to_y) in points {
        if d.len() > start {
            d.push(' ');
        }
        let _ = write!(d, "{} {}", tenth(to_x - x), tenth(to_y - y));
        (x, y) = (to_x, to_y);
    }
    if d.len() == start {
        d.push_str("0 0");
    }
    Some(d)
}

fn tenth(v: i32) -> String {
    place(f64::from(v) / 10.0)
}

/// Estimates the width of a text in the plots' font, pixels.
pub fn text_width(text: &str) -> f64 {
    let wide = |c: char| match c {
        'i' | 'l' | 'j' | 't' | 'f' | 'r' | '.' | ',' | ' ' | '-' | '\'' | '|' | ':' | '/' => 3.9,
        'm' | 'w' | 'M' | 'W' => 9.6,
        c if c.is_uppercase() => 8.0,
        c if c.is_ascii_digit() => 7.6,
        c if c.len_utf8() > 2 => 9.0,
        _ => 6.7,
    };
    text.chars().map(wide).sum()
}

/// The area of a plot, with its axes at the left and at the bottom.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Left end of the plot area.
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Frame {
    /// Draws the grid lines and labels of the y axis, with the unit above them.
    pub fn y_axis(&self, canvas: &mut Canvas, y: &Scale, ticks: &[(f64, String)], unit: &str) {
        for (value, label) in ticks {
            let at = y.at(*value);
            canvas.line((self.left, at), (self.right, at), "grid");
            canvas.text((self.left - 8.0, at + 4.0), Anchor::End, "tick", label);
        }
        if !unit.is_empty() {
            canvas.text(
                (self.left - 8.0, self.top - 14.0),
                Anchor::End,
                "unit",
                unit,
            );
        }
    }

    /// Draws the x axis: the base line, ticks and labels below, with the axis' name.
    pub fn x_axis(&self, canvas: &mut Canvas, x: &Scale, ticks: &[(f64, String)], name: &str) {
        canvas.line((self.left, self.bottom), (self.right, self.bottom), "axis");
        for (value, label) in ticks {
            let at = x.at(*value);
            canvas.line((at, self.bottom), (at, self.bottom + 4.0), "axis");
            canvas.text((at, self.bottom + 18.0), Anchor::Middle, "tick", label);
        }
        let middle = f64::midpoint(self.left, self.right);
        canvas.text((middle, self.bottom + 36.0), Anchor::Middle, "unit", name);
    }
}

/// Moves overlapping labels apart, within `low..high`. Takes the wanted positions and returns the
/// final ones in the same order.
pub fn spread(wished: &[f64], distance: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wished.len()).collect();
    order.sort_by(|&a, &b| wished[a].total_cmp(&wished[b]));
    let mut placed = wished.to_vec();
    let mut floor = low;
    for &i in &order {
        placed[i] = placed[i].max(floor);
        floor = placed[i] + distance;
    }
    let mut ceiling = high;
    for &i in order.iter().rev() {
        placed[i] = placed[i].min(ceiling);
        ceiling = placed[i] - distance;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_and_short() {
        assert_eq!(
            path(&[(1.0, 2.0), (2.0, 4.04), (3.0, 4.0)]).unwrap(),
            "M1 2l1 2 1 0"
        );
        assert_eq!(path(&[(1.0, 2.0)]).unwrap(), "M1 2l0 0");
        assert_eq!(path(&[]), None);
    }

    #[test]
    fn text_is_escaped() {
        let mut canvas = Canvas::new(10.0, 5.0);
        canvas.text((1.0, 2.0), Anchor::End, "tick", "a<b");
        let svg = canvas.standalone("x & y");
        assert!(svg.contains(r#"<text class="tick" x="1" y="2" text-anchor="end">a&lt;b</text>"#));
        assert!(svg.contains("<title>x &amp; y</title>"));
    }

    #[test]
    fn labels_keep_apart() {
        assert_eq!(
            spread(&[10.0, 11.0, 50.0], 10.0, 0.0, 100.0),
            [10.0, 20.0, 50.0]
        );
        assert_eq!(spread(&[98.0, 97.0], 10.0, 0.0, 100.0), [100.0, 90.0]);
        assert_eq!(spread(&[], 10.0, 0.0, 100.0), [0.0; 0]);
    }
}
