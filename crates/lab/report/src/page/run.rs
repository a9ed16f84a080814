// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of a run.

use draw::page::{MOST_ROWS, MOST_SECTIONS, Text, document, figures, folded, paragraph, table};
use maud::{Markup, html};
use metrics::curves::Curves;
use scenario::result::{CellResult, Engine, RunResult};

use crate::figures::{cell_figures, run_figures};
use crate::page::parts::{foot, window};
use crate::runs;
use crate::side_by_side::side_by_side;
use crate::sweep::{self, Varying};
use crate::table as tables;
use crate::transfers;

/// Returns the page of a run: the verdict, then figures, then tables. `curves` has one entry for
/// each cell, `None` where there are no curves; the same input gives the same bytes.
pub fn html(run: &RunResult, curves: &[Option<Curves>]) -> String {
    let source = match run.source.as_str() {
        "" => String::new(),
        source => format!("Source: {source}"),
    };
    let varying = sweep::varying(run);
    let several = run.cells.len() > 1;
    let name = |cell: &CellResult| {
        if several {
            sweep::cell_name(cell, &varying)
        } else {
            "What was measured".to_owned()
        }
    };
    let body = html! {
        (verdict(run))
        @if several {
            (comparison(run, curves, &varying))
            (bounds(run, &varying))
        } @else {
            (figures(&run_figures(run, curves)))
        }
        @if run.cells.len() <= MOST_SECTIONS {
            @for (i, one) in run.cells.iter().enumerate() {
                (cell(i, &name(one), one, curves.get(i).and_then(Option::as_ref)))
            }
        } @else {
            (paragraph(&format!(
                "This run has {} cells; the plots of each are in its folder.",
                run.cells.len()
            )))
        }
        @if !several {
            (bounds(run, &varying))
        }
        (foot(&format!(
            "The same scenario, seed and kernel give this page byte for byte: {}, seed {}.",
            run.scenario, run.seed
        )))
    };
    document(&run.title, &source, &facts(run), &body)
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

/// Returns how many bounds the run has, and how many of them do not hold.
fn count_bounds(run: &RunResult) -> (usize, usize) {
    let bounds = || run.cells.iter().flat_map(|c| &c.bounds);
    (bounds().count(), bounds().filter(|b| !b.ok).count())
}

/// Says in one line whether the bounds hold.
fn verdict(run: &RunResult) -> Markup {
    let (class, text) = match count_bounds(run) {
        (0, _) => ("", "This scenario sets no bounds.".to_owned()),
        (1, 0) => ("ok", "✓ The bound holds.".to_owned()),
        (all, 0) => ("ok", format!("✓ All {all} bounds hold.")),
        (1, _) => ("no", "✗ The bound does not hold.".to_owned()),
        (all, 1) => ("no", format!("✗ 1 of {all} bounds does not hold.")),
        (all, failed) => ("no", format!("✗ {failed} of {all} bounds do not hold.")),
    };
    html! {
        p class={ "verdict " (class) } {
            (text)
            @if class == "no" {
                " " a href="#bounds" { "Which?" }
            }
        }
        "\n"
    }
}

/// Returns the table of all bounds; those that do not hold come first.
fn bounds(run: &RunResult, varying: &[Varying]) -> Markup {
    let (all, failed) = count_bounds(run);
    if all == 0 {
        return html! {};
    }
    let mut first = tables::bounds(run, varying, 0);
    first.rows.truncate(MOST_ROWS);
    html! {
        section id="bounds" {
            h2 { "Bounds" }
            @if failed > 0 {
                (table(&first))
            }
            (folded(
                &format!("Every bound ({all})"),
                &tables::bounds(run, varying, usize::MAX),
                all > MOST_ROWS || failed > 0,
            ))
        }
        "\n"
    }
}

/// Most cells whose figures are shown; with more cells, the figures are folded away.
const MOST_UNFOLDED: usize = 30;

/// Least number of cells for which the page has a list of links.
const FEWEST_LINKS: usize = 4;

/// Returns the comparison of all cells.
fn comparison(run: &RunResult, curves: &[Option<Curves>], varying: &[Varying]) -> Markup {
    let many = run.cells.len() > MOST_UNFOLDED;
    let few = side_by_side(run);
    html! {
        section {
            @if let Some(few) = &few {
                h2 { (Text(&few.cells.join(" beside "))) }
                (paragraph(&few.sentence()))
            } @else {
                h2 { "All cells" }
            }
            (figures(&run_figures(run, curves)))
            @if let Some(few) = &few {
                (table(&few.table()))
            }
            @if !run.table.is_empty() {
                (folded(
                    "Every transfer, over all runs",
                    &transfers::transfers(run, varying),
                    many,
                ))
            }
            @if let Some(window) = sweep::main_window(run) {
                @if runs::count(run) > 1 {
                    (folded(
                        &runs::told(run, window),
                        &runs::runs(run, window, varying),
                        many,
                    ))
                }
                (folded(
                    "The figures of every cell",
                    &tables::cells(run, window, varying),
                    many,
                ))
            }
            @if (FEWEST_LINKS..=MOST_SECTIONS).contains(&run.cells.len()) {
                nav aria-label="Cells" {
                    ol {
                        @for (i, cell) in run.cells.iter().enumerate() {
                            li {
                                a href={ "#cell-" (i) } {
                                    (Text(&sweep::cell_name(cell, varying)))
                                }
                            }
                            "\n"
                        }
                    }
                }
            }
        }
        "\n"
    }
}

fn cell(index: usize, name: &str, cell: &CellResult, curves: Option<&Curves>) -> Markup {
    html! {
        section id={ "cell-" (index) } {
            h2 { (Text(name)) }
            (figures(&curves.map(cell_figures).unwrap_or_default()))
            @for one in &cell.windows {
                (window(one, cell.windows.len() > 1))
            }
        }
        "\n"
    }
}
