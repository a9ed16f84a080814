// SPDX-License-Identifier: MIT OR Apache-2.0
//! Summarises transfers of known length over all runs of their cell.

use anyhow::Result;
use netsim::run::Ran;
use scenario::result::{BoundResult, CellResult, TransferRow};
use scenario::{BottleneckKind, Cell, Flow, FlowKind, Scenario, Subject};
use serde::{Deserialize, Serialize};

/// Most transfers of a cell that have a row each; more are told together.
const ROWS_MAX: usize = 16;
/// The name of a row of many transfers: from the first one's start to the last one's end.
const TOGETHER: &str = "all together";

/// The outcome of one transfer in one run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Index of its flow in the cell.
    flow: usize,
    is_finished: bool,
    time_s: f64,
    acked_bytes: u64,
    timeouts: u64,
    retransmits: u64,
    steps: u64,
    stopped_s: f64,
    stall_max_s: f64,
}

/// Returns whether a cell has transfers of known length: they are what is told of its runs.
pub fn are_in(cell: &Cell) -> bool {
    lengths(cell).next().is_some()
}

/// Returns the length of each flow with `bytes`, by the flow's index.
fn lengths(cell: &Cell) -> impl Iterator<Item = (usize, u64)> + '_ {
    let length = |flow: &Flow| match flow.kind {
        FlowKind::Tcp { bytes, .. } => bytes,
        _ => None,
    };
    let flows = cell.flows.iter().enumerate();
    flows.filter_map(move |(index, flow)| Some((index, length(flow)?)))
}

/// Refuses parameters that have the name of a column of the table.
pub fn check(scenario: &Scenario) -> Result<()> {
    for cell in &scenario.cells {
        let taken = |name: &&String| TransferRow::TAKEN.contains(&name.as_str());
        if let (Some(name), true) = (cell.params.keys().find(taken), are_in(cell)) {
            anyhow::bail!(
                "{}: the table of transfers has a column `{name}`; expected another name for the \
                 parameter",
                scenario.name
            );
        }
    }
    Ok(())
}

/// Returns nanoseconds of a run, which are far below 2^52, in seconds.
#[allow(clippy::cast_precision_loss)]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Returns the outcomes of the transfers of one run.
pub fn outcomes(cell: &Cell, ran: &Ran) -> Vec<Outcome> {
    let of = |(flow, _): (usize, u64)| {
        let stream = ran.flows.get(flow)?.stream.as_ref()?;
        let counters = &stream.sender.counters;
        let whole_s = seconds(cell.flows[flow].stop_ns - cell.flows[flow].start_ns);
        Some(Outcome {
            flow,
            is_finished: stream.transfer.is_some(),
            time_s: stream.transfer.map_or(whole_s, |time| time.as_s()),
            acked_bytes: stream.sender.acked_bytes,
            timeouts: counters.timeouts,
            retransmits: counters.retransmits,
            steps: counters.scoreboard_steps,
            stopped_s: stream.stops.total.as_s(),
            stall_max_s: stream.stops.longest.as_s(),
        })
    };
    lengths(cell).filter_map(of).collect()
}

/// Returns the rows of a cell. `runs` has the outcomes of each of its runs.
pub fn rows(cell: &Cell, runs: &[Vec<Outcome>]) -> Vec<TransferRow> {
    let row = |(flow, bytes): (usize, u64)| {
        let all = runs.iter().flatten().copied();
        let all: Vec<Outcome> = all.filter(|o| o.flow == flow).collect();
        row(cell, &cell.flows[flow].name, (flow, bytes), &all)
    };
    lengths(cell).map(row).collect()
}

/// Returns the rows that are told of a cell: those of each transfer, or of many together.
pub fn told(cell: &Cell, rows: Vec<TransferRow>, runs: &[Vec<Outcome>]) -> Vec<TransferRow> {
    let Some(first) = lengths(cell).next().filter(|_| rows.len() > ROWS_MAX) else {
        return rows;
    };
    let starts_s = |flow: usize| seconds(cell.flows[flow].start_ns);
    let all: Vec<Outcome> = runs
        .iter()
        .map(|run| {
            let earliest = run.iter().map(|o| starts_s(o.flow));
            let latest = run.iter().map(|o| starts_s(o.flow) + o.time_s);
            Outcome {
                flow: first.0,
                is_finished: run.iter().all(|o| o.is_finished),
                time_s: latest.fold(0.0, f64::max) - earliest.fold(f64::INFINITY, f64::min),
                acked_bytes: run.iter().map(|o| o.acked_bytes).sum(),
                timeouts: run.iter().map(|o| o.timeouts).sum(),
                retransmits: run.iter().map(|o| o.retransmits).sum(),
                steps: run.iter().map(|o| o.steps).sum(),
                stopped_s: run.iter().map(|o| o.stopped_s).sum(),
                stall_max_s: run.iter().map(|o| o.stall_max_s).fold(0.0, f64::max),
            }
        })
        .collect();
    let bytes = rows.iter().map(|row| row.bytes).sum();
    vec![row(cell, TOGETHER, (first.0, bytes), &all)]
}

/// Returns a row of a transfer, or of several like it, over all runs.
#[allow(clippy::cast_precision_loss)] // counts are far below 2^52
fn row(cell: &Cell, name: &str, (flow, bytes): (usize, u64), all: &[Outcome]) -> TransferRow {
    let mean = |value: &dyn Fn(&Outcome) -> f64| {
        all.iter().map(value).sum::<f64>() / all.len().max(1) as f64
    };
    let goodput = |o: &Outcome| o.acked_bytes as f64 * 8.0 / o.time_s;
    let time_mean_s = mean(&|o| o.time_s);
    let slowest = all.iter().map(goodput).fold(f64::INFINITY, f64::min);
    let (bottleneck_bps, kind) = narrowest(cell, &cell.flows[flow]);
    let share = |bps: f64| bps / bottleneck_bps as f64;
    TransferRow {
        params: cell.params.clone(),
        flow: name.to_owned(),
        runs: all.len() as u64,
        bytes,
        bottleneck_bps,
        burst_bytes: match kind {
            Some(BottleneckKind::Policer { burst_bytes, .. }) => Some(*burst_bytes),
            _ => None,
        },
        fifo_bytes: match kind {
            Some(BottleneckKind::Fifo { bytes }) => Some(*bytes),
            _ => None,
        },
        unfinished: all.iter().filter(|o| !o.is_finished).count() as f64,
        time_mean_s,
        time_max_s: all.iter().map(|o| o.time_s).fold(0.0, f64::max),
        time_min_s: all.iter().map(|o| o.time_s).fold(f64::INFINITY, f64::min),
        time_sd_s: mean(&|o| (o.time_s - time_mean_s).powi(2)).sqrt(),
        goodput_mean_bps: mean(&goodput),
        efficiency_min: share(slowest),
        efficiency_mean: share(mean(&goodput)),
        rto_mean: mean(&|o| o.timeouts as f64),
        retransmits_mean: mean(&|o| o.retransmits as f64),
        steps_mean: mean(&|o| o.steps as f64),
        stalled_mean_s: mean(&|o| o.stopped_s),
        stall_max_s: all.iter().map(|o| o.stall_max_s).fold(0.0, f64::max),
    }
}

/// Returns the lowest rate on a flow's path, and the kind of bottleneck that limits it; `None` if
/// the cable itself does.
fn narrowest<'a>(cell: &'a Cell, flow: &Flow) -> (u64, Option<&'a BottleneckKind>) {
    let rates = flow.path.iter().flat_map(|hop| {
        let cable = &cell.cables[hop.cable];
        let bottleneck = cable.bottlenecks[hop.end.index()].as_ref();
        let port = bottleneck.map(|b| (b.rate_bps, Some(&b.kind)));
        [Some((cable.rate_bps, None)), port]
    });
    rates
        .flatten()
        .min_by_key(|(bps, _)| *bps)
        .unwrap_or((1, None))
}

/// Checks the bounds on transfers over all runs of a cell.
pub fn judge(cell: &Cell, rows: &[TransferRow], result: &mut CellResult) {
    for bound in &cell.transfer_bounds {
        let Subject::Flow(flow) = bound.subject else {
            continue;
        };
        let name = &cell.flows[flow].name;
        let row = rows.iter().find(|row| row.flow == *name);
        let value = row.and_then(|row| row.get(&bound.metric));
        result.bounds.push(BoundResult {
            flow: name.clone(),
            window: "all runs".into(),
            metric: bound.metric.clone(),
            min: bound.min,
            max: bound.max,
            value,
            ok: BoundResult::holds(value, bound.min, bound.max),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netsim::run::run_cell;

    /// A cell of `count` transfers, and their outcomes in two runs.
    fn cell(count: usize) -> (Cell, Vec<Vec<Outcome>>) {
        let text = format!(
            "name = \"t\"\ntitle = \"t\"\nduration = \"20s\"\n[[host]]\nname = \"a\"\n\
             [[host]]\nname = \"b\"\n[[cable]]\nname = \"w\"\nends = [\"a:eth0\", \"b:eth0\"]\n\
             rate = \"100mbit\"\ndelay = \"1ms\"\n[[flow]]\nname = \"f${{n}}\"\n\
             each = {{ n = \"1..{count}\" }}\ntype = \"tcp\"\nfrom = \"a\"\nto = \"b\"\n\
             bytes = \"20kb\"\nstart = \"${{n * 10}}ms\"\n"
        );
        let mut scenario = scenario::parse("t.toml", &text, &Default::default()).unwrap();
        let cell = scenario.cells.remove(0);
        let run = |seed| outcomes(&cell, &run_cell(&cell, seed, true, &mut |_| {}).unwrap());
        let runs = vec![run(1), run(2)];
        (cell, runs)
    }

    #[test]
    fn many_transfers_are_told_together() {
        let (few, runs) = cell(ROWS_MAX);
        assert_eq!(told(&few, rows(&few, &runs), &runs).len(), ROWS_MAX);
        let (many, runs) = cell(ROWS_MAX + 1);
        let each = rows(&many, &runs);
        let all = told(&many, each.clone(), &runs);
        let [all] = &all[..] else {
            panic!("{} rows", all.len());
        };
        assert_eq!((all.flow.as_str(), all.runs), (TOGETHER, 2));
        assert_eq!(all.bytes, (ROWS_MAX as u64 + 1) * 20 * 1024);
        assert_eq!(all.unfinished, 0.0);
        // From the start of the first, 10 ms, to the end of the last, which starts at 170 ms.
        let last_s = each[ROWS_MAX].time_mean_s;
        assert!((all.time_mean_s - (0.16 + last_s)).abs() < 1e-9);
    }
}
