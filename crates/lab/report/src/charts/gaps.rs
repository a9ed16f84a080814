// SPDX-License-Identifier: MIT OR Apache-2.0
//! The histogram of gaps: the distances between the starts of frames.

use draw::figure::{Figure, is_narrow};
use draw::scale::{Kind, Scale};
use draw::svg::{Anchor, Canvas, Frame, text_width};
use metrics::curves::Curves;
use metrics::gaps::Bin;
use units::display::{number, short};

use crate::series::{self, Group};

const ROW_HEIGHT: f64 = 74.0;
const BAR_HEIGHT: f64 = 44.0;

/// Draws a histogram of gaps for every flow, or for groups of flows; both axes are logarithmic.
/// `None` if there are no gaps.
pub fn gaps(curves: &Curves) -> Option<Figure> {
    let groups = series::groups(curves);
    let rows: Vec<Row<'_>> = groups
        .iter()
        .map(|group| Row {
            group,
            bins: series::gaps(group),
        })
        .filter(|row| !row.bins.is_empty())
        .collect();
    let bins = || rows.iter().flat_map(|r| r.bins.iter());
    let (first, last) = (bins().map(|b| b.0).min()?, bins().map(|b| b.0).max()?);
    let full = rows
        .first()?
        .group
        .members
        .first()?
        .mtu
        .saturating_add(14 + 24);
    let plot = Gaps {
        most: bins().map(|b| b.1).max().unwrap_or(1),
        low: begin(first).min(f64::from(full) * 0.8),
        high: begin(last + 1)
            .max(begin(first) * 10.0)
            .max(f64::from(full) * 2.0),
        full: f64::from(full),
        rows,
    };
    let caption = "From the start of one frame to the start of the next, in byte times of the \
        line; counts on a logarithmic axis, so that a single stray gap shows. Precise pacing \
        is one column; a column at the dotted line is frames that left back to back.";
    Some(Figure::new(
        "gaps",
        "Distance of frames",
        caption,
        |width| plot.draw(width),
    ))
}

fn begin(bin: i32) -> f64 {
    Bin { bin, count: 0 }.begin_bytes()
}

struct Row<'a> {
    group: &'a Group<'a>,
    bins: Vec<(i32, u64)>,
}

struct Gaps<'a> {
    rows: Vec<Row<'a>>,
    most: u64,
    low: f64,
    high: f64,
    /// Wire length of a full frame.
    full: f64,
}

impl Gaps<'_> {
    fn draw(&self, width: f64) -> Canvas {
        let narrow = is_narrow(width);
        let names = self
            .rows
            .iter()
            .map(|r| text_width(&r.group.label))
            .fold(0.0, f64::max);
        // Long names stand above their row.
        let left = if narrow || names > 150.0 {
            0.0
        } else {
            names.max(40.0) * 1.08 + 16.0
        };
        let count = number(self.most as f64, 0);
        let (top, right) = (26.0, width - text_width(&count) - 14.0);
        let bottom = top + self.rows.len() as f64 * ROW_HEIGHT;
        let mut canvas = Canvas::new(width, bottom + 44.0);
        let x = Scale::new(Kind::Log, self.low, self.high, left, right);
        let mark = x.at(self.full);
        canvas.line((mark, top - 6.0), (mark, bottom), "mark");
        let name = "back to back";
        let room = text_width(name) / 2.0;
        canvas.text((mark.max(room), top - 12.0), Anchor::Middle, "note", name);
        canvas.text((width, top - 12.0), Anchor::End, "unit", "gaps");
        let mut base = top;
        for (i, row) in self.rows.iter().enumerate() {
            base += ROW_HEIGHT;
            self.draw_row(&mut canvas, row, &x, (left, right), base, i == 0);
        }
        let frame = Frame {
            left,
            right,
            top,
            bottom,
        };
        let wanted = if narrow { 4 } else { 9 };
        let ticks: Vec<_> = x
            .ticks(wanted)
            .into_iter()
            .map(|t| (t, short(t, 0)))
            .collect();
        frame.x_axis(&mut canvas, &x, &ticks, "byte times, start to start");
        canvas
    }

    fn draw_row(
        &self,
        canvas: &mut Canvas,
        row: &Row<'_>,
        x: &Scale,
        (left, right): (f64, f64),
        base: f64,
        counts: bool,
    ) {
        // The axis begins at half a gap, so that the bar of a single gap has a height.
        let y = Scale::new(Kind::Log, 0.5, self.most as f64, base, base - BAR_HEIGHT);
        for count in [1.0, self.most as f64] {
            let at = y.at(count);
            canvas.line((left, at), (right, at), "grid");
            if counts {
                let at = (right + 8.0, at + 4.0);
                canvas.text(at, Anchor::Start, "tick", &number(count, 0));
            }
        }
        canvas.line((left, base), (right, base), "axis");
        let colour = row.group.colour;
        let bars: Vec<_> = row
            .bins
            .iter()
            .map(|&(bin, count)| {
                let (from, to) = (x.at(begin(bin)), x.at(begin(bin + 1)));
                // A lone column must be visible, however long the axis is.
                (from, (to - from).max(1.5), y.at(count as f64))
            })
            .collect();
        canvas.bars(&bars, base, &format!("bar f{colour}"));
        let class = format!("label f{colour}");
        if left > 0.0 {
            canvas.text(
                (left - 14.0, base - 14.0),
                Anchor::End,
                &class,
                &row.group.label,
            );
        } else {
            canvas.text(
                (0.0, base - BAR_HEIGHT - 8.0),
                Anchor::Start,
                &class,
                &row.group.label,
            );
        }
    }
}
