// SPDX-License-Identifier: MIT OR Apache-2.0
//! The comparison of cells: a dot for each cell. The last varying parameter chooses the dot's
//! colour, the others choose its row.

use draw::figure::{Figure, is_narrow};
use draw::lines::{legend, legend_rows};
use draw::scale::{Kind, Scale};
use draw::svg::{Anchor, Canvas, Frame, text_width};
use draw::theme::COLOURS;
use scenario::result::{CellResult, FlowMetrics, RunResult, TransferRow};
use units::display::short;

use crate::runs;
use crate::sweep::{self, Varying};

/// Least, median and largest of a metric in one cell.
type Spread = Option<[f64; 3]>;

/// One metric, in its own panel.
struct Panel {
    title: &'static str,
    /// Values at which a reference line is drawn.
    marks: &'static [f64],
    log: bool,
    /// Indexed by row, then by colour.
    values: Vec<Vec<Spread>>,
}

struct Compare {
    rows: Vec<String>,
    colours: Vec<String>,
    colour_name: String,
    panels: Vec<Panel>,
}

/// Compares the cells in the main window: burstiness and the spread of gaps. `None` with fewer than
/// two cells, or if there is nothing to compare.
pub fn compare(run: &RunResult) -> Option<Figure> {
    let varying = sweep::varying(run);
    let window = sweep::main_window(run)?;
    let (rows_of, colours_of): (&[Varying], &[Varying]) = match varying.as_slice() {
        [] => return None,
        [only] => (std::slice::from_ref(only), &[]),
        // The last parameter chooses the colour if there are enough colours for its values; all
        // other parameters make the rows.
        [head @ .., last] if last.values.len() <= COLOURS => (head, std::slice::from_ref(last)),
        all => (all, &[]),
    };
    let places = Places::new(run, rows_of, colours_of);
    let panels = panels(&places, run, window);
    if panels.is_empty() {
        return None;
    }
    let colour_name = colours_of
        .first()
        .map_or_else(String::new, |v| v.name.clone());
    let plot = Compare {
        rows: places.rows,
        colours: places.colours,
        colour_name,
        panels,
    };
    if let Some(first) = run.table.first() {
        let caption = format!(
            "Every transfer over its runs, {} each: a dot is the mean, a bar reaches from the \
             shortest to the longest.",
            first.runs
        );
        return Some(Figure::new(
            "compare",
            "Transfers compared",
            caption,
            |width| plot.draw(width),
        ));
    }
    let reads = if let Some(flow) = sweep::waiting(run).filter(|_| has_goodput(run, window)) {
        format!("Goodput is payload acknowledged. Delay is {flow}'s, a dot at its 99th percentile.")
    } else if has_goodput(run, window) {
        "Goodput is payload acknowledged.".to_owned()
    } else if run
        .cells
        .iter()
        .any(|c| sweep::launches(c, window).is_some())
    {
        "Further left is nearer to the launch times, a dot at the 99th percentile.".to_owned()
    } else {
        "Further left is smoother: precise pacing has a burstiness of at most 2 MTU (dotted) and \
         all gaps alike, a dot without a bar."
            .to_owned()
    };
    let bar = match runs::count(run) {
        1 => "A bar across flows reaches from the least to the largest.".to_owned(),
        runs => format!(
            "A dot is the mean of {runs} runs, its bar reaches from the least to the largest."
        ),
    };
    let caption = format!("Every cell in the window “{window}”. {reads} {bar}");
    Some(Figure::new("compare", "Cells compared", caption, |width| {
        plot.draw(width)
    }))
}

/// The row and the colour of each cell.
struct Places<'a> {
    rows: Vec<String>,
    colours: Vec<String>,
    rows_of: &'a [Varying],
    colours_of: &'a [Varying],
}

impl<'a> Places<'a> {
    fn new(run: &RunResult, rows_of: &'a [Varying], colours_of: &'a [Varying]) -> Self {
        let (mut rows, mut colours) = (Vec::new(), Vec::new());
        for cell in &run.cells {
            for (list, by) in [(&mut rows, rows_of), (&mut colours, colours_of)] {
                let value = values_of(cell, by);
                if !list.contains(&value) {
                    list.push(value);
                }
            }
        }
        Self {
            rows,
            colours,
            rows_of,
            colours_of,
        }
    }

    /// Returns a metric of every cell, by row and colour.
    fn table(&self, run: &RunResult, metric: impl Fn(&CellResult) -> Spread) -> Vec<Vec<Spread>> {
        let mut table = vec![vec![None; self.colours.len()]; self.rows.len()];
        for cell in &run.cells {
            let row = self
                .rows
                .iter()
                .position(|r| *r == values_of(cell, self.rows_of));
            let colour = self
                .colours
                .iter()
                .position(|c| *c == values_of(cell, self.colours_of));
            if let (Some(row), Some(colour)) = (row, colour) {
                table[row][colour] = metric(cell);
            }
        }
        table
    }
}

fn values_of(cell: &CellResult, by: &[Varying]) -> String {
    let values = by.iter().filter_map(|v| cell.params.get(&v.name).cloned());
    values.collect::<Vec<_>>().join(" · ")
}

/// Returns whether the run has TCP flows, which are compared by their goodput.
fn has_goodput(run: &RunResult, window: &str) -> bool {
    let goodput = |c| sweep::spread(c, window, |m| m.goodput_bps);
    run.cells.iter().any(|c| goodput(c).is_some())
}

/// Returns the panels that have anything to show.
fn panels(places: &Places<'_>, run: &RunResult, window: &str) -> Vec<Panel> {
    let of = |metric: fn(&FlowMetrics) -> Option<f64>| {
        places.table(run, |cell| sweep::spread(cell, window, metric))
    };
    if !run.table.is_empty() {
        return transfer_panels(places, run);
    }
    if has_goodput(run, window) {
        return tcp_panels(places, run, window);
    }
    let launched = |cell: &CellResult| sweep::launches(cell, window);
    let panels = [
        Panel {
            title: "from launch time p50, p99, largest; ns",
            marks: &[],
            log: true,
            values: places.table(run, launched),
        },
        Panel {
            title: "burstiness, MTU",
            marks: &[2.0],
            log: true,
            values: of(|m| m.burstiness_mtu),
        },
        Panel {
            title: "gaps p1, median, p99; byte times",
            marks: &[],
            log: true,
            values: places.table(run, |cell| gap_percentiles(cell, window)),
        },
        Panel {
            title: "error of the rate, %",
            marks: &[0.0],
            log: false,
            values: of(|m| m.error_pct),
        },
    ];
    let shown = |p: &Panel| p.values.iter().flatten().any(Option::is_some);
    panels.into_iter().filter(shown).collect()
}

/// Returns the panels of transfers of known length, over all runs.
fn transfer_panels(places: &Places<'_>, run: &RunResult) -> Vec<Panel> {
    let of = |values: fn(&TransferRow) -> [f64; 3]| {
        places.table(run, |cell| {
            let row = run.table.iter().find(|row| row.params == cell.params);
            row.map(values)
        })
    };
    let panel = |title, log, values| Panel {
        title,
        marks: &[],
        log,
        values,
    };
    vec![
        panel(
            "time, s: shortest, mean, longest",
            true,
            of(|row| [row.time_min_s, row.time_mean_s, row.time_max_s]),
        ),
        panel("timeouts, mean", false, of(|row| [row.rto_mean; 3])),
    ]
}

fn tcp_panels(places: &Places<'_>, run: &RunResult, window: &str) -> Vec<Panel> {
    let panel = |title, values| Panel {
        title,
        marks: &[],
        log: false,
        values,
    };
    let goodput = |cell: &CellResult| {
        let bps = sweep::over_runs(cell, window, "goodput_bps");
        let bps = bps.or_else(|| sweep::spread(cell, window, |m| m.goodput_bps));
        bps.map(|bps| bps.map(|bps| bps / 1e6))
    };
    let dropped = |cell: &CellResult| {
        let windows = cell.windows.iter();
        let of_runs = windows.filter_map(|w| sweep::over_runs(cell, &w.name, "dropped"));
        let of_runs = of_runs.max_by(|a, b| a[1].total_cmp(&b[1]));
        let count = || sweep::most_in_any_window(cell, "dropped");
        of_runs.or_else(|| count().map(|count| [count; 3]))
    };
    let mut panels = vec![
        panel("goodput, Mbit/s", places.table(run, goodput)),
        panel("frames dropped, whole cell", places.table(run, dropped)),
    ];
    if let Some(flow) = sweep::waiting(run) {
        let waits = |cell: &CellResult| Some(sweep::waits(cell, window, flow)?.map(|us| us / 1e3));
        panels.push(Panel {
            title: "delay p50, p99, largest; ms",
            marks: &[],
            log: true,
            values: places.table(run, waits),
        });
    }
    panels
}

/// Returns p1, median and p99 of the gaps of a lone flow; for several flows, the least p1, the
/// median and the largest p99.
fn gap_percentiles(cell: &CellResult, window: &str) -> Spread {
    let of = |metric: fn(&FlowMetrics) -> Option<f64>| sweep::spread(cell, window, metric);
    let (p1, p50, p99) = (
        of(|m| m.gap_p1_bytes)?,
        of(|m| m.gap_p50_bytes)?,
        of(|m| m.gap_p99_bytes)?,
    );
    Some([p1[0], p50[1], p99[2]])
}

impl Compare {
    fn row_height(&self) -> f64 {
        (self.colours.len() as f64 * 8.0 + 12.0).max(26.0)
    }

    fn draw(&self, width: f64) -> Canvas {
        let names = self
            .rows
            .iter()
            .map(|r| text_width(r))
            .fold(30.0, f64::max)
            .min(190.0);
        let left = names + 16.0;
        let entries = self.entries();
        let labels: Vec<_> = entries.iter().map(|e| e.0.as_str()).collect();
        let rows = if self.colours.len() > 1 {
            legend_rows(&labels, width)
        } else {
            Vec::new()
        };
        let top = rows.len() as f64 * 17.0 + 14.0;
        let height = self.rows.len() as f64 * self.row_height();
        let (columns, gutter) = if is_narrow(width) {
            (1, 0.0)
        } else {
            (self.panels.len(), 30.0)
        };
        let panel_width = (width - left - 14.0 - gutter * (columns - 1) as f64) / columns as f64;
        let panel_height = height + 66.0;
        let panel_rows = self.panels.len().div_ceil(columns);
        let mut canvas = Canvas::new(width, top + panel_rows as f64 * panel_height + 10.0);
        let borrowed: Vec<_> = entries.iter().map(|(n, c)| (n.as_str(), *c)).collect();
        legend(&mut canvas, &borrowed, &rows, 12.0);
        for (i, panel) in self.panels.iter().enumerate() {
            let (row, column) = (i / columns, i % columns);
            let x = left + column as f64 * (panel_width + gutter);
            let y = top + row as f64 * panel_height + 16.0;
            let frame = Frame {
                left: x,
                right: x + panel_width,
                top: y + 10.0,
                bottom: y + 10.0 + height,
            };
            self.draw_panel(&mut canvas, panel, &frame, column == 0);
        }
        canvas
    }

    fn entries(&self) -> Vec<(String, usize)> {
        let name = |(i, value): (usize, &String)| {
            let text = if i == 0 {
                format!("{} {value}", self.colour_name)
            } else {
                value.clone()
            };
            (text, i % COLOURS)
        };
        self.colours.iter().enumerate().map(name).collect()
    }

    fn draw_panel(&self, canvas: &mut Canvas, panel: &Panel, frame: &Frame, names: bool) {
        let x = panel.scale(frame);
        canvas.text(
            (frame.left, frame.top - 12.0),
            Anchor::Start,
            "label",
            panel.title,
        );
        for value in panel.marks {
            let (low, high) = x.range();
            if (low..=high).contains(value) {
                canvas.line(
                    (x.at(*value), frame.top),
                    (x.at(*value), frame.bottom),
                    "mark",
                );
            }
        }
        for (i, row) in self.rows.iter().enumerate() {
            let middle = frame.top + (i as f64 + 0.5) * self.row_height();
            canvas.line((frame.left, middle), (frame.right, middle), "grid");
            if names {
                canvas.text((frame.left - 12.0, middle + 4.0), Anchor::End, "name", row);
            }
            let spreads = panel.values.get(i).map_or(&[][..], Vec::as_slice);
            for (colour, spread) in spreads.iter().enumerate() {
                let Some([low, median, high]) = spread else {
                    continue;
                };
                let offset = (colour as f64 - (self.colours.len() as f64 - 1.0) / 2.0) * 7.0;
                let (at, colour) = (middle + offset, colour % COLOURS);
                if x.at(*high) - x.at(*low) > 1.0 {
                    let class = format!("range s{colour}");
                    canvas.line((x.at(*low), at), (x.at(*high), at), &class);
                }
                canvas.dot((x.at(*median), at), 4.2, &format!("f{colour}"));
            }
        }
        let wanted = if frame.right - frame.left > 300.0 {
            6
        } else {
            5
        };
        let ticks: Vec<_> = x
            .ticks(wanted)
            .into_iter()
            .map(|t| (t, short(t, 4)))
            .collect();
        frame.x_axis(canvas, &x, &ticks, "");
    }
}

impl Panel {
    fn scale(&self, frame: &Frame) -> Scale {
        let all = || self.values.iter().flatten().flatten();
        let marks = || self.marks.iter().copied();
        let low = all()
            .map(|v| v[0])
            .chain(marks())
            .fold(f64::INFINITY, f64::min);
        let high = all()
            .map(|v| v[2])
            .chain(marks())
            .fold(f64::NEG_INFINITY, f64::max);
        if self.log {
            // Leaves room for the dots. The axis spans a factor of almost three at least: a whole
            // decade would be too much.
            let (low, high) = (low.max(1e-3) / 1.15, (high * 1.15).max(low * 2.5));
            Scale::new(Kind::Log, low, high, frame.left, frame.right)
        } else {
            let room = ((high - low) * 0.06).max(0.005);
            Scale::new(
                Kind::Linear,
                low - room,
                high + room,
                frame.left,
                frame.right,
            )
        }
    }
}
