// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report: one page that needs nothing but itself.

mod stalls;

use std::fmt::Write as _;

use metrics::curves::Curves;
use metrics::flow::WIRE;
use metrics::survey::Survey;
use scenario::result::{CellResult, Engine, RunResult, WindowResult};
use units::display::short;

use crate::charts::{self, Figure};
use crate::escape::escape;
use crate::streams;
use crate::sweep::{self, Varying};
use crate::table::{self, Table, Tone};
use crate::theme::PAGE_STYLE;
use crate::transfers;

pub use stalls::{StallConnection, StallStop, stall_figures, stalls_html};

/// With more cells than this, cells have no section of their own: their plots
/// are in their folders.
pub const MOST_SECTIONS: usize = 24;
/// More flows than this are summed up.
pub const MOST_FLOWS: usize = 16;
/// More rows than this are folded away.
const MOST_ROWS: usize = 12;

/// The page for a run. `curves` are those of each cell, `None` where there are
/// none; the same input gives the same bytes.
#[must_use]
pub fn html(run: &RunResult, curves: &[Option<Curves>]) -> String {
    let mut page = Page { out: String::new() };
    let source = if run.source.is_empty() {
        String::new()
    } else {
        format!("After {}", run.source)
    };
    page.head(&run.title, &source, &facts(run));
    page.verdict(run);
    let varying = sweep::varying(run);
    if run.cells.len() > 1 {
        page.comparison(run, curves, &varying);
    } else {
        for figure in run_figures(run, curves) {
            page.figure(&figure);
        }
    }
    if run.cells.len() <= MOST_SECTIONS {
        for (i, cell) in run.cells.iter().enumerate() {
            let name = if run.cells.len() > 1 {
                sweep::cell_name(cell, &varying)
            } else {
                String::new()
            };
            page.cell(i, &name, cell, curves.get(i).and_then(Option::as_ref));
        }
    } else {
        page.paragraph(&format!(
            "This run has {} cells; the plots of each are in its folder.",
            run.cells.len()
        ));
    }
    page.foot(&format!(
        "The same scenario, seed and kernel give this page byte for byte: {}, seed {}.",
        run.scenario, run.seed
    ));
    page.out
}

/// The page for a capture or timeline that no scenario planned, with what is
/// known about it.
#[must_use]
pub fn survey_html(title: &str, facts: &[(&str, String)], survey: &Survey) -> String {
    let mut page = Page { out: String::new() };
    page.head(title, "", facts);
    page.write(format_args!("<section>\n<h2>Flows</h2>"));
    page.window(&survey.window, false);
    for figure in cell_figures(&survey.curves) {
        page.figure(&figure);
    }
    page.write(format_args!("</section>"));
    page.foot("");
    page.out
}

fn facts(run: &RunResult) -> Vec<(&'static str, String)> {
    let engine = match run.engine {
        Engine::Vmlab => "a real kernel in virtual time",
        Engine::Netsim => "simulator",
    };
    let mut facts = vec![
        ("Scenario", run.scenario.clone()),
        ("Engine", engine.to_owned()),
    ];
    if !run.kernel.is_empty() {
        facts.push(("Kernel", run.kernel.clone()));
    }
    facts.push(("Seed", run.seed.to_string()));
    if run.cells.len() > 1 {
        facts.push(("Cells", run.cells.len().to_string()));
    }
    facts
}

struct Page {
    out: String,
}

impl Page {
    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.out.write_fmt(text);
        self.out.push('\n');
    }

    fn paragraph(&mut self, text: &str) {
        self.write(format_args!("<p>{}</p>", escape(text)));
    }

    fn head(&mut self, title: &str, source: &str, facts: &[(&str, String)]) {
        let title = escape(title);
        self.write(format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>{PAGE_STYLE}</style>\n</head>\n<body>\n<main>\n\
             <header>\n<h1>{title}</h1>"
        ));
        if !source.is_empty() {
            self.write(format_args!("<p class=\"source\">{}</p>", escape(source)));
        }
        self.write(format_args!("<dl class=\"facts\">"));
        for (name, value) in facts {
            let (name, value) = (escape(name), escape(value));
            self.write(format_args!("<div><dt>{name}</dt><dd>{value}</dd></div>"));
        }
        self.write(format_args!("</dl>\n</header>"));
    }

    fn verdict(&mut self, run: &RunResult) {
        let all = run.cells.iter().flat_map(|c| &c.bounds).count();
        let failed = run
            .cells
            .iter()
            .flat_map(|c| &c.bounds)
            .filter(|b| !b.ok)
            .count();
        let (class, text, more) = match (all, failed) {
            (0, _) => (
                "",
                "No bounds were set.".to_owned(),
                "Nothing here is a verdict.",
            ),
            (1, 0) => ("ok", "The bound holds.".to_owned(), ""),
            (all, 0) => ("ok", format!("All {all} bounds hold."), ""),
            (1, _) => ("no", "The bound does not hold.".to_owned(), ""),
            (all, 1) => ("no", format!("1 of {all} bounds does not hold."), ""),
            (all, failed) => ("no", format!("{failed} of {all} bounds do not hold."), ""),
        };
        let mark = match class {
            "ok" => "✓ ",
            "no" => "✗ ",
            _ => "",
        };
        self.write(format_args!(
            "<p class=\"verdict {class}\">{mark}{text} <span>{more}</span></p>"
        ));
        if all == 0 {
            return;
        }
        let varying = sweep::varying(run);
        if failed > 0 {
            let mut first = table::bounds(run, &varying, 0);
            first.rows.truncate(MOST_ROWS);
            self.table(&first);
        }
        let every = table::bounds(run, &varying, usize::MAX);
        self.folded(
            &format!("Every bound ({all})"),
            &every,
            all > MOST_ROWS || failed > 0,
        );
    }

    fn comparison(&mut self, run: &RunResult, curves: &[Option<Curves>], varying: &[Varying]) {
        self.write(format_args!("<section>\n<h2>All cells</h2>"));
        for figure in run_figures(run, curves) {
            self.figure(&figure);
        }
        if !run.table.is_empty() {
            let table = transfers::transfers(run, varying);
            self.folded(
                "Every transfer, over all runs",
                &table,
                run.cells.len() > 30,
            );
        }
        if let Some(window) = sweep::main_window(run) {
            let table = table::cells(run, window, varying);
            self.folded("The figures of every cell", &table, run.cells.len() > 30);
        }
        if run.cells.len() <= MOST_SECTIONS {
            self.write(format_args!("<nav aria-label=\"Cells\">\n<ol>"));
            for (i, cell) in run.cells.iter().enumerate() {
                let name = escape(&sweep::cell_name(cell, varying));
                self.write(format_args!("<li><a href=\"#cell-{i}\">{name}</a></li>"));
            }
            self.write(format_args!("</ol>\n</nav>"));
        }
        self.write(format_args!("</section>"));
    }

    fn cell(&mut self, index: usize, name: &str, cell: &CellResult, curves: Option<&Curves>) {
        let name = if name.is_empty() {
            "What was measured"
        } else {
            name
        };
        self.write(format_args!(
            "<section id=\"cell-{index}\">\n<h2>{}</h2>",
            escape(name)
        ));
        for window in &cell.windows {
            self.window(window, cell.windows.len() > 1);
        }
        for figure in curves.map(cell_figures).unwrap_or_default() {
            self.figure(&figure);
        }
        self.write(format_args!("</section>"));
    }

    fn window(&mut self, window: &WindowResult, several: bool) {
        if several {
            self.write(format_args!(
                "<h3>Window “{}”, {} s to {} s</h3>",
                escape(&window.name),
                short(window.from_s, 3),
                short(window.to_s, 3)
            ));
        }
        let flows = window.flows.iter().filter(|f| f.name != WIRE).count();
        if flows > MOST_FLOWS {
            self.table(&table::flow_summary(window));
            self.folded("Every flow", &table::flows(window), true);
        } else {
            self.table(&table::flows(window));
        }
        let wires = table::wires(window);
        if !wires.rows.is_empty() {
            self.table(&wires);
        }
    }

    fn figure(&mut self, figure: &Figure) {
        self.write(format_args!(
            "<figure>\n<h3>{}</h3>\n<figcaption>{}</figcaption>\n{}</figure>",
            escape(&figure.title),
            escape(&figure.caption),
            figure.inline()
        ));
    }

    fn folded(&mut self, summary: &str, table: &Table, fold: bool) {
        if fold {
            self.write(format_args!(
                "<details>\n<summary>{}</summary>",
                escape(summary)
            ));
            self.table(table);
            self.write(format_args!("</details>"));
        } else {
            self.table(table);
        }
    }

    fn table(&mut self, table: &Table) {
        self.write(format_args!("<div class=\"scroll\">\n<table>\n<thead><tr>"));
        for column in &table.columns {
            let class = if column.is_text { " class=\"t\"" } else { "" };
            let (title, unit) = (escape(&column.title), escape(&column.unit));
            let unit = if unit.is_empty() {
                unit
            } else {
                format!("<small>{unit}</small>")
            };
            self.write(format_args!("<th scope=\"col\"{class}>{title}{unit}</th>"));
        }
        self.write(format_args!("</tr></thead>\n<tbody>"));
        for row in &table.rows {
            self.out.push_str("<tr>");
            for (i, (value, column)) in row.iter().zip(&table.columns).enumerate() {
                let text = escape(&value.text);
                if i == 0 && column.is_text {
                    let _ = write!(self.out, "<th scope=\"row\" class=\"t\">{text}</th>");
                    continue;
                }
                let tone = match value.tone {
                    Tone::Plain => "",
                    Tone::Good => "good",
                    Tone::Bad => "bad",
                };
                let class = [if column.is_text { "t" } else { "" }, tone].join(" ");
                let class = class.trim();
                let class = if class.is_empty() {
                    String::new()
                } else {
                    format!(" class=\"{class}\"")
                };
                let _ = write!(self.out, "<td{class}>{text}</td>");
            }
            self.out.push_str("</tr>\n");
        }
        self.write(format_args!("</tbody>\n</table>\n</div>"));
    }

    fn foot(&mut self, more: &str) {
        self.write(format_args!(
            "<footer>Rates are of the link layer (Ethernet header included, FCS not) unless a \
             target says otherwise. Gaps run from the start of one frame to the start of the \
             next. {}</footer>\n</main>\n</body>\n</html>",
            escape(more)
        ));
    }
}

/// The plots over all cells: curves over a swept number, else a comparison;
/// then the cells over time.
#[must_use]
pub fn run_figures(run: &RunResult, curves: &[Option<Curves>]) -> Vec<Figure> {
    let mut figures = Vec::new();
    // Streams on segments deliver what is offered: what tells them apart is their delays.
    if !streams::are_meant(run) {
        figures = charts::sweep(run);
        if figures.is_empty() {
            figures.extend(charts::compare(run));
        }
    }
    figures.extend(charts::waits(run, curves));
    figures.extend(charts::closeups(run, curves));
    figures.extend(charts::transfers(run, curves));
    figures
}

/// The plots of one cell.
#[must_use]
pub fn cell_figures(curves: &Curves) -> Vec<Figure> {
    [
        charts::transfer(curves),
        charts::bandwidth(curves),
        charts::gaps(curves),
        charts::queue(curves),
    ]
    .into_iter()
    .flatten()
    .collect()
}
