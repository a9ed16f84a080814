// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results for people: tables and a chart for the terminal, SVG plots, and one
//! self-contained HTML page.
//!
//! Everything is made from a [`scenario::result::RunResult`] and the
//! [`metrics::curves::Curves`] of its cells; the same input gives the same bytes.

#![forbid(unsafe_code)]

mod charts;
mod figures;
mod frames;
mod metric_names;
mod page;
mod runs;
mod series;
mod side_by_side;
mod streams;
mod sweep;
mod table;
pub mod terminal;
mod transfers;

use draw::{Figure, Plot, Style};
use metrics::curves::Curves;
use scenario::result::RunResult;

pub use charts::{Distribution, SenderRecord, Variables};
pub use page::run::html;
pub use page::survey::survey_html;
pub use sweep::{Varying, varying};

/// Returns the plots over all cells of a run, for the run's folder: a comparison of the cells or
/// curves over a swept number, the waits of the flow whose waits have a bound, and the cells over
/// time. `curves` has one entry for each cell, `None` where there are no curves. Plots of the same
/// kind have numbered names.
pub fn run_plots(run: &RunResult, curves: &[Option<Curves>]) -> Vec<Plot> {
    let mut plots: Vec<Plot> = Vec::new();
    for figure in figures::run_figures(run, curves) {
        let mut made = figure.plot();
        let of_kind = |p: &&Plot| p.name.starts_with(figure.slug);
        let number = plots.iter().filter(of_kind).count() + 1;
        if number > 1 {
            made.name = format!("{}-{number}.svg", figure.slug);
        }
        plots.push(made);
    }
    plots
}

/// Returns the plots of one cell, for its folder: `tcp.svg`, `bandwidth.svg`, `gaps.svg`,
/// `burstiness.svg`, without those that would be empty.
pub fn cell_plots(curves: &Curves) -> Vec<Plot> {
    figures::cell_figures(curves)
        .iter()
        .map(Figure::plot)
        .collect()
}

/// Plots the share of packets by delay, in steps of `step_ms`.
pub fn delays_plot(of: &[Distribution], step_ms: f64, is_round_trip: bool) -> Plot {
    charts::delays(of, step_ms, is_round_trip).plot()
}

/// Plots the share of frames by the number of collisions before they went through.
pub fn retries_plot(of: &[Distribution]) -> Plot {
    charts::retries(of).plot()
}

/// Plots the share of packets by the periods they were late, measured and predicted.
pub fn lateness_plot(of: &[Distribution]) -> Plot {
    charts::lateness(of).plot()
}

/// Plots the records that senders kept themselves: windows and timeouts over the whole time, then
/// sequence numbers and the scoreboard's counts for each named stretch of time.
pub fn sender_plots(
    whole: &[SenderRecord],
    stretches: &[(String, Vec<SenderRecord>)],
) -> Vec<Plot> {
    let mut plots: Vec<Plot> = charts::sender_window(whole)
        .iter()
        .map(Figure::plot)
        .collect();
    for (name, records) in stretches {
        let figures = [
            charts::sender_sequence(name, records),
            charts::sender_scoreboard(name, records),
        ];
        for figure in figures.into_iter().flatten() {
            let word: String = name
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
                .collect();
            plots.push(Plot {
                name: format!("{}-{word}.svg", figure.slug),
                ..figure.plot()
            });
        }
    }
    plots
}

/// Returns the flows of one window as a text table.
pub fn window_summary(window: &scenario::result::WindowResult, style: Style) -> String {
    draw::terminal::table(&table::flows(window), style)
}

/// Returns the single frames of two or three cells beside each other, as text. The text is empty if
/// the run compares anything else, or has no closeup that is fine enough.
pub fn frames(run: &RunResult, curves: &[Curves], style: Style) -> String {
    let curves: Vec<_> = curves.iter().map(Some).collect();
    let drawn = side_by_side::side_by_side(run).and_then(|compared| {
        let found = frames::Frames::of(&compared, &curves)?;
        Some(terminal::frames(&compared, &found, style))
    });
    drawn.unwrap_or_default()
}

/// Summarises a run as text. Transfers of known length and streams on segments have tables of their
/// own. Otherwise a lone cell shows the flows of every window; two or three cells with the same
/// flows show each flow in all of them; other runs show one row for each cell. The bounds that do
/// not hold come last.
pub fn summary(run: &RunResult, style: Style) -> String {
    let varying = sweep::varying(run);
    let mut out = String::new();
    if !run.table.is_empty() {
        let rows = transfers::transfers(run, &varying);
        out.push_str(&draw::terminal::table(&rows, style));
    }
    let several = runs::count(run);
    if let (2.., Some(window)) = (several, sweep::main_window(run)) {
        let rows = runs::runs(run, window, &varying);
        out.push_str(&format!("{}:\n", runs::told(run, window)));
        out.push_str(&draw::terminal::table(&rows, style));
        out.push_str("\nThe first run:\n");
    }
    match (run.cells.as_slice(), sweep::main_window(run)) {
        _ if streams::are_meant(run) => {
            out.push_str(&draw::terminal::table(
                &streams::streams(run, &varying),
                style,
            ));
        }
        // The table of transfers already shows these cells.
        _ if !run.table.is_empty() => {}
        ([cell], _) => {
            for window in &cell.windows {
                out.push_str(&lone_window(window, cell.windows.len() > 1, style));
            }
        }
        (_, Some(window)) => match side_by_side::side_by_side(run) {
            Some(few) => {
                out.push_str(&draw::terminal::table(&few.table(), style));
                let words = format!("{} {}", few.sentence(), side_by_side::BURSTINESS);
                out.push_str(&format!("\n{}", draw::terminal::paragraph(&words, style)));
            }
            None => {
                let rows = table::cells(run, window, &varying);
                out.push_str(&draw::terminal::table(&rows, style));
            }
        },
        (_, None) => {}
    }
    if run.cells.iter().flat_map(|c| &c.bounds).any(|b| !b.ok) {
        out.push_str("\nBounds that do not hold:\n");
        out.push_str(&draw::terminal::table(
            &table::bounds(run, &varying, 0),
            style,
        ));
    }
    out
}

/// Returns the flows of one window of a lone cell; the window is named only where there are
/// several.
fn lone_window(window: &scenario::result::WindowResult, several: bool, style: Style) -> String {
    let mut out = String::new();
    if several {
        out.push_str(&format!(
            "{}, {} s to {} s\n",
            window.name,
            units::display::short(window.from_s, 3),
            units::display::short(window.to_s, 3)
        ));
    }
    let rows = match window.flows.len() {
        0..=page::parts::MOST_FLOWS => table::flows(window),
        _ => table::flow_summary(window),
    };
    out.push_str(&draw::terminal::table(&rows, style));
    out
}
