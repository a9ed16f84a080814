// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of transfers of known length: one row for each transfer, over all runs.

use draw::table::{Table, Value};
use scenario::result::{RunResult, TransferRow};
use units::display::{number, rate_unit};

use crate::sweep::Varying;

/// Returns the rows of a run's `table`.
pub fn transfers(run: &RunResult, varying: &[Varying]) -> Table {
    let rows = &run.table;
    let fastest = rows.iter().map(|r| r.goodput_mean_bps).fold(0.0, f64::max);
    let unit = rate_unit(fastest);
    let mut table = Table::default();
    varying.iter().for_each(|v| table.text(&v.name));
    let several_flows = rows.iter().any(|r| r.flow != rows[0].flow);
    if several_flows {
        table.text("flow");
    }
    table.number("time mean", "s");
    table.number("longest", "s");
    table.number("shortest", "s");
    table.number("sd", "s");
    table.number("goodput", unit.name);
    table.number("timeouts", "");
    table.number("worst", "% of rate");
    table.number("stalled", "s");
    table.number("longest stall", "s");
    table.number("retransmitted", "");
    table.number("steps", "thousands");
    table.number("runs", "ended");
    for row in rows {
        let param = |v: &Varying| row.params.get(&v.name).cloned().unwrap_or_default().into();
        let mut values: Vec<Value> = varying.iter().map(param).collect();
        if several_flows {
            values.push(row.flow.clone().into());
        }
        values.extend(numbers(row, unit.size).map(Value::from));
        table.rows.push(values);
    }
    table
}

fn numbers(row: &TransferRow, unit_bps: f64) -> [String; 12] {
    let ended = row.runs as f64 - row.unfinished;
    [
        number(row.time_mean_s, 2),
        number(row.time_max_s, 2),
        number(row.time_min_s, 2),
        number(row.time_sd_s, 2),
        number(row.goodput_mean_bps / unit_bps, 1),
        number(row.rto_mean, 1),
        number(row.efficiency_min * 100.0, 1),
        number(row.stalled_mean_s, 2),
        number(row.stall_max_s, 2),
        number(row.retransmits_mean, 0),
        number(row.steps_mean / 1e3, 0),
        format!("{} of {}", number(ended, 0), row.runs),
    ]
}
