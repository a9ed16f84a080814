// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of a run, for the terminal and for pages alike.

use draw::table::{Table, Tone, Value};
use metrics::flow::WIRE;
use scenario::result::{CellResult, FlowMetrics, RunResult, WindowResult};
use units::display::{Unit, maybe, number, rate_unit, signed};

use crate::metric_names::in_words;
use crate::sweep::{self, Varying};

/// Adds the columns of metrics, after the column of the name.
fn metric_columns(table: &mut Table, unit: Unit) {
    table.number("target", unit.name);
    table.number("achieved", unit.name);
    table.number("error", "%");
    table.number("burstiness", "MTU");
    table.number("gap p1", "byte times");
    table.number("gap p50", "byte times");
    table.number("gap p99", "byte times");
    table.number("delay p50", "µs");
    table.number("delay p99", "µs");
    table.number("goodput", unit.name);
    table.number("frames", "");
    table.number("dropped", "");
    table.number("retransmitted", "");
}

fn metric_values(m: &FlowMetrics, unit: Unit) -> Vec<Value> {
    let rate = |bps: f64| number(bps / unit.size, 3);
    // The achieved rate must be of the same layer as the target beside it.
    let achieved = match (m.target_bps, m.error_pct) {
        (Some(target), Some(error)) => target * (1.0 + error / 100.0),
        _ => m.rate_bps,
    };
    let dropped = if m.dropped == 0 {
        Tone::Plain
    } else {
        Tone::Bad
    };
    let mut values: Vec<Value> = vec![
        m.target_bps.map_or_else(|| maybe(None, 0), rate).into(),
        rate(achieved).into(),
        signed(m.error_pct, 3).into(),
        maybe(m.burstiness_mtu, 2).into(),
        maybe(m.gap_p1_bytes, 0).into(),
        maybe(m.gap_p50_bytes, 0).into(),
        maybe(m.gap_p99_bytes, 0).into(),
        maybe(m.delay_p50_us, 1).into(),
        maybe(m.delay_p99_us, 1).into(),
        maybe(m.goodput_bps.map(|bps| bps / unit.size), 3).into(),
        count(m.frames).into(),
    ];
    values.push(Value {
        text: count(m.dropped),
        tone: dropped,
    });
    values.push(maybe(m.get("retransmits"), 0).into());
    values
}

fn count(value: u64) -> String {
    number(value as f64, 0)
}

fn unit_of<'a>(metrics: impl Iterator<Item = &'a FlowMetrics>) -> Unit {
    rate_unit(
        metrics
            .map(|m| m.rate_bps.max(m.target_bps.unwrap_or(0.0)))
            .fold(0.0, f64::max),
    )
}

/// Returns one row for each flow of a window; if there are several, the last row is their sum.
pub fn flows(window: &WindowResult) -> Table {
    let several = window.flows.iter().filter(|f| f.name != WIRE).count() > 1;
    let shown = || window.flows.iter().filter(|f| several || f.name != WIRE);
    let unit = unit_of(shown().map(|f| &f.metrics));
    let mut table = Table::default();
    table.text("flow");
    metric_columns(&mut table, unit);
    for flow in shown() {
        let name = if flow.name == WIRE {
            "all together"
        } else {
            &flow.name
        };
        let mut row = vec![Value::from(name.to_owned())];
        row.extend(metric_values(&flow.metrics, unit));
        table.rows.push(row);
    }
    table.without_empty_columns(&["dropped"])
}

/// Returns the least, median and largest value of each metric over a window's flows, where the
/// flows are too many to read.
pub fn flow_summary(window: &WindowResult) -> Table {
    let flows: Vec<_> = window
        .flows
        .iter()
        .filter(|f| f.name != WIRE)
        .map(|f| &f.metrics)
        .collect();
    let unit = unit_of(flows.iter().copied());
    let mut table = Table::default();
    table.text(&format!("of {} flows", flows.len()));
    metric_columns(&mut table, unit);
    for (name, part) in [("least", 0), ("median", 1), ("largest", 2)] {
        let pick = |metric: &str| {
            let mut all: Vec<f64> = flows.iter().filter_map(|m| m.get(metric)).collect();
            all.sort_by(f64::total_cmp);
            let index = [0, all.len() / 2, all.len().saturating_sub(1)][part];
            all.get(index).copied()
        };
        let whole = |metric: &str| pick(metric).unwrap_or(0.0) as u64;
        let m = FlowMetrics {
            target_bps: pick("target_bps"),
            rate_bps: pick("rate_bps").unwrap_or(0.0),
            error_pct: pick("error_pct"),
            burstiness_mtu: pick("burstiness_mtu"),
            gap_p1_bytes: pick("gap_p1_bytes"),
            gap_p50_bytes: pick("gap_p50_bytes"),
            gap_p99_bytes: pick("gap_p99_bytes"),
            delay_p50_us: pick("delay_p50_us"),
            delay_p99_us: pick("delay_p99_us"),
            goodput_bps: pick("goodput_bps"),
            frames: whole("frames"),
            dropped: whole("dropped"),
            ..FlowMetrics::default()
        };
        let mut row = vec![Value::from(name.to_owned())];
        row.extend(metric_values(&m, unit));
        table.rows.push(row);
    }
    table.without_empty_columns(&["dropped"])
}

/// Returns one row for each direction of a cable that carried frames.
pub fn wires(window: &WindowResult) -> Table {
    let mut table = Table::default();
    table.text("direction");
    table.number("line rate", "Mbit/s");
    table.number("busy", "%");
    table.number("data frames", "");
    table.number("gap frames", "");
    table.number("gap bytes", "");
    table.number("dropped", "");
    for (name, w) in window
        .wire
        .iter()
        .filter(|(_, w)| w.data_frames + w.gap_frames > 0)
    {
        table.rows.push(vec![
            name.clone().into(),
            number(w.rate_bps as f64 / 1e6, 0).into(),
            number(w.utilisation * 100.0, 2).into(),
            count(w.data_frames).into(),
            count(w.gap_frames).into(),
            count(w.gap_bytes).into(),
            count(w.dropped_frames).into(),
        ]);
    }
    table
}

/// Returns one row for each cell: the median rate, the worst burstiness and the widest gaps of its
/// flows in `window`, and the load of the wire and the CPU.
pub fn cells(run: &RunResult, window: &str, varying: &[Varying]) -> Table {
    let of = |cell: &CellResult, metric: fn(&FlowMetrics) -> Option<f64>| {
        sweep::spread(cell, window, metric)
    };
    let rate = |m: &FlowMetrics| Some(m.rate_bps);
    let highest = run
        .cells
        .iter()
        .filter_map(|c| of(c, rate))
        .map(|s| s[2])
        .fold(0.0, f64::max);
    let unit = rate_unit(highest);
    let mut table = Table::default();
    varying.iter().for_each(|v| table.text(&v.name));
    table.number("goodput", unit.name);
    table.number("dropped", "");
    table.number("rate", unit.name);
    table.number("worst error", "%");
    table.number("burstiness", "MTU");
    table.number("gap p1", "byte times");
    table.number("gap p50", "byte times");
    table.number("gap p99", "byte times");
    table.number("wait p50", "µs");
    table.number("wait p99", "µs");
    table.number("wait max", "µs");
    table.number("lost", "of these");
    table.number("launch p50", "ns");
    table.number("launch p99", "ns");
    table.number("launch max", "ns");
    table.number("launch dropped", "");
    table.number("wire busy", "%");
    table.number("CPU", "ns/frame");
    table.number("bounds", "held");
    let waiting = sweep::waiting(run);
    for cell in &run.cells {
        let value = |v: &Varying| cell.params.get(&v.name).cloned().unwrap_or_default().into();
        let mut row: Vec<Value> = varying.iter().map(value).collect();
        let worst_error =
            of(cell, |m| m.error_pct).map(|s| if s[0].abs() > s[2].abs() { s[0] } else { s[2] });
        let all = |metric| sweep::together(cell, window).and_then(|m| m.get(metric));
        row.push(maybe(all("goodput_bps").map(|bps| bps / unit.size), 3).into());
        row.push(maybe(sweep::most_in_any_window(cell, "dropped"), 0).into());
        row.push(maybe(of(cell, rate).map(|s| s[1] / unit.size), 3).into());
        row.push(signed(worst_error, 3).into());
        row.push(maybe(of(cell, |m| m.burstiness_mtu).map(|s| s[2]), 2).into());
        row.push(maybe(of(cell, |m| m.gap_p1_bytes).map(|s| s[0]), 0).into());
        row.push(maybe(of(cell, |m| m.gap_p50_bytes).map(|s| s[1]), 0).into());
        row.push(maybe(of(cell, |m| m.gap_p99_bytes).map(|s| s[2]), 0).into());
        let measured = cell.windows.iter().find(|w| w.name == window);
        let waits = waiting.and_then(|flow| sweep::waits(cell, window, flow));
        for place in 0..3 {
            row.push(maybe(waits.map(|waits| waits[place]), 0).into());
        }
        row.push(maybe(waiting.and_then(|flow| lost(cell, flow)), 0).into());
        let launches = sweep::launches(cell, window);
        for place in 0..3 {
            row.push(maybe(launches.map(|ns| ns[place]), 0).into());
        }
        row.push(maybe(launches.and_then(|_| sweep::launches_dropped(cell)), 0).into());
        row.push(maybe(measured.and_then(busiest), 1).into());
        row.push(maybe(all("busy_ns_per_frame"), 0).into());
        row.push(held(cell));
        table.rows.push(row);
    }
    table.without_empty_columns(&["dropped"])
}

/// Returns the datagrams of a flow that its receiver missed, or that a simulated queue dropped.
fn lost(cell: &CellResult, flow: &str) -> Option<f64> {
    let report = cell.flow_reports.get(flow)?;
    let lost = report
        .pointer("/receiver/lost")
        .or_else(|| report.get("refused"));
    lost?.as_f64()
}

/// Returns the utilisation of the busiest direction, gap frames included, per cent.
fn busiest(window: &WindowResult) -> Option<f64> {
    let busy = window.wire.values().map(|w| w.utilisation * 100.0);
    busy.reduce(f64::max)
}

fn held(cell: &CellResult) -> Value {
    let (held, all) = (
        cell.bounds.iter().filter(|b| b.ok).count(),
        cell.bounds.len(),
    );
    match (held, all) {
        (_, 0) => Value::from(maybe(None, 0)),
        (held, all) if held == all => Value {
            text: format!("{held} of {all}"),
            tone: Tone::Good,
        },
        _ => Value {
            text: format!("{held} of {all}"),
            tone: Tone::Bad,
        },
    }
}

/// Returns every bound that fails, then at most `most` of those that hold.
pub fn bounds(run: &RunResult, varying: &[Varying], most: usize) -> Table {
    let mut table = Table::default();
    if !varying.is_empty() {
        table.text("cell");
    }
    for title in ["flow", "window", "metric"] {
        table.text(title);
    }
    table.number("measured", "");
    table.number("bound", "");
    table.text("");
    let all = run
        .cells
        .iter()
        .flat_map(|c| c.bounds.iter().map(move |b| (c, b)));
    let (held, failed): (Vec<_>, Vec<_>) = all.partition(|(_, b)| b.ok);
    for (cell, b) in failed.into_iter().chain(held.into_iter().take(most)) {
        let limit = |v: f64| units::display::short(v, 6);
        let bound = match (b.min, b.max) {
            (Some(min), Some(max)) => format!("{} to {}", limit(min), limit(max)),
            (Some(min), None) => format!("≥ {}", limit(min)),
            (None, Some(max)) => format!("≤ {}", limit(max)),
            (None, None) => "any value".to_owned(),
        };
        let mut row = Vec::new();
        if !varying.is_empty() {
            row.push(sweep::cell_name(cell, varying).into());
        }
        let metric = in_words(&b.metric);
        row.extend([&b.flow, &b.window, metric].map(|t| Value::from(t.to_owned())));
        let tone = if b.ok { Tone::Good } else { Tone::Bad };
        let measured = b
            .value
            .map_or_else(|| "nothing".to_owned(), |v| units::display::short(v, 6));
        row.push(Value {
            text: measured,
            tone,
        });
        row.push(bound.into());
        row.push(Value {
            text: if b.ok { "✓ holds" } else { "✗ fails" }.to_owned(),
            tone,
        });
        table.rows.push(row);
    }
    table
}
