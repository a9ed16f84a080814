// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of cells that ran several times: the mean of each metric over the runs, and its range.

use draw::table::{Table, Value};
use metrics::flow::WIRE;
use scenario::result::{CellResult, FlowResult, RunResult};
use units::display::{maybe, number, rate_unit};

use crate::sweep::Varying;

/// Returns how many times each cell ran.
pub fn count(run: &RunResult) -> usize {
    counts(run).max().unwrap_or(1)
}

/// Says of how many runs the means and ranges are: a cell whose first runs agree has no more.
pub fn told(run: &RunResult) -> String {
    let (most, fewest) = (count(run), counts(run).min().unwrap_or(1));
    if fewest == most {
        format!("{most} runs")
    } else {
        format!("{most} runs, or of {fewest} that agree")
    }
}

/// Returns how often each flow ran, if it ran several times.
fn counts(run: &RunResult) -> impl Iterator<Item = usize> + '_ {
    let windows = run.cells.iter().flat_map(|c| &c.windows);
    let flows = windows.flat_map(|w| &w.flows);
    flows.filter_map(|flow| Some(flow.runs.values().next()?.len()))
}

/// Returns a row for each flow of each cell: goodput in `window`; frames dropped and segments
/// retransmitted in the window in which they are most.
pub fn runs(run: &RunResult, window: &str, varying: &[Varying]) -> Table {
    let flows = |cell: &CellResult| flows_of(cell, window).len();
    let has_several = run.cells.iter().any(|cell| flows(cell) > 1);
    let all = run.cells.iter().flat_map(|cell| flows_of(cell, window));
    let fastest = all.filter_map(|f| f.get("goodput_bps")).fold(0.0, f64::max);
    let unit = rate_unit(fastest);
    let mut table = Table::default();
    varying.iter().for_each(|v| table.text(&v.name));
    if has_several {
        table.text("flow");
    }
    for (name, unit) in [
        ("goodput", unit.name),
        ("dropped", ""),
        ("retransmitted", ""),
    ] {
        table.number(name, unit);
        table.number("least", unit);
        table.number("most", unit);
    }
    for cell in &run.cells {
        for flow in flows_of(cell, window) {
            let value = |v: &Varying| cell.params.get(&v.name).cloned().unwrap_or_default().into();
            let mut row: Vec<Value> = varying.iter().map(value).collect();
            if has_several {
                row.push(flow.name.clone().into());
            }
            let goodput = [flow.get("goodput_bps")].into_iter();
            let range =
                |flow: &FlowResult, name| flow.range(name).map_or([None; 2], |r| r.map(Some));
            for value in goodput.chain(range(flow, "goodput_bps")) {
                row.push(maybe(value.map(|bps| bps / unit.size), 1).into());
            }
            for name in ["dropped", "retransmits"] {
                let most = most(cell, &flow.name, name);
                let mean = most.and_then(|flow| flow.get(name));
                let range = most.map_or([None; 2], |flow| range(flow, name));
                row.push(
                    mean.map_or_else(|| maybe(None, 0), |mean| number(mean, 1))
                        .into(),
                );
                row.extend(range.map(|value| maybe(value, 0).into()));
            }
            table.rows.push(row);
        }
    }
    table.without_empty_columns(&["dropped"])
}

fn flows_of<'a>(cell: &'a CellResult, window: &str) -> Vec<&'a FlowResult> {
    let window = cell.windows.iter().find(|w| w.name == window);
    let flows = window.into_iter().flat_map(|w| &w.flows);
    flows.filter(|flow| flow.name != WIRE).collect()
}

/// Returns a flow in the window in which its metric is largest.
fn most<'a>(cell: &'a CellResult, name: &str, metric: &str) -> Option<&'a FlowResult> {
    let of = |flow: &&FlowResult| flow.name == name && flow.get(metric).is_some();
    let flows = cell.windows.iter().flat_map(|w| &w.flows).filter(of);
    flows.max_by(|a, b| f64::total_cmp(&value(a, metric), &value(b, metric)))
}

fn value(flow: &FlowResult, metric: &str) -> f64 {
    flow.get(metric).unwrap_or(0.0)
}
