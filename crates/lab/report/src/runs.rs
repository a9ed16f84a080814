// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of cells that ran several times: the mean of each metric over the runs, and its range.

use draw::table::{Table, Value};
use metrics::flow::WIRE;
use scenario::result::{CellResult, FlowResult, RunResult};
use units::display::{maybe, number, rate_unit};

use crate::sweep::Varying;

/// What is counted of a flow, in the window in which it is most.
const COUNTED: [&str; 2] = ["dropped", "retransmits"];

/// Returns how many times each cell ran.
pub fn count(run: &RunResult) -> usize {
    counts(run).max().unwrap_or(1)
}

/// Says what the table of runs has: means and ranges, or what is the same in each run. A cell whose
/// first runs agree has no more.
pub fn told(run: &RunResult, window: &str) -> String {
    let (most, fewest) = (count(run), counts(run).min().unwrap_or(1));
    if !do_differ(run, window) {
        format!("Each of {most} runs")
    } else if fewest == most {
        format!("Mean and range of {most} runs")
    } else {
        format!("Mean and range of {most} runs, or of {fewest} that agree")
    }
}

/// Returns whether what the table has of a flow is another in one run than in another.
fn do_differ(run: &RunResult, window: &str) -> bool {
    let of = |cell: &CellResult, flow: &FlowResult| {
        let counted = COUNTED.map(|name| most(cell, &flow.name, name)?.range(name));
        let ranges = [flow.range("goodput_bps")].into_iter().chain(counted);
        ranges.flatten().any(|[least, most]| least < most)
    };
    let mut cells = run.cells.iter();
    cells.any(|cell| {
        flows_of(cell, window)
            .into_iter()
            .any(|flow| of(cell, flow))
    })
}

/// Returns how often each flow ran, if it ran several times.
fn counts(run: &RunResult) -> impl Iterator<Item = usize> + '_ {
    let windows = run.cells.iter().flat_map(|c| &c.windows);
    let flows = windows.flat_map(|w| &w.flows);
    flows.filter_map(|flow| Some(flow.runs.values().next()?.len()))
}

/// Returns a row for each flow of each cell: goodput in `window`; frames dropped, their share of those
/// that were sent, and segments retransmitted in the window in which they are most. Least and most
/// stand beside where runs differ.
pub fn runs(run: &RunResult, window: &str, varying: &[Varying]) -> Table {
    let flows = |cell: &CellResult| flows_of(cell, window).len();
    let has_several = run.cells.iter().any(|cell| flows(cell) > 1);
    let all = run.cells.iter().flat_map(|cell| flows_of(cell, window));
    let fastest = all.filter_map(|f| f.get("goodput_bps")).fold(0.0, f64::max);
    let unit = rate_unit(fastest);
    let has_range = do_differ(run, window);
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
        if name == "dropped" {
            table.number("of sent", "%");
        }
        if has_range {
            table.number("least", unit);
            table.number("most", unit);
        }
    }
    for cell in &run.cells {
        for flow in flows_of(cell, window) {
            let value = |v: &Varying| cell.params.get(&v.name).cloned().unwrap_or_default().into();
            let mut row: Vec<Value> = varying.iter().map(value).collect();
            if has_several {
                row.push(flow.name.clone().into());
            }
            let range = |flow: Option<&FlowResult>, name| {
                let range = flow.and_then(|flow| flow.range(name));
                let range = range.map_or([None; 2], |range| range.map(Some));
                range.into_iter().filter(|_| has_range)
            };
            let goodput = [flow.get("goodput_bps")].into_iter();
            for value in goodput.chain(range(Some(flow), "goodput_bps")) {
                row.push(maybe(value.map(|bps| bps / unit.size), 1).into());
            }
            for name in COUNTED {
                let most = most(cell, &flow.name, name);
                let mean = most.and_then(|flow| flow.get(name));
                row.push(
                    mean.map_or_else(|| maybe(None, 0), |mean| number(mean, 1))
                        .into(),
                );
                if name == "dropped" {
                    row.push(maybe(most.and_then(dropped_pct), 2).into());
                }
                row.extend(range(most, name).map(|value| maybe(value, 0).into()));
            }
            table.rows.push(row);
        }
    }
    table.without_empty_columns(&["dropped"])
}

/// Returns the frames of a flow that were dropped, per cent of those that its sender sent.
fn dropped_pct(flow: &FlowResult) -> Option<f64> {
    let sent = flow.get("frames").filter(|sent| *sent > 0.0)?;
    Some(flow.get("dropped")? / sent * 100.0)
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

#[cfg(test)]
mod tests {
    use super::*;
    use draw::terminal::{Style, table};
    use scenario::result::{FlowMetrics, WindowResult};

    fn run(runs: &[[f64; 3]]) -> RunResult {
        let of = |i: usize| runs.iter().map(|run| run[i]).collect();
        let flow = FlowResult {
            name: "bulk".into(),
            metrics: FlowMetrics::default(),
            runs: [
                ("frames".to_owned(), of(0)),
                ("dropped".to_owned(), of(1)),
                ("goodput_bps".to_owned(), of(2)),
            ]
            .into(),
        };
        let window = WindowResult {
            name: "all".into(),
            flows: vec![flow],
            ..WindowResult::default()
        };
        RunResult {
            cells: vec![CellResult {
                windows: vec![window],
                ..CellResult::default()
            }],
            ..RunResult::default()
        }
    }

    fn told_and_table(runs: &[[f64; 3]]) -> String {
        let run = run(runs);
        let table = table(&super::runs(&run, "all", &[]), Style::PLAIN);
        format!("{}:\n{table}", told(&run, "all"))
    }

    #[test]
    fn losses_stand_beside_what_was_sent() {
        let text = told_and_table(&[[1000.0, 10.0, 8e6], [3000.0, 30.0, 9e6]]);
        for words in [
            "Mean and range of 2 runs:",
            "least",
            "most",
            "of sent",
            "1.00",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn runs_that_are_alike_have_no_range() {
        let text = told_and_table(&[[1000.0, 10.0, 8e6]; 3]);
        assert!(text.starts_with("Each of 3 runs:"), "{text}");
        assert!(!text.contains("least"), "{text}");
        assert!(text.contains("1.00"), "{text}");
        // One loss more in one run.
        let text = told_and_table(&[[1000.0, 10.0, 8e6], [1000.0, 11.0, 8e6]]);
        assert!(text.starts_with("Mean and range of 2 runs:"), "{text}");
    }
}
