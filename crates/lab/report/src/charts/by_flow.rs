// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares a few cells: under each flow's name stands one row for each cell.

use draw::figure::{Figure, is_narrow};
use draw::scale::{Kind, Scale};
use draw::svg::{Anchor, Canvas, Frame, text_width};
use draw::theme::COLOURS;
use metrics::curves::Curves;
use scenario::result::RunResult;
use units::display::{number, short, time, time_unit};

use crate::frames::{Frames, stretches};
use crate::side_by_side::{BURSTINESS, SideBySide, side_by_side};

/// The slug of the figure that shows single frames.
pub const FRAMES: &str = "frames";

const ROW: f64 = 19.0;
const BAR: f64 = 13.0;
/// Pixels between the rows of two flows.
const BETWEEN: f64 = 11.0;
/// Least width of a drawn frame, pixels.
const LEAST_BAR: f64 = 0.7;
/// Burstiness up to which pacing counts as precise, MTU.
const PRECISE_MTU: f64 = 2.0;

/// Draws when each flow had the wire, from a closeup that every cell has and that is fine enough,
/// and then each flow's burstiness. Returns no figure if the run compares anything else.
pub fn by_flow(run: &RunResult, curves: &[Option<Curves>]) -> Vec<Figure> {
    let Some(compared) = side_by_side(run) else {
        return Vec::new();
    };
    let curves: Vec<_> = curves.iter().map(Option::as_ref).collect();
    let frames = Frames::of(&compared, &curves).map(|found| frames(&compared, &found));
    frames.into_iter().chain([burstiness(&compared)]).collect()
}

fn frames(compared: &SideBySide<'_>, found: &Frames<'_>) -> Figure {
    let caption = format!(
        "Every frame on the wire in {} from {} on: a bar is as wide as the frame's time on the wire. \
         Even spaces between the bars are pacing; a solid block is a burst, frames back to back.",
        time(found.length_s()),
        time(found.from_s)
    );
    let unit = time_unit(found.length_s());
    let draw = |width: f64| {
        let rows = Rows::new(compared, width);
        let mut canvas = Canvas::new(width, rows.bottom() + 44.0);
        let frame = rows.frame(width - 8.0);
        let x = Scale::new(Kind::Linear, 0.0, found.length_s(), frame.left, frame.right);
        let x_of = |interval: usize| x.at(interval as f64 * found.interval_s);
        rows.draw_names(&mut canvas);
        for (flow, cells) in found.bytes.iter().enumerate() {
            for (cell, bytes) in cells.iter().enumerate() {
                let (top, base) = rows.bar(flow, cell);
                canvas.line((frame.left, base), (frame.right, base), "grid");
                let bar = |(from, to): (usize, usize)| {
                    let (from, to) = (x_of(from), x_of(to));
                    (from, (to - from).max(LEAST_BAR), top)
                };
                let bars: Vec<_> = stretches(bytes).into_iter().map(bar).collect();
                canvas.bars(&bars, base, &format!("bar f{}", cell % COLOURS));
            }
        }
        let wanted = if is_narrow(width) { 5 } else { 9 };
        let named = |t: f64| (t, short(t / unit.size, 4));
        let ticks: Vec<_> = x.ticks(wanted).into_iter().map(named).collect();
        frame.x_axis(&mut canvas, &x, &ticks, &format!("time, {}", unit.name));
        canvas
    };
    Figure::new(FRAMES, "Frames on the wire", caption, draw)
}

fn burstiness(compared: &SideBySide<'_>) -> Figure {
    let value = |flow: usize, cell: usize| {
        let metrics = compared.flows.get(flow)?.metrics.get(cell)?;
        metrics.burstiness_mtu
    };
    let all = compared.flows.iter().flat_map(|f| &f.metrics);
    let most = all.filter_map(|m| m.burstiness_mtu).fold(0.0, f64::max);
    let caption = format!(
        "Largest queue at a bottleneck of the flow's own rate, in the window “{}”. {BURSTINESS}",
        compared.window
    );
    let draw = |width: f64| {
        let rows = Rows::new(compared, width);
        let mut canvas = Canvas::new(width, rows.bottom() + 44.0);
        let room = text_width(&number(most, 2)) * 1.08 + 12.0;
        let frame = rows.frame(width - room);
        let highest = most.max(PRECISE_MTU * 1.5);
        let x = Scale::new(Kind::Linear, 0.0, highest, frame.left, frame.right);
        rows.draw_names(&mut canvas);
        let mark = x.at(PRECISE_MTU);
        canvas.line((mark, frame.top), (mark, frame.bottom), "mark");
        for flow in 0..compared.flows.len() {
            for cell in 0..compared.cells.len() {
                let Some(mtu) = value(flow, cell) else {
                    continue;
                };
                let ((top, base), end) = (rows.bar(flow, cell), x.at(mtu));
                let class = format!("bar f{}", cell % COLOURS);
                canvas.bars(&[(frame.left, end - frame.left, top)], base, &class);
                let at = (end + 7.0, base - 2.5);
                canvas.text(at, Anchor::Start, "label", &number(mtu, 2));
            }
        }
        let wanted = if is_narrow(width) { 4 } else { 8 };
        let named = |t: f64| (t, short(t, 4));
        let ticks: Vec<_> = x.ticks(wanted).into_iter().map(named).collect();
        frame.x_axis(&mut canvas, &x, &ticks, "burstiness, MTU");
        canvas
    };
    Figure::new(
        "burstiness-by-flow",
        "Burstiness of each flow",
        caption,
        draw,
    )
}

/// The positions of the rows of every flow.
struct Rows<'a> {
    flows: Vec<&'a str>,
    cells: &'a [String],
    /// Where the cells' names begin; 0 if a flow's name stands above its rows.
    cells_left: f64,
    /// Where the bars begin.
    left: f64,
}

impl<'a> Rows<'a> {
    fn new(compared: &'a SideBySide<'_>, width: f64) -> Self {
        // The names are bold, which is wider by a factor of 1.08.
        let widest = |names: &mut dyn Iterator<Item = &str>| {
            names.map(text_width).fold(20.0, f64::max) * 1.08 + 12.0
        };
        let flows: Vec<_> = compared.flows.iter().map(|f| f.name).collect();
        let of_flows = widest(&mut flows.iter().copied());
        let of_cells = widest(&mut compared.cells.iter().map(String::as_str));
        // Long names beside the bars would leave them no room: such names stand above.
        let is_above = of_flows + of_cells > width * 0.3;
        let cells_left = if is_above { 0.0 } else { of_flows };
        Self {
            flows,
            cells: &compared.cells,
            cells_left,
            left: cells_left + of_cells,
        }
    }

    fn is_above(&self) -> bool {
        self.cells_left == 0.0
    }

    /// Returns the distance from the first row of a flow to the first row of the next one.
    fn step(&self) -> f64 {
        let name = if self.is_above() { ROW } else { 0.0 };
        name + self.cells.len() as f64 * ROW + BETWEEN
    }

    fn bottom(&self) -> f64 {
        self.flows.len() as f64 * self.step()
    }

    fn frame(&self, right: f64) -> Frame {
        Frame {
            left: self.left,
            right,
            top: 2.0,
            bottom: self.bottom(),
        }
    }

    /// Returns the upper and the lower end of a bar.
    fn bar(&self, flow: usize, cell: usize) -> (f64, f64) {
        let name = if self.is_above() { ROW } else { 0.0 };
        let top = flow as f64 * self.step() + name + cell as f64 * ROW + 4.0;
        (top, top + BAR)
    }

    fn draw_names(&self, canvas: &mut Canvas) {
        for (i, flow) in self.flows.iter().enumerate() {
            let (_, base) = self.bar(i, 0);
            let above = if self.is_above() { ROW } else { 0.0 };
            canvas.text((0.0, base - 2.5 - above), Anchor::Start, "label", flow);
            for (j, cell) in self.cells.iter().enumerate() {
                let (_, base) = self.bar(i, j);
                let class = format!("label f{}", j % COLOURS);
                canvas.text((self.cells_left, base - 2.5), Anchor::Start, &class, cell);
            }
        }
    }
}
