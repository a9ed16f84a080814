// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters in which the cells of a run differ, and metrics over the flows of a cell.

use metrics::flow::WIRE;
use scenario::result::{BoundResult, CellResult, FlowMetrics, FlowResult, RunResult};
use units::parse;

/// A parameter that differs between cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Varying {
    pub name: String,
    /// Its values, in order of first use.
    pub values: Vec<String>,
}

/// Returns the parameters that differ between cells, in the order of the scenario.
pub fn varying(run: &RunResult) -> Vec<Varying> {
    let Some(first) = run.cells.first() else {
        return Vec::new();
    };
    let values = |name: &String| {
        let mut values: Vec<String> = Vec::new();
        for value in run.cells.iter().filter_map(|c| c.params.get(name)) {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        Varying {
            name: name.clone(),
            values,
        }
    };
    first
        .params
        .keys()
        .map(values)
        .filter(|v| v.values.len() > 1)
        .collect()
}

/// Returns a cell's name: the parameters in which it differs from others, with their values.
pub fn cell_name(cell: &CellResult, varying: &[Varying]) -> String {
    let part = |v: &Varying| Some(format!("{} {}", v.name, cell.params.get(&v.name)?));
    varying
        .iter()
        .filter_map(part)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns the window in which cells are compared: that of the first bound, else the last one.
pub fn main_window(run: &RunResult) -> Option<&str> {
    let of_window =
        |c: &&CellResult, b: &&BoundResult| c.windows.iter().any(|w| w.name == b.window);
    let bound = run
        .cells
        .iter()
        .find_map(|c| c.bounds.iter().find(|b| of_window(&c, b)))
        .map(|b| b.window.as_str());
    let last = || Some(run.cells.first()?.windows.last()?.name.as_str());
    bound.or_else(last)
}

/// Returns the flow whose waits have a bound, if there is one.
pub fn waiting(run: &RunResult) -> Option<&str> {
    let mut bounds = run.cells.iter().flat_map(|c| &c.bounds);
    let judged = bounds.find(|b| b.metric.starts_with("wait_"));
    judged.map(|b| &*b.flow)
}

/// Returns how long a flow's datagrams waited, microseconds: median, 99th percentile, largest.
pub fn waits(cell: &CellResult, window: &str, flow: &str) -> Option<[f64; 3]> {
    let found = flows(cell, window).find(|f| f.name == flow)?;
    let m = &found.metrics;
    Some([m.wait_p50_us?, m.wait_p99_us?, m.wait_max_us?])
}

/// Returns the distances of flows' datagrams from their launch times, ns: median, 99th percentile,
/// largest, each the largest of all flows.
pub fn launches(cell: &CellResult, window: &str) -> Option<[f64; 3]> {
    let most = |metric: fn(&FlowMetrics) -> Option<f64>| Some(spread(cell, window, metric)?[2]);
    Some([
        most(|m| m.launch_p50_ns)?,
        most(|m| m.launch_p99_ns)?,
        most(|m| m.launch_max_ns)?,
    ])
}

/// Returns the datagrams of flows with launch times that a qdisc dropped, or refused, as their
/// sockets report.
pub fn launches_dropped(cell: &CellResult) -> Option<f64> {
    let of = |report: &serde_json::Value| {
        let count = |key| report.get(key)?.as_f64();
        Some(count("missed")? + count("refused")?)
    };
    cell.flow_reports
        .values()
        .filter_map(of)
        .reduce(|a, b| a + b)
}

/// Returns the flows of a cell in a window, without the sum of all flows.
pub fn flows<'a>(cell: &'a CellResult, window: &str) -> impl Iterator<Item = &'a FlowResult> {
    let window = cell.windows.iter().find(|w| w.name == window);
    window
        .into_iter()
        .flat_map(|w| &w.flows)
        .filter(|f| f.name != WIRE)
}

/// Returns the sum of all flows of a cell in a window.
pub fn together<'a>(cell: &'a CellResult, window: &str) -> Option<&'a FlowMetrics> {
    let window = cell.windows.iter().find(|w| w.name == window)?;
    let all = window.flows.iter().find(|f| f.name == WIRE)?;
    Some(&all.metrics)
}

/// Returns a count over all flows of a cell, from the window in which it is largest. Frames lost in
/// slow start therefore count, whichever window is compared.
pub fn most_in_any_window(cell: &CellResult, metric: &str) -> Option<f64> {
    let of = |name: &String| together(cell, name)?.get(metric);
    let windows = cell.windows.iter().filter_map(|w| of(&w.name));
    windows.reduce(f64::max)
}

/// Returns the least, median and largest value of a metric over the flows of a cell.
pub fn spread(
    cell: &CellResult,
    window: &str,
    metric: impl Fn(&FlowMetrics) -> Option<f64>,
) -> Option<[f64; 3]> {
    let mut values: Vec<f64> = flows(cell, window)
        .filter_map(|f| metric(&f.metrics))
        .filter(|v| v.is_finite())
        .collect();
    values.sort_by(f64::total_cmp);
    Some([*values.first()?, values[values.len() / 2], *values.last()?])
}

/// Returns the least value, the mean and the largest value of a metric over the runs of a cell with
/// one flow; `None` if it has several flows, or ran once.
pub fn over_runs(cell: &CellResult, window: &str, name: &str) -> Option<[f64; 3]> {
    let mut flows = flows(cell, window);
    let (flow, other) = (flows.next()?, flows.next());
    let [least, most] = flow.range(name)?;
    let mean = flow.get(name)?;
    other.is_none().then_some([least, mean, most])
}

/// Parses a value with a unit, as scenarios write it. Returns it in base units: bits per second,
/// seconds, bytes.
pub fn quantity(text: &str) -> Option<(f64, Dimension)> {
    let number = || {
        let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
        Some((value?, Dimension::Number))
    };
    let rate = || Some((parse::rate_bps(text)? as f64, Dimension::Rate));
    let time = || Some((parse::time_ns(text)? as f64 / 1e9, Dimension::Time));
    let size = || Some((parse::size_bytes(text)? as f64, Dimension::Size));
    number().or_else(rate).or_else(time).or_else(size)
}

/// The dimension of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// No unit.
    Number,
    /// Bits per second.
    Rate,
    Time,
    Size,
}

/// Returns the values of a parameter as quantities of one dimension.
pub fn quantities(varying: &Varying) -> Option<(Vec<f64>, Dimension)> {
    let all: Vec<_> = varying
        .values
        .iter()
        .map(|v| quantity(v))
        .collect::<Option<_>>()?;
    let dimension = all.first()?.1;
    let same = all.iter().all(|q| q.1 == dimension);
    same.then(|| (all.into_iter().map(|q| q.0).collect(), dimension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_of_scenarios() {
        assert_eq!(quantity("500mbit"), Some((5e8, Dimension::Rate)));
        assert_eq!(quantity("5ms"), Some((5e-3, Dimension::Time)));
        assert_eq!(quantity("64kb"), Some((65536.0, Dimension::Size)));
        assert_eq!(quantity("-2.5"), Some((-2.5, Dimension::Number)));
        for none in ["psp", "", "us", "1.2.3", "5 ms", "mbit5"] {
            assert_eq!(quantity(none), None, "{none}");
        }
        let mixed = Varying {
            name: "x".into(),
            values: vec!["1us".into(), "5".into()],
        };
        assert_eq!(quantities(&mixed), None);
    }
}
