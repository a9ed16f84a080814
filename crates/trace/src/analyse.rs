// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the timelines of a cell's cables to the `windows` of its result, and
//! to the curves a report draws.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use scenario::result::{BoundResult, FlowResult, WindowResult, WireMetrics};
use scenario::{Cell, Direction, Flow, Subject, Window};
use serde::{Deserialize, Serialize};

use crate::bandwidth::{Bandwidth, even_interval_ps};
use crate::burstiness::{Average, Bottleneck};
use crate::gaps::{Bin, Distribution};
use crate::metrics::{Frame, flow_metrics};
use crate::record::duration_ps;
use crate::{FlowKey, FlowTable, Kind, PS_PER_S, Proto, Record, thousandths};

/// Name of the flow that stands for all data frames of a direction together.
pub const WIRE: &str = "wire";

/// What one end of a cable sent.
#[derive(Clone, Copy, Debug)]
pub struct Timeline<'a> {
    /// Which end of which cable.
    pub direction: Direction,
    /// In order of departure.
    pub records: &'a [Record],
    /// What [`Record::flow`] means.
    pub flows: &'a FlowTable,
}

/// Why a cell cannot be analysed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnalyseError {
    /// A timeline is of no cable of the cell.
    #[error("a timeline of cable {0}, which the cell does not have")]
    NoCable(usize),
    /// A flow is measured where no timeline was given.
    #[error("no timeline of the cable's end that flow {0} leaves by")]
    NoTimeline(String),
    /// Curves of no length, or of millions of intervals.
    #[error("the cell lasts {0} ns: no curve can be drawn")]
    Duration(u64),
}

/// What [`analyse_cell`] finds.
#[derive(Clone, Debug, PartialEq)]
pub struct CellAnalysis {
    /// For `result.json`.
    pub windows: Vec<WindowResult>,
    /// For `result.json`.
    pub bounds: Vec<BoundResult>,
    /// For the report.
    pub curves: Curves,
}

/// How a cell went over time: what a report draws. Kept as `curves.json` in
/// the cell's folder, so that a report can be made again from the folder alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curves {
    /// Length of one interval.
    pub interval_s: f64,
    /// Length of the cell.
    pub duration_s: f64,
    /// In the order of the scenario.
    pub flows: Vec<FlowCurves>,
    /// By end, data frames: `<cable>.<end>`.
    pub wire: IndexMap<String, WireCurves>,
}

/// One flow over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowCurves {
    /// Its name.
    pub name: String,
    /// What it should achieve, if the scenario says so.
    pub target_bps: Option<f64>,
    /// When it is meant to send, seconds from t = 0.
    pub active_s: (f64, f64),
    /// Line rate of its end.
    pub line_bps: u64,
    /// MTU of its end.
    pub mtu: u32,
    /// Link-layer bytes in each interval.
    pub bytes: Vec<u64>,
    /// Largest queue of the virtual bottleneck in each interval, bytes.
    pub queue_bytes: Vec<f64>,
    /// Gaps, start to start.
    pub gaps: Vec<Bin>,
}

/// One end over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireCurves {
    /// Line rate.
    pub rate_bps: u64,
    /// Link-layer bytes of data frames in each interval.
    pub data_bytes: Vec<u64>,
    /// Wire bytes of gap frames in each interval.
    pub gap_bytes: Vec<u64>,
}

/// Measures a cell: every flow in every window, where the scenario says it is
/// measured, and every direction a timeline is given for. An entry named
/// [`WIRE`] in each window's flows stands for all data frames of the first
/// flow's direction together.
///
/// A flow is measured over the part of a window in which it is meant to send.
/// `zero_ps` is the instant t = 0 on the timelines' clock; curves get at most
/// `intervals` intervals. Time is linear in the records for each window,
/// memory 4 bytes a record and 16 for each frame of one flow.
///
/// # Errors
/// When timelines and cell do not fit together.
pub fn analyse_cell(
    cell: &Cell,
    zero_ps: u64,
    timelines: &[Timeline<'_>],
    intervals: u64,
) -> Result<CellAnalysis, AnalyseError> {
    let ends = timelines
        .iter()
        .map(|t| End::new(cell, t))
        .collect::<Result<Vec<_>, AnalyseError>>()?;
    let no_timeline = |flow: &Flow| AnalyseError::NoTimeline(flow.name.clone());
    let mut placed = Vec::with_capacity(cell.flows.len());
    for flow in &cell.flows {
        let direction = flow.measured_at();
        let end = ends
            .iter()
            .find(|e| Some(e.timeline.direction) == direction);
        let end = end.ok_or_else(|| no_timeline(flow))?;
        placed.push(Placed {
            flow,
            end,
            records: end.of(flow),
        });
    }
    let windows: Vec<_> = cell
        .windows
        .iter()
        .map(|w| window(zero_ps, &ends, &placed, w))
        .collect();
    let bounds = bounds(cell, &windows);
    let curves = curves(cell, zero_ps, &ends, &placed, intervals)
        .ok_or(AnalyseError::Duration(cell.duration_ns))?;
    Ok(CellAnalysis {
        windows,
        bounds,
        curves,
    })
}

/// Each bound of the cell against what was measured.
fn bounds(cell: &Cell, windows: &[WindowResult]) -> Vec<BoundResult> {
    let judge = |bound: &scenario::Bound| {
        let flow = match bound.subject {
            Subject::Wire => WIRE,
            Subject::Flow(index) => cell.flows.get(index).map_or("", |f| &f.name),
        };
        let window = windows.get(bound.window);
        let found = window.and_then(|w| w.flows.iter().find(|f| f.name == flow));
        let value = found.and_then(|f| f.metrics.get(&bound.metric));
        BoundResult {
            flow: flow.to_owned(),
            window: window.map_or_else(String::new, |w| w.name.clone()),
            metric: bound.metric.clone(),
            min: bound.min,
            max: bound.max,
            value,
            ok: BoundResult::holds(value, bound.min, bound.max),
        }
    };
    cell.bounds.iter().map(judge).collect()
}

/// A direction, with its data frames by flow.
struct End<'a> {
    name: String,
    rate_bps: u64,
    mtu: u32,
    timeline: &'a Timeline<'a>,
    by_flow: BTreeMap<u32, Vec<u32>>,
}

impl<'a> End<'a> {
    fn new(cell: &Cell, timeline: &'a Timeline<'a>) -> Result<Self, AnalyseError> {
        let Direction { cable, end } = timeline.direction;
        let of = cell.cables.get(cable).ok_or(AnalyseError::NoCable(cable))?;
        let mut by_flow: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (i, record) in (0u32..).zip(timeline.records) {
            if record.kind == Kind::Data {
                by_flow.entry(record.flow).or_default().push(i);
            }
        }
        let name = format!("{}.{end}", of.name);
        Ok(Self {
            name,
            rate_bps: of.rate_bps,
            mtu: of.mtu,
            timeline,
            by_flow,
        })
    }

    /// The positions of a flow's records.
    fn of(&self, flow: &Flow) -> Vec<u32> {
        let key = FlowKey::Ports {
            proto: if flow.kind.protocol() == "tcp" {
                Proto::Tcp
            } else {
                Proto::Udp
            },
            src: flow.source.into(),
            sport: flow.source_port,
            dst: flow.destination.into(),
            dport: flow.port,
        };
        let index = self.timeline.flows.find(&key);
        index
            .and_then(|i| self.by_flow.get(&i))
            .cloned()
            .unwrap_or_default()
    }
}

/// A flow where it is measured.
struct Placed<'a> {
    flow: &'a Flow,
    end: &'a End<'a>,
    records: Vec<u32>,
}

impl Placed<'_> {
    fn records(&self) -> impl Iterator<Item = &Record> + Clone {
        self.records
            .iter()
            .filter_map(|&i| self.end.timeline.records.get(i as usize))
    }
}

fn seconds(ps: u64) -> f64 {
    // A picosecond of a cell of hours still has its place in 53 bits.
    #[allow(clippy::cast_precision_loss)]
    let seconds = ps as f64 / PS_PER_S as f64;
    seconds
}

fn ps(ns: u64) -> u64 {
    ns.saturating_mul(1000)
}

fn window(zero_ps: u64, ends: &[End<'_>], placed: &[Placed<'_>], w: &Window) -> WindowResult {
    let at = |ns: u64| zero_ps.saturating_add(ps(ns));
    let (from_ps, to_ps) = (at(w.from_ns), at(w.to_ns));
    let of_flow = |p: &Placed<'_>| {
        let frame = Frame {
            from_ps: from_ps.max(at(p.flow.start_ns)),
            to_ps: to_ps.min(at(p.flow.stop_ns)),
            rate_bps: p.end.rate_bps,
            mtu: p.end.mtu,
            target: p.flow.target,
        };
        FlowResult {
            name: p.flow.name.clone(),
            metrics: flow_metrics(p.records(), &frame),
        }
    };
    let mut flows: Vec<_> = placed.iter().map(of_flow).collect();
    if let Some(end) = placed.first().map(|p| p.end) {
        let frame = Frame {
            from_ps,
            to_ps,
            rate_bps: end.rate_bps,
            mtu: end.mtu,
            target: None,
        };
        let metrics = flow_metrics(end.timeline.records.iter(), &frame);
        flows.push(FlowResult {
            name: WIRE.to_owned(),
            metrics,
        });
    }
    WindowResult {
        name: w.name.clone(),
        from_s: seconds(ps(w.from_ns)),
        to_s: seconds(ps(w.to_ns)),
        wire: ends
            .iter()
            .map(|e| (e.name.clone(), wire(e, from_ps, to_ps)))
            .collect(),
        flows,
    }
}

/// How busy a direction was: every frame counts with the part of its time on
/// the wire that lies in the window, everything else by its start.
fn wire(end: &End<'_>, from_ps: u64, to_ps: u64) -> WireMetrics {
    let mut m = WireMetrics {
        rate_bps: end.rate_bps,
        ..WireMetrics::default()
    };
    let mut busy_ps: u128 = 0;
    for r in end.timeline.records {
        let length = duration_ps(r.wire_bytes, end.rate_bps).unwrap_or(0);
        let ends_ps = r.start_ps.saturating_add(length);
        busy_ps += u128::from(ends_ps.min(to_ps).saturating_sub(r.start_ps.max(from_ps)));
        if !(from_ps..to_ps).contains(&r.start_ps) {
            continue;
        }
        m.dropped_frames += u64::from(r.fate.is_dropped());
        if r.kind == Kind::Data {
            m.data_frames += 1;
        } else {
            m.gap_frames += 1;
            m.gap_bytes += u64::from(r.wire_bytes);
        }
    }
    let window_ps = u128::from(to_ps.saturating_sub(from_ps));
    if window_ps > 0 {
        // To a millionth.
        m.utilisation = thousandths(busy_ps.min(window_ps) * 1000, window_ps) / 1000.0;
    }
    m
}

/// The intervals of a cell's curves.
#[derive(Clone, Copy)]
struct Axis {
    zero_ps: u64,
    end_ps: u64,
    interval_ps: u64,
}

impl Axis {
    fn bins(self, rate_bps: u64) -> Option<Bandwidth> {
        Bandwidth::new(self.zero_ps, self.end_ps, self.interval_ps, rate_bps)
    }

    fn index(self, at_ps: u64) -> Option<usize> {
        usize::try_from(at_ps.checked_sub(self.zero_ps)? / self.interval_ps).ok()
    }
}

fn curves(
    cell: &Cell,
    zero_ps: u64,
    ends: &[End<'_>],
    placed: &[Placed<'_>],
    intervals: u64,
) -> Option<Curves> {
    let duration_ps = ps(cell.duration_ns);
    let interval_ps = even_interval_ps(duration_ps, intervals);
    let axis = Axis {
        zero_ps,
        end_ps: zero_ps.saturating_add(duration_ps),
        interval_ps,
    };
    let mut curves = Curves {
        interval_s: seconds(interval_ps),
        duration_s: seconds(duration_ps),
        ..Curves::default()
    };
    for p in placed {
        curves.flows.push(flow_curves(axis, p)?);
    }
    for e in ends {
        let mut data = axis.bins(e.rate_bps)?;
        let mut gaps = data.clone();
        for r in e.timeline.records {
            if r.kind == Kind::Data {
                data.push(r.start_ps, r.frame_bytes, r.wire_bytes);
            } else {
                gaps.push(r.start_ps, r.wire_bytes, r.wire_bytes);
            }
        }
        let wire = WireCurves {
            rate_bps: e.rate_bps,
            data_bytes: data.into_bytes(),
            gap_bytes: gaps.into_bytes(),
        };
        curves.wire.insert(e.name.clone(), wire);
    }
    Some(curves)
}

fn flow_curves(axis: Axis, p: &Placed<'_>) -> Option<FlowCurves> {
    let mut bandwidth = axis.bins(p.end.rate_bps)?;
    let mut gaps = Distribution::default();
    let mut average = Average::default();
    let mut last_ps = None;
    for r in p.records() {
        bandwidth.push(r.start_ps, r.frame_bytes, r.wire_bytes);
        average.push(r.start_ps, r.frame_bytes);
        if let Some(last_ps) = last_ps.replace(r.start_ps) {
            gaps.push(r.start_ps - last_ps);
        }
    }
    let bytes = bandwidth.into_bytes();
    let mut queue_bytes = vec![0.0; bytes.len()];
    if let Some(rate) = average.rate() {
        let mut bottleneck = Bottleneck::new(rate);
        for r in p.records() {
            let queue = bottleneck.push(r.start_ps, r.frame_bytes);
            if let Some(slot) = axis.index(r.start_ps).and_then(|i| queue_bytes.get_mut(i)) {
                *slot = queue.max(*slot);
            }
        }
    }
    // Rates stay below 2^53.
    #[allow(clippy::cast_precision_loss)]
    let target_bps = p.flow.target.map(|t| t.rate_bps as f64);
    Some(FlowCurves {
        name: p.flow.name.clone(),
        target_bps,
        active_s: (seconds(ps(p.flow.start_ns)), seconds(ps(p.flow.stop_ns))),
        line_bps: p.end.rate_bps,
        mtu: p.end.mtu,
        bytes,
        queue_bytes,
        gaps: gaps.histogram(p.end.rate_bps),
    })
}
