// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the `windows` of a cell's result, and the curves that a report draws, from the
//! timelines of the cell's cables.

use capture::flows::{FlowKey, FlowTable, Proto};
use capture::record::Record;
use scenario::result::{BoundResult, WindowResult};
use scenario::{Cell, Direction, Flow, FlowKind, Subject, Window};
use sender_log::sample::TcpSample;

use crate::bandwidth::even_interval_ps;
use crate::curves::{self, Curves, QueueWindow};
use crate::flow::WIRE;
use crate::gaps::Distribution;
use crate::measure::{self, End, Placed, Span, Timestamps};
use crate::tcp::{self, TcpCurves};
use crate::waits;

/// The frames that one end of a cable sent.
#[derive(Clone, Copy, Debug)]
pub struct Timeline<'a> {
    /// Cable and end that sent them.
    pub direction: Direction,
    /// The frames in order of departure.
    pub records: &'a [Record],
    /// The flows that [`Record::flow`] is an index into.
    pub flows: &'a FlowTable,
    /// Instants at which the sender handed over each data frame, ps; 0 where the instant is
    /// not known ([`crate::waits::timestamps_ps`]). May be empty.
    pub timestamps_ps: &'a [u64],
}

/// The records of one run of a cell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorded<'a> {
    /// The instant t = 0 on the timelines' clock.
    pub zero_ps: u64,
    /// Every direction to be measured.
    pub timelines: &'a [Timeline<'a>],
    /// Time in which the CPU was busy in each window, ns; empty if not known.
    pub busy_ns: &'a [u64],
    /// Samples of each flow's sender over time, in the order of the flows; empty for a flow
    /// that was not sampled.
    pub tcp: &'a [Vec<TcpSample>],
}

/// Why a cell cannot be analysed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnalyseError {
    /// A timeline names a cable that the cell does not have.
    #[error("a timeline of cable {0}, which the cell does not have")]
    NoCable(usize),
    /// There is no timeline of the direction in which a flow is measured.
    #[error("no timeline of the cable's end that flow {0} leaves by")]
    NoTimeline(String),
    /// The duration gives no interval for curves, or millions.
    #[error("the cell lasts {0} ns: no curve can be drawn")]
    Duration(u64),
}

#[derive(Clone, Debug, PartialEq)]
pub struct CellAnalysis {
    pub windows: Vec<WindowResult>,
    pub bounds: Vec<BoundResult>,
    /// Curves for the report.
    pub curves: Curves,
    /// Waits of the datagrams of each flow, if known.
    pub waits: Vec<Distribution>,
}

/// Measures a cell: every flow in every window, at the cable where the scenario measures it,
/// and every direction that has a timeline. In each window's flows, the entry named [`WIRE`]
/// holds the metrics of all data frames of the directions in which flows are measured.
///
/// A flow is measured over the part of a window in which it is meant to send. Curves have at
/// most `intervals` intervals. Each window takes time linear in the records. Memory: 4 bytes
/// per record, and 16 per frame of one flow.
///
/// # Errors
/// If the records do not fit the cell.
pub fn analyse_cell(
    cell: &Cell,
    recorded: &Recorded<'_>,
    intervals: u64,
) -> Result<CellAnalysis, AnalyseError> {
    let Recorded {
        zero_ps, timelines, ..
    } = *recorded;
    let ends = timelines
        .iter()
        .map(|t| end(cell, t))
        .collect::<Result<Vec<_>, _>>()?;
    let mut placed = Vec::with_capacity(cell.flows.len());
    for flow in &cell.flows {
        let direction = flow.measured_at();
        let position = timelines
            .iter()
            .position(|t| Some(t.direction) == direction);
        let end = position.and_then(|i| ends.get(i));
        let end = end.ok_or_else(|| AnalyseError::NoTimeline(flow.name.clone()))?;
        placed.push(place(flow, end, zero_ps));
    }
    let window = |w: &Window| {
        let span = Span {
            zero_ps,
            from_ps: at(zero_ps, w.from_ns),
            to_ps: at(zero_ps, w.to_ns),
        };
        measure::window(&w.name, span, &ends, &placed)
    };
    let mut windows: Vec<_> = cell.windows.iter().map(window).collect();
    for (window, busy_ns) in windows.iter_mut().zip(recorded.busy_ns) {
        share_busy(window, *busy_ns);
    }
    for (result, window) in windows.iter_mut().zip(&cell.windows) {
        tcp_metrics(result, window, cell, recorded.tcp);
    }
    let bounds = bounds(cell, &windows);
    let span = Span {
        zero_ps,
        from_ps: zero_ps,
        to_ps: at(zero_ps, cell.duration_ns),
    };
    // The window of the first bound, else the last window.
    let judged = cell.bounds.first().map(|b| b.window);
    let window = judged
        .and_then(|i| cell.windows.get(i))
        .or(cell.windows.last());
    let queue = QueueWindow {
        name: window.map_or("", |w| &w.name),
        from_ps: window.map_or(span.from_ps, |w| at(zero_ps, w.from_ns)),
        to_ps: window.map_or(span.to_ps, |w| at(zero_ps, w.to_ns)),
    };
    let interval_ps = even_interval_ps(span.to_ps - span.from_ps, intervals);
    let mut curves = curves::draw(span, interval_ps, &ends, &placed, &queue)
        .ok_or(AnalyseError::Duration(cell.duration_ns))?;
    for (flow, samples) in curves.flows.iter_mut().zip(recorded.tcp) {
        flow.tcp = TcpCurves::of(samples);
    }
    let waits = placed
        .iter()
        .map(|p| waits::all(p.timestamps(Timestamps::Sent), p.active_ps));
    let mut waits: Vec<_> = waits.collect();
    for (flow, waits) in curves.flows.iter_mut().zip(&mut waits) {
        flow.waits = waits.histogram(waits::BYTE_A_MICROSECOND_BPS);
    }
    curves.closeups = cell
        .closeups
        .iter()
        .map(|c| curves::closeup(c, zero_ps, &placed))
        .collect::<Option<_>>()
        .ok_or(AnalyseError::Duration(cell.duration_ns))?;
    Ok(CellAnalysis {
        windows,
        bounds,
        curves,
        waits,
    })
}

/// Fills in the CPU time per data frame.
#[allow(clippy::cast_precision_loss)] // nanoseconds of a cell of hours fit
fn share_busy(window: &mut WindowResult, busy_ns: u64) {
    let wire = window.flows.iter_mut().find(|f| f.name == WIRE);
    if let Some(metrics) = wire.map(|f| &mut f.metrics).filter(|m| m.frames > 0) {
        let share = busy_ns as f64 / metrics.frames as f64;
        metrics.busy_ns_per_frame = Some((share * 1e3).round() / 1e3);
    }
}

/// Adds the sender's own figures to each flow's metrics, and their sums to those of all frames
/// together.
fn tcp_metrics(result: &mut WindowResult, window: &Window, cell: &Cell, tcp: &[Vec<TcpSample>]) {
    let (mut goodput_bps, mut retransmits) = (None, None);
    for ((flow, samples), entry) in cell.flows.iter().zip(tcp).zip(&mut result.flows) {
        let from_ns = window.from_ns.max(flow.start_ns);
        let to_ns = window.to_ns.min(flow.stop_ns);
        let Some(found) = tcp::metrics(samples, flow.start_ns, from_ns, to_ns) else {
            continue;
        };
        let metrics = &mut entry.metrics;
        metrics.goodput_bps = Some(found.goodput_bps);
        metrics.retransmits = Some(found.retransmits);
        metrics.cwnd_max_bytes = Some(found.cwnd_max_bytes);
        metrics.cwnd_end_bytes = Some(found.cwnd_end_bytes);
        goodput_bps = Some(goodput_bps.unwrap_or(0.0) + found.goodput_bps);
        retransmits = Some(retransmits.unwrap_or(0) + found.retransmits);
    }
    if let Some(wire) = result.flows.iter_mut().find(|f| f.name == WIRE) {
        wire.metrics.goodput_bps = goodput_bps;
        wire.metrics.retransmits = retransmits;
    }
}

/// Compares each bound of the cell with the measured value.
pub fn bounds(cell: &Cell, windows: &[WindowResult]) -> Vec<BoundResult> {
    let judge = |bound: &scenario::Bound| {
        let flow = match bound.subject {
            Subject::Wire => WIRE,
            subject => cell.name_of(subject),
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

fn end<'a>(cell: &Cell, timeline: &Timeline<'a>) -> Result<End<'a>, AnalyseError> {
    let Direction { cable, end } = timeline.direction;
    let of = cell.cables.get(cable).ok_or(AnalyseError::NoCable(cable))?;
    let name = format!("{}.{end}", of.name);
    Ok(
        End::new(name, of.rate_bps, of.mtu, timeline.records, timeline.flows)
            .timestamped(timeline.timestamps_ps),
    )
}

fn place<'a>(flow: &Flow, end: &'a End<'a>, zero_ps: u64) -> Placed<'a> {
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
    Placed {
        name: flow.name.clone(),
        target: flow.target,
        active_ps: (at(zero_ps, flow.start_ns), at(zero_ps, flow.stop_ns)),
        end,
        timestamps: match &flow.kind {
            FlowKind::Udp { launch: None, .. } => Timestamps::Sent,
            FlowKind::Udp { .. } => Timestamps::Launch,
            _ => Timestamps::None,
        },
        positions: end.of(&key),
    }
}

fn at(zero_ps: u64, ns: u64) -> u64 {
    zero_ps.saturating_add(ns.saturating_mul(1000))
}
