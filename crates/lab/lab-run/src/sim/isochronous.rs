// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs hosts on segments that send periodically, merges all runs of a cell, and adds the
//! measurements to the result.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result};
use indexmap::IndexMap;
use metrics::analyse::bounds;
use metrics::curves::Curves;
use netsim::itm::{Delays, NodeCounts, Ran, StreamMeasure, run_cell};
use predict::classes::{Classes, Delay};
use predict::distribution::Chain;
use predict::fit::{Fit, chi_squared};
use report::Distribution;
use scenario::isochronous::{Isochronous, Stream, StreamKind};
use scenario::result::{CellResult, FlowMetrics, FlowResult, WindowResult, WireMetrics};
use scenario::{Cell, Scenario};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::finished::Finished;
use crate::measure_cell::delays_table;
use crate::progress::Progress;
use crate::sim::repeat::{OneRun, Repeated};
use crate::stored::Stored;

/// Step of the delays in reports and plots, as in paper 004's figures.
const STEP_NS: u64 = 500_000;

/// Runs of a cell that are one sample of the share of round trips beyond the first peak.
const RUNS_OF_SAMPLE: u64 = 50;

/// All runs of a cell, measured.
#[derive(Serialize, Deserialize)]
pub(super) struct Merged {
    result: CellResult,
    frames: u64,
    pictures: Pictures,
    /// Tables of delays: name of the file, and text.
    tables: Vec<(String, String)>,
}

/// Runs a cell as often as it is meant to, and joins the runs as they end: the delays of one take
/// half a megabyte.
pub(super) fn run_cell_of(scenario: &Scenario, one: &OneRun<'_>) -> Result<Merged> {
    let cell = one.cell;
    let of = of(cell)?;
    let mut peaks = vec![Vec::new(); of.streams.len()];
    let mut merged: Option<Ran> = None;
    let mut first = 0;
    while first < one.runs {
        let mut sample: Option<Ran> = None;
        for run in first..one.runs.min(first + RUNS_OF_SAMPLE) {
            let seed = one.seed.wrapping_add(run);
            let ran = run_cell(cell, of, seed, &mut one.steps.cell())
                .with_context(|| format!("seed {seed}"))?;
            join(&mut sample, ran);
        }
        first += RUNS_OF_SAMPLE;
        let Some(sample) = sample else { break };
        let measured = of.streams.iter().zip(&sample.streams).zip(&mut peaks);
        for ((stream, measure), peaks) in measured {
            peaks.extend(beyond_first_peak(measure, stream.path.len()));
        }
        join(&mut merged, sample);
    }
    let ran = merged.context("a cell that was not run")?;
    let mut pictures = Pictures::default();
    pictures.add(scenario, cell, of, &ran);
    let mut result = result(cell, of, &ran);
    let flows = result.windows.iter_mut().flat_map(|w| &mut w.flows);
    for (flow, peaks) in flows.zip(&peaks) {
        flow.metrics.second_peak_error_pct = standard_error(peaks).map(|e| e * 100.0);
    }
    Ok(Merged {
        result,
        frames: ran.segments.iter().map(|s| s.frames).sum(),
        pictures,
        tables: tables(of, &ran),
    })
}

fn join(all: &mut Option<Ran>, one: Ran) {
    match all {
        Some(all) => all.join(&one),
        None => *all = Some(one),
    }
}

/// Runs a scenario and writes into `out`. Each cell runs `runs` times, with consecutive seeds.
pub fn run(
    scenario: &Scenario,
    out: &Path,
    jobs: Option<NonZeroUsize>,
    how: (&dyn Progress, Option<&Stored>),
) -> Result<Finished> {
    let work = |one: &OneRun<'_>| run_cell_of(scenario, one);
    let mut all = Repeated::new(scenario, out, jobs, how, work)?;
    let (mut results, mut pictures) = (vec![], Pictures::default());
    let mut frames = 0;
    for merged in all.pieces.by_ref() {
        frames += merged.frames;
        pictures.extend(merged.pictures);
        let dir = all.room.folder(&merged.result.dir)?;
        for (name, text) in &merged.tables {
            all.room.write(&dir.join(name), text.as_bytes())?;
        }
        results.push((merged.result, Curves::default()));
    }
    let stats = all.stats(frames);
    all.finish((results, vec![]), pictures.plots(), &stats)
}

fn of(cell: &Cell) -> Result<&Isochronous> {
    cell.isochronous
        .as_ref()
        .with_context(|| format!("cell {} has no segments", cell.index))
}

/// Returns the tables of delays of a cell.
fn tables(of: &Isochronous, ran: &Ran) -> Vec<(String, String)> {
    let of_stream = |(stream, measure): (&Stream, &StreamMeasure)| {
        let table = |what: &str, delays: &Delays| {
            let name = format!("stream-{}.{what}.csv", stream.name);
            (delays.count() > 0).then(|| (name, delays_table(delays.recorded())))
        };
        [
            table("delays", &measure.one_way),
            table("round-trips", &measure.round_trip),
        ]
    };
    let streams = of.streams.iter().zip(&ran.streams);
    streams.flat_map(of_stream).flatten().collect()
}

fn result(cell: &Cell, of: &Isochronous, ran: &Ran) -> CellResult {
    let run_s = cell.duration_ns as f64 / 1e9;
    let whole_s = run_s * ran.runs as f64;
    let (mut flows, mut reports) = (vec![], BTreeMap::new());
    for (stream, measure) in of.streams.iter().zip(&ran.streams) {
        let fit = Lateness::new(measure);
        flows.push(FlowResult {
            name: stream.name.clone(),
            metrics: metrics(stream, measure, ran.runs, fit.as_ref()),
            ..FlowResult::default()
        });
        reports.insert(stream.name.clone(), report(measure, fit.as_ref()));
    }
    let wire = of
        .segments
        .iter()
        .zip(&ran.segments)
        .map(|(segment, counts)| {
            let metrics = WireMetrics {
                rate_bps: segment.rate_bps,
                utilisation: counts.bits as f64 / (segment.rate_bps as f64 * whole_s),
                data_frames: counts.frames,
                dropped_frames: counts.given_up + counts.refused,
                collisions: segment.backoff.map(|_| counts.collisions),
                ..WireMetrics::default()
            };
            (segment.name.clone(), metrics)
        });
    let window = WindowResult {
        name: cell
            .windows
            .first()
            .map_or_else(String::new, |w| w.name.clone()),
        from_s: 0.0,
        to_s: run_s,
        wire: wire.collect::<IndexMap<_, _>>(),
        flows,
    };
    let windows = vec![window];
    CellResult {
        params: cell.params.clone(),
        dir: format!("cell-{}", cell.index),
        bounds: bounds(cell, &windows),
        windows,
        tc: BTreeMap::new(),
        flow_reports: reports,
        nodes: nodes(cell, ran),
        stops: vec![],
    }
}

/// Returns the counters of each host.
fn nodes(cell: &Cell, ran: &Ran) -> BTreeMap<String, Value> {
    let of = |counts: &NodeCounts| {
        json!({
            "late_first": counts.late_first,
            "late_first_bytes": counts.late_first_bytes,
            "deferred": counts.deferred,
            "excess": counts.excess,
            "slot_overruns": counts.slot_overruns,
            "device_busy": counts.device_busy,
            "nrt_deferred": counts.nrt_deferred,
            "nrt_dropped": counts.nrt_dropped,
        })
    };
    let names = cell.hosts.iter().map(|host| host.name.clone());
    names.zip(ran.nodes.iter().map(of)).collect()
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn metrics(stream: &Stream, m: &StreamMeasure, runs: u64, fit: Option<&Lateness>) -> FlowMetrics {
    let active_s = (stream.stop_ns - stream.start_ns) as f64 / 1e9 * runs as f64;
    let (frame, wire) = (stream.frame_bytes(), stream.wire_bytes());
    let bps = |packets: u64, bytes: u32| packets as f64 * f64::from(bytes) * 8.0 / active_s;
    let percentile = |delays: &Delays, percent| delays.percentile_ns(percent).map(us);
    let most = |delays: &Delays| delays.worst().map(|(delay, _)| us(delay.as_ns()));
    let worst = m.round_trip.worst().or(m.one_way.worst());
    let sent: u64 = m.retries.iter().sum();
    let collisions = m.retries.iter().zip(0u64..).map(|(count, n)| count * n);
    let highest = m
        .retries
        .iter()
        .zip(0u64..)
        .filter(|(count, _)| **count > 0);
    let is_rt = matches!(stream.kind, StreamKind::Rt { .. });
    FlowMetrics {
        frames: m.sent,
        bytes: m.sent * u64::from(frame),
        wire_bytes: m.sent * u64::from(wire),
        rate_bps: bps(m.sent, frame),
        wire_rate_bps: bps(m.sent, wire),
        ip_rate_bps: bps(m.sent, frame.saturating_sub(14)),
        goodput_bps: Some(bps(m.arrived, stream.payload_bytes)),
        dropped: m.lost_collisions + m.lost_queue,
        delay_min_us: m.one_way.least_ns().map(us),
        delay_p50_us: percentile(&m.one_way, 50.0),
        delay_p90_us: percentile(&m.one_way, 90.0),
        delay_p99_us: percentile(&m.one_way, 99.0),
        delay_p999_us: percentile(&m.one_way, 99.9),
        delay_max_us: most(&m.one_way),
        rtt_p50_us: percentile(&m.round_trip, 50.0),
        rtt_p90_us: percentile(&m.round_trip, 90.0),
        rtt_p99_us: percentile(&m.round_trip, 99.0),
        rtt_max_us: most(&m.round_trip),
        worst_number: worst.map(|(_, number)| number),
        retries_mean: (sent > 0).then(|| collisions.sum::<u64>() as f64 / sent as f64),
        retries_max: highest.last().map(|(_, n)| n),
        late_pct: fit.map(|fit| fit.beta * 100.0),
        late_way_pct: fit.map(|fit| fit.late_anywhere * 100.0),
        second_peak_pct: beyond_first_peak(m, stream.path.len()).map(|share| share * 100.0),
        over: is_rt.then_some(m.overs.all),
        over_unexplained: is_rt.then_some(m.overs.unexplained),
        play_s: (m.arrived > 0).then(|| m.span.as_s()),
        fit_diff_pct: fit.map(|fit| fit.difference * 100.0),
        fit_p: fit.and_then(|fit| fit.fit.p_value),
        ..FlowMetrics::default()
    }
}

/// Returns the share of round trips longer than `segments` periods, which is the first peak
/// (paper 004, 4.2); `None` if there are none.
fn beyond_first_peak(m: &StreamMeasure, segments: usize) -> Option<f64> {
    let all: u64 = m.round_trip_periods.iter().sum();
    let first: u64 = m.round_trip_periods.iter().take(segments).sum();
    (all > 0).then(|| (all - first) as f64 / all as f64)
}

/// Returns the standard error of the mean of some shares; `None` if they are fewer than eight.
fn standard_error(shares: &[f64]) -> Option<f64> {
    let n = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / n;
    let squares: f64 = shares.iter().map(|share| (share - mean).powi(2)).sum();
    (shares.len() >= 8).then(|| (squares / (n - 1.0) / n).sqrt())
}

/// The lateness of a stream's packets, and the prediction from its stages.
struct Lateness {
    /// Share of packets late at a stage, over all stages together.
    beta: f64,
    /// Share of packets late anywhere on the path.
    late_anywhere: f64,
    predicted: Vec<f64>,
    /// The prediction with one beta for all stages, as in paper 004.
    with_one_beta: Vec<f64>,
    /// Largest difference between a measured and a predicted share.
    difference: f64,
    fit: Fit,
}

impl Lateness {
    /// Computes the lateness of a stream; `None` if no packet has passed a stage.
    fn new(measure: &StreamMeasure) -> Option<Self> {
        let stages: Vec<_> = measure.stages.iter().filter(|s| s.passed > 0).collect();
        let passed: u64 = stages.iter().map(|s| s.passed).sum();
        let late: u64 = stages.iter().map(|s| s.late).sum();
        if stages.is_empty() {
            return None;
        }
        let betas: Vec<f64> = stages
            .iter()
            .map(|s| s.late as f64 / s.passed as f64)
            .collect();
        let beta = late as f64 / passed as f64;
        let chain = |betas: &[f64]| Chain::one_way(betas, stages.len()).ok();
        let predicted = chain(&betas)?.late();
        let with_one_beta = chain(&[beta])?.late();
        // A class is a whole number of periods, so a period may have any length: 1 ns is taken.
        let counts = measure.late.iter().zip(0u64..);
        let delays: Vec<_> = counts
            .map(|(count, periods)| Delay {
                delay_ns: periods,
                count: *count,
            })
            .collect();
        let classes = Classes::new(&delays, 1, Some(0), stages.len()).ok()?;
        let packets: u64 = measure.late.iter().sum();
        let share = |late: usize| *measure.late.get(late).unwrap_or(&0) as f64 / packets as f64;
        let differences = predicted.iter().enumerate();
        let differences = differences.map(|(late, p)| (share(late) - p).abs());
        Some(Self {
            beta,
            late_anywhere: 1.0 - share(0),
            difference: differences.fold(0.0, f64::max),
            // Only one parameter is fitted: one beta for each stage would leave no degree of
            // freedom to test.
            fit: chi_squared(&classes, &with_one_beta, 1),
            predicted,
            with_one_beta,
        })
    }
}

fn report(m: &StreamMeasure, fit: Option<&Lateness>) -> Value {
    let stage = |stage: &netsim::itm::Stage| json!({ "passed": stage.passed, "late": stage.late });
    let steps = |delays: &Delays| json!({ "step_ns": STEP_NS, "packets": delays.steps(STEP_NS) });
    let mut value = json!({
        "sent": m.sent,
        "arrived": m.arrived,
        "lost_collisions": m.lost_collisions,
        "lost_queue": m.lost_queue,
        "retries": m.retries,
        "delays": steps(&m.one_way),
    });
    let Some(fields) = value.as_object_mut() else {
        return value;
    };
    if m.round_trip.count() > 0 {
        fields.insert("returned".into(), json!(m.returned));
        fields.insert("round_trips".into(), steps(&m.round_trip));
    }
    if let Some(fit) = fit {
        fields.insert("stages".into(), m.stages.iter().map(stage).collect());
        fields.insert("late_periods".into(), json!(m.late));
        fields.insert("predicted".into(), json!(fit.predicted));
        fields.insert("predicted_with_one_beta".into(), json!(fit.with_one_beta));
        fields.insert("fit".into(), json!(fit.fit));
    }
    if m.overs.all > 0 {
        let overs = json!({
            "all": m.overs.all,
            "deferred": m.overs.deferred,
            "medium": m.overs.medium,
            "receiving": m.overs.receiving,
            "unexplained": m.overs.unexplained,
        });
        fields.insert("over".into(), overs);
    }
    value
}

/// The plots of all cells together.
#[derive(Default, Serialize, Deserialize)]
struct Pictures {
    delays: Vec<Distribution>,
    retries: Vec<Distribution>,
    late: Vec<Distribution>,
    has_round_trips: bool,
}

/// Most cells that are drawn together.
const MOST_LINES: usize = 8;

impl Pictures {
    fn add(&mut self, scenario: &Scenario, cell: &Cell, of: &Isochronous, ran: &Ran) {
        let label = name(scenario, cell);
        let streams = || of.streams.iter().zip(&ran.streams);
        let is_rt = |stream: &Stream| matches!(stream.kind, StreamKind::Rt { .. });
        let has_rt = of.streams.iter().any(is_rt);
        let pings = || streams().filter(|(_, m)| m.round_trip.count() > 0);
        let ping = pings().next();
        let mut delays = vec![];
        for (stream, measure) in streams() {
            match ping {
                Some(_) => add(&mut delays, &measure.round_trip.steps(STEP_NS)),
                None if has_rt && !is_rt(stream) => {}
                None => add(&mut delays, &measure.one_way.steps(STEP_NS)),
            }
        }
        self.has_round_trips |= ping.is_some();
        self.delays.push(Distribution::new(&label, &delays, None));
        let mut retries = vec![];
        streams().for_each(|(_, m)| add(&mut retries, &m.retries));
        if of.segments.iter().any(|s| s.backoff.is_some()) {
            self.retries.push(Distribution::new(&label, &retries, None));
        }
        let late = ping.or_else(|| streams().find(|(stream, _)| is_rt(stream)));
        if let Some((measure, fit)) = late.and_then(|(_, m)| Some((m, Lateness::new(m)?))) {
            let predicted = Some(&fit.predicted[..]);
            self.late
                .push(Distribution::new(&label, &measure.late, predicted));
        }
    }

    fn extend(&mut self, other: Self) {
        self.delays.extend(other.delays);
        self.retries.extend(other.retries);
        self.late.extend(other.late);
        self.has_round_trips |= other.has_round_trips;
    }

    fn plots(&self) -> Vec<draw::Plot> {
        if self.delays.len() > MOST_LINES {
            return vec![];
        }
        let step_ms = STEP_NS as f64 / 1e6;
        let mut plots = vec![report::delays_plot(
            &self.delays,
            step_ms,
            self.has_round_trips,
        )];
        if !self.retries.is_empty() {
            plots.push(report::retries_plot(&self.retries));
        }
        if !self.late.is_empty() {
            plots.push(report::lateness_plot(&self.late));
        }
        plots
    }
}

/// Adds counts index by index.
fn add(sums: &mut Vec<u64>, counts: &[u64]) {
    if sums.len() < counts.len() {
        sums.resize(counts.len(), 0);
    }
    sums.iter_mut().zip(counts).for_each(|(sum, c)| *sum += c);
}

/// Returns the cell's name: the parameters in which it differs from other cells.
fn name(scenario: &Scenario, cell: &Cell) -> String {
    let varies = |key: &String| {
        let values = scenario.cells.iter().map(|cell| cell.params.get(key));
        values.clone().any(|value| value != cell.params.get(key))
    };
    let words = cell.params.iter().filter(|(key, _)| varies(key));
    let words: Vec<_> = words.map(|(key, value)| format!("{key} {value}")).collect();
    words.join(", ")
}
