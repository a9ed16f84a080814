// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares a few cells that carry the same flows, for example under different shapers.

use draw::table::{Table, Value};
use scenario::result::{CellResult, FlowMetrics, RunResult};
use units::display::{maybe, number, rate_unit, short, signed};

use crate::streams;
use crate::sweep::{self, Varying};

/// Most cells: more do not fit beside each other in 80 columns.
const MOST_CELLS: usize = 3;
/// Most flows: more are not read one by one.
const MOST_FLOWS: usize = 8;
/// Least factor between two cells that the sentence mentions.
const LEAST_FACTOR: f64 = 1.5;

/// Cells that differ in one parameter only, and the metrics of each flow in each of them.
#[derive(Clone, Debug)]
pub struct SideBySide<'a> {
    /// The window that is compared.
    pub window: &'a str,
    /// A short name of each cell, in the order of the run.
    pub cells: Vec<String>,
    /// The flows that every cell has.
    pub flows: Vec<Compared<'a>>,
}

/// One flow in every cell.
#[derive(Clone, Debug)]
pub struct Compared<'a> {
    pub name: &'a str,
    /// The rate that the flow should have in every cell.
    pub target_bps: f64,
    /// Its metrics, by cell.
    pub metrics: Vec<&'a FlowMetrics>,
}

/// Returns the comparison, if the run has two or three cells that differ in one parameter, and
/// whose flows have the same names and targets. TCP flows are compared by their goodput instead,
/// and streams on segments by their delays.
pub fn side_by_side(run: &RunResult) -> Option<SideBySide<'_>> {
    let varying = sweep::varying(run);
    let [parameter] = varying.as_slice() else {
        return None;
    };
    let count = run.cells.len();
    let is_few = (2..=MOST_CELLS).contains(&count) && parameter.values.len() == count;
    if !is_few || !run.table.is_empty() || streams::are_meant(run) {
        return None;
    }
    let window = sweep::main_window(run)?;
    let (first, others) = run.cells.split_first()?;
    let mut flows = Vec::new();
    for flow in sweep::flows(first, window) {
        let mut compared = Compared {
            name: &flow.name,
            target_bps: flow.metrics.target_bps?,
            metrics: vec![&flow.metrics],
        };
        for cell in others {
            let same = sweep::flows(cell, window).find(|f| f.name == flow.name)?;
            compared.metrics.push(&same.metrics);
        }
        let is_comparable = |m: &&FlowMetrics| {
            m.target_bps == Some(compared.target_bps)
                && m.burstiness_mtu.is_some()
                && m.error_pct.is_some()
                && m.goodput_bps.is_none()
        };
        if !compared.metrics.iter().all(is_comparable) {
            return None;
        }
        flows.push(compared);
    }
    let same_count = |cell: &CellResult| sweep::flows(cell, window).count() == flows.len();
    if flows.is_empty() || flows.len() > MOST_FLOWS || !others.iter().all(same_count) {
        return None;
    }
    let name = |cell: &CellResult| short_name(cell, parameter);
    Some(SideBySide {
        window,
        cells: run.cells.iter().map(name).collect(),
        flows,
    })
}

/// Returns a short name of a cell: the parameter's value if it is a word; a quantity is preceded by
/// the parameter's name.
fn short_name(cell: &CellResult, parameter: &Varying) -> String {
    let value = cell.params.get(&parameter.name).map_or("", String::as_str);
    match sweep::quantity(value) {
        Some(_) => format!("{} {value}", parameter.name),
        None => value.to_owned(),
    }
}

impl SideBySide<'_> {
    /// Returns a table with one row for each flow: its target, then each metric of all cells.
    pub fn table(&self) -> Table {
        let targets = self.flows.iter().map(|f| f.target_bps);
        let unit = rate_unit(targets.fold(0.0, f64::max));
        let mut table = Table::default();
        table.text("flow");
        table.number("target", unit.name);
        for metric in ["error, %", "burstiness, MTU"] {
            for cell in &self.cells {
                table.number(cell, metric);
            }
        }
        for flow in &self.flows {
            let mut row: Vec<Value> = vec![flow.name.to_owned().into()];
            row.push(short(flow.target_bps / unit.size, 3).into());
            let errors = flow.metrics.iter().map(|m| signed(m.error_pct, 3));
            row.extend(errors.map(Value::from));
            let bursts = flow.metrics.iter().map(|m| maybe(m.burstiness_mtu, 2));
            row.extend(bursts.map(Value::from));
            table.rows.push(row);
        }
        table
    }

    /// Says in one sentence what the figures show. The smoothest cell comes first.
    pub fn sentence(&self) -> String {
        let worst = |of: fn(&FlowMetrics) -> Option<f64>| -> Vec<f64> {
            let of_cell = |cell: usize| {
                let values = self.flows.iter().filter_map(|f| of(f.metrics.get(cell)?));
                values.map(f64::abs).fold(0.0, f64::max)
            };
            (0..self.cells.len()).map(of_cell).collect()
        };
        let (bursts, errors) = (worst(|m| m.burstiness_mtu), worst(|m| m.error_pct));
        let mut order: Vec<usize> = (0..self.cells.len()).collect();
        order.sort_by(|&a, &b| bursts[a].total_cmp(&bursts[b]));
        let list = |values: &[f64], decimals: usize, unit: &str| {
            let one = |&cell: &usize| {
                let value = number(values[cell], decimals);
                format!("{value} {unit} with {}", self.cells[cell])
            };
            and(&order.iter().map(one).collect::<Vec<_>>())
        };
        let factor = match (order.first(), order.last()) {
            (Some(&least), Some(&most)) if bursts[most] >= bursts[least] * LEAST_FACTOR => {
                let factor = bursts[most] / bursts[least];
                let decimals = usize::from(factor < 10.0);
                format!(", {} times as much", number(factor, decimals))
            }
            _ => String::new(),
        };
        format!(
            "The burstiest flow has {}{factor}; the largest error of a rate is {}.",
            list(&bursts, 2, "MTU"),
            list(&errors, 3, "%")
        )
    }
}

/// Explains how to read burstiness.
pub const BURSTINESS: &str = "An even flow has 1 MTU; up to 2 MTU is precise pacing.";

/// Joins the parts: `a`, `a and b`, `a, b and c`.
fn and(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;
    use scenario::result::{FlowResult, WindowResult};

    fn metrics(burstiness_mtu: f64, error_pct: f64) -> FlowMetrics {
        FlowMetrics {
            target_bps: Some(5e8),
            burstiness_mtu: Some(burstiness_mtu),
            error_pct: Some(error_pct),
            ..FlowMetrics::default()
        }
    }

    /// Makes a run with a parameter `name`; each cell has a value of it and the metrics of flow
    /// `a`.
    fn run(name: &str, cells: &[(&str, FlowMetrics)]) -> RunResult {
        let cell = |(value, metrics): &(&str, FlowMetrics)| CellResult {
            params: [(name.to_owned(), (*value).to_owned())].into(),
            windows: vec![WindowResult {
                name: "all".into(),
                flows: vec![FlowResult {
                    name: "a".into(),
                    metrics: metrics.clone(),
                    ..FlowResult::default()
                }],
                ..WindowResult::default()
            }],
            ..CellResult::default()
        };
        RunResult {
            cells: cells.iter().map(cell).collect(),
            ..RunResult::default()
        }
    }

    #[test]
    fn the_sentence_begins_with_the_smoothest_cell() {
        let of = |name, cells: &[_]| side_by_side(&run(name, cells)).unwrap().sentence();
        let cells = [("htb", metrics(30.0, -0.5)), ("psp", metrics(1.5, 0.002))];
        assert_eq!(
            of("shaper", &cells),
            "The burstiest flow has 1.50 MTU with psp and 30.00 MTU with htb, 20 times as much; the \
             largest error of a rate is 0.002 % with psp and 0.500 % with htb."
        );
        // The sentence leaves out factors near 1, and gives bare numbers their parameter's
        // name.
        let cells = [("0us", metrics(1.0, 0.0)), ("20us", metrics(1.2, 0.0))];
        let sentence = of("noise", &cells);
        assert!(
            sentence.contains("1.20 MTU with noise 20us; the"),
            "{sentence}"
        );
        assert!(!sentence.contains("times"), "{sentence}");
    }

    #[test]
    fn runs_without_the_same_flows_are_not_compared() {
        let good = || metrics(1.0, 0.0);
        let with = |change: fn(&mut FlowMetrics)| {
            let mut changed = good();
            change(&mut changed);
            run("shaper", &[("psp", good()), ("htb", changed)])
        };
        assert!(side_by_side(&with(|_| {})).is_some());
        assert!(side_by_side(&with(|m| m.target_bps = Some(1e8))).is_none());
        assert!(side_by_side(&with(|m| m.burstiness_mtu = None)).is_none());
        assert!(
            side_by_side(&with(|m| m.goodput_bps = Some(1e8))).is_none(),
            "TCP"
        );
        let lone = run("shaper", &[("psp", good())]);
        assert!(side_by_side(&lone).is_none());
        let four = ["a", "b", "c", "d"].map(|shaper| (shaper, good()));
        assert!(side_by_side(&run("shaper", &four)).is_none());
        let mut other = with(|_| {});
        other.cells[1].windows[0].flows[0].name = "b".into();
        assert!(side_by_side(&other).is_none(), "another flow");
        let mut more = with(|_| {});
        let flows = &mut more.cells[1].windows[0].flows;
        flows.push(FlowResult {
            name: "b".into(),
            ..flows[0].clone()
        });
        assert!(side_by_side(&more).is_none(), "a flow that one cell lacks");
    }
}
