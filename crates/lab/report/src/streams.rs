// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of streams on segments: one row for each stream of each cell.

use draw::table::{Table, Tone, Value};
use scenario::result::{FlowMetrics, RunResult};
use units::display::{maybe, number};

use crate::sweep::Varying;

/// Returns whether the run has hosts on segments.
pub fn are_meant(run: &RunResult) -> bool {
    run.cells.iter().any(|cell| !cell.nodes.is_empty())
}

/// Returns a table with every stream of every cell.
pub fn streams(run: &RunResult, varying: &[Varying]) -> Table {
    let mut table = Table::default();
    varying.iter().for_each(|v| table.text(&v.name));
    table.text("stream");
    for (title, unit) in [
        ("packets", ""),
        ("lost", ""),
        ("goodput", "Mbit/s"),
        ("retries", "mean"),
        ("retries", "most"),
        ("delay p50", "ms"),
        ("delay p99", "ms"),
        ("delay p99.9", "ms"),
        ("delay max", "ms"),
        ("rtt p50", "ms"),
        ("rtt p99", "ms"),
        ("rtt max", "ms"),
        ("late", "% a node"),
        ("late", "% a path"),
        ("2nd peak", "% of rtt"),
        ("fit", "% points"),
        ("over", ""),
        ("plays", "s"),
    ] {
        table.number(title, unit);
    }
    for cell in &run.cells {
        for flow in cell.windows.iter().flat_map(|window| &window.flows) {
            let param = |v: &Varying| cell.params.get(&v.name).cloned().unwrap_or_default().into();
            let mut values: Vec<Value> = varying.iter().map(param).collect();
            values.push(flow.name.clone().into());
            values.extend(numbers(&flow.metrics));
            table.rows.push(values);
        }
    }
    table.without_empty_columns(&["dropped"])
}

fn numbers(m: &FlowMetrics) -> Vec<Value> {
    let ms = |us: Option<f64>| Value::from(maybe(us.map(|us| us / 1e3), 3));
    let count = |count: Option<u64>| Value::from(maybe(count.map(|n| n as f64), 0));
    let bad = |value: Value, is_bad: bool| Value {
        tone: if is_bad { Tone::Bad } else { value.tone },
        ..value
    };
    vec![
        count(Some(m.frames)),
        bad(count(Some(m.dropped)), m.dropped > 0),
        maybe(m.goodput_bps.map(|bps| bps / 1e6), 3).into(),
        maybe(m.retries_mean, 3).into(),
        count(m.retries_max),
        ms(m.delay_p50_us),
        ms(m.delay_p99_us),
        ms(m.delay_p999_us),
        ms(m.delay_max_us),
        ms(m.rtt_p50_us),
        ms(m.rtt_p99_us),
        ms(m.rtt_max_us),
        maybe(m.late_pct, 2).into(),
        maybe(m.late_way_pct, 2).into(),
        maybe(m.second_peak_pct, 2).into(),
        maybe(m.fit_diff_pct, 2).into(),
        bad(count(m.over), m.over_unexplained.is_some_and(|n| n > 0)),
        m.play_s
            .map_or_else(|| maybe(None, 0), |s| number(s, 3))
            .into(),
    ]
}
