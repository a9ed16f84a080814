// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small plots of one kind beside or above each other.

use units::display::short;

use crate::figure::is_narrow;
use crate::lines::{Line, draw_line, legend, legend_rows};
use crate::scale::{Kind, Scale};
use crate::svg::{Anchor, Canvas, Frame};

/// One plot of a grid.
pub struct Panel {
    /// Stands above the plot.
    pub title: String,
    pub lines: Vec<Line>,
    /// The y axis begins at 0 and ends at this value.
    pub highest: f64,
}

/// Small plots of the same size, with the same x axis.
pub struct Grid {
    /// The plots, in reading order.
    pub panels: Vec<Panel>,
    /// How many plots stand beside each other on a wide page.
    pub columns: usize,
    /// Range of every x axis.
    pub x: (f64, f64),
    /// Name of the x axis, with the unit.
    pub x_name: String,
    /// Names and colour indices of the legend; no legend is drawn if empty.
    pub legend: Vec<(String, usize)>,
}

const PLOT_HEIGHT: f64 = 140.0;
/// Room for the title above a plot, and for the labels below it, pixels.
const ABOVE: f64 = 24.0;
const BELOW: f64 = 30.0;
/// Room for the labels of a y axis, pixels.
const LABELS: f64 = 44.0;
const GUTTER: f64 = 14.0;
const LEGEND_ROW: f64 = 17.0;

impl Grid {
    /// Draws the grid on a page of this width.
    pub fn draw(&self, width: f64) -> Canvas {
        let columns = if is_narrow(width) {
            1
        } else {
            self.columns.clamp(1, self.panels.len().max(1))
        };
        let names: Vec<_> = self.legend.iter().map(|(name, _)| name.as_str()).collect();
        let legend_rows = legend_rows(&names, width);
        let top = legend_rows.len() as f64 * LEGEND_ROW + 6.0;
        let rows = self.panels.len().div_ceil(columns);
        let row_height = ABOVE + PLOT_HEIGHT + BELOW;
        let mut canvas = Canvas::new(width, top + rows as f64 * row_height + 20.0);
        let entries: Vec<_> = self.legend.iter().map(|(n, c)| (n.as_str(), *c)).collect();
        legend(&mut canvas, &entries, &legend_rows, 14.0);
        let room = (width - 10.0 - GUTTER * (columns - 1) as f64) / columns as f64;
        for (i, panel) in self.panels.iter().enumerate() {
            let left = (i % columns) as f64 * (room + GUTTER);
            let above = top + (i / columns) as f64 * row_height;
            let frame = Frame {
                left: left + LABELS,
                right: left + room,
                top: above + ABOVE,
                bottom: above + ABOVE + PLOT_HEIGHT,
            };
            let is_lowest = i + columns >= self.panels.len();
            self.draw_panel(&mut canvas, panel, &frame, is_lowest);
        }
        canvas
    }

    fn draw_panel(&self, canvas: &mut Canvas, panel: &Panel, frame: &Frame, is_lowest: bool) {
        let x = Scale::new(Kind::Linear, self.x.0, self.x.1, frame.left, frame.right);
        let y = Scale::new(Kind::Linear, 0.0, panel.highest, frame.bottom, frame.top);
        let labelled = |ticks: Vec<f64>| -> Vec<(f64, String)> {
            ticks.into_iter().map(|t| (t, short(t, 4))).collect()
        };
        let title = (frame.left, frame.top - 9.0);
        canvas.text(title, Anchor::Start, "label", &panel.title);
        frame.y_axis(canvas, &y, &labelled(y.ticks(4)), "");
        let wanted = if frame.right - frame.left > 500.0 {
            9
        } else {
            5
        };
        let name = if is_lowest { self.x_name.as_str() } else { "" };
        frame.x_axis(canvas, &x, &labelled(x.ticks(wanted)), name);
        for line in &panel.lines {
            draw_line(canvas, line, &x, &y);
        }
    }
}
