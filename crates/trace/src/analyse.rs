// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the timelines of a cell's cables to the `windows` of its result, and
//! to the curves a report draws.

use std::collections::BTreeMap;
use std::net::IpAddr;

use indexmap::IndexMap;
use scenario::result::{FlowResult, WindowResult, WireMetrics};
use serde::{Deserialize, Serialize};

use crate::bandwidth::Bandwidth;
use crate::burstiness::{Average, Bottleneck};
use crate::gaps::{Bin, Distribution};
use crate::metrics::{Frame, Target, flow_metrics};
use crate::record::duration_ps;
use crate::{FlowKey, FlowTable, Kind, PS_PER_S, Proto, Record, thousandths};

/// Name of the flow that stands for all data frames of an end together.
pub const WIRE: &str = "wire";

/// What one end of a cable sent.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// `<cable>.<end>`, as in `wire.a`.
    pub name: &'a str,
    /// Line rate.
    pub rate_bps: u64,
    /// Of the device.
    pub mtu: u32,
    /// In order of departure.
    pub records: &'a [Record],
    /// What [`Record::flow`] means.
    pub flows: &'a FlowTable,
}

/// Which frames belong to a flow of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowMatch {
    /// Protocol.
    pub proto: Proto,
    /// Receiver.
    pub dst: IpAddr,
    /// Receiver's port.
    pub dport: u16,
    /// Sender, if it matters.
    pub src: Option<IpAddr>,
}

impl FlowMatch {
    fn is(&self, key: FlowKey) -> bool {
        match key {
            FlowKey::Ports {
                proto,
                src,
                dst,
                dport,
                ..
            } => {
                proto == self.proto
                    && dst == self.dst
                    && dport == self.dport
                    && self.src.is_none_or(|s| s == src)
            }
            FlowKey::EtherType(_) => false,
        }
    }
}

/// A flow of the scenario.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Its frames. Of several TCP connections that match, the one with the
    /// most bytes is the flow: a measuring program may keep another one to
    /// the same port, for control. Of UDP all are.
    pub matches: FlowMatch,
    /// The end that sends it, `<cable>.<end>`.
    pub end: String,
    /// What it should achieve.
    pub target: Option<Target>,
    /// When it is meant to send, ps from t = 0: windows are cut to it.
    pub active_ps: (u64, u64),
}

/// A window of the scenario, ps from t = 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its name.
    pub name: String,
    /// Begin.
    pub from_ps: u64,
    /// End.
    pub to_ps: u64,
}

/// One cell, measured.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'a> {
    /// The instant t = 0 on the timelines' clock, ps.
    pub zero_ps: u64,
    /// Duration of the cell, ps: what the curves span.
    pub duration_ps: u64,
    /// Interval of the curves, ps: see [`crate::bandwidth::even_interval_ps`].
    pub interval_ps: u64,
    /// Both ends of all cables.
    pub ends: &'a [End<'a>],
    /// In the order of the scenario.
    pub flows: &'a [Flow],
    /// In the order of the scenario.
    pub windows: &'a [Window],
}

/// Why a cell cannot be analysed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnalyseError {
    /// A flow names an end that is not there.
    #[error("flow {flow}: no end {end:?} among {known}")]
    NoEnd {
        /// The flow.
        flow: String,
        /// What it names.
        end: String,
        /// What there is.
        known: String,
    },
    /// The curves would have no interval, or millions.
    #[error("an interval of {interval_ps} ps does not divide {duration_ps} ps into a curve")]
    Interval {
        /// Asked for.
        interval_ps: u64,
        /// Of the cell.
        duration_ps: u64,
    },
}

/// What [`analyse_cell`] finds.
#[derive(Clone, Debug, PartialEq)]
pub struct CellAnalysis {
    /// For `result.json`.
    pub windows: Vec<WindowResult>,
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

/// Measures a cell: every flow in every window, at the end that sends it, and
/// every end. An entry named [`WIRE`] in each window's flows stands for all
/// data frames of the first flow's end together; where flows start from other
/// ends too, `wire@<cable>.<end>` stands for those.
///
/// # Errors
/// When a flow names an end that is not given, or the curves have no interval.
pub fn analyse_cell(cell: &Cell<'_>) -> Result<CellAnalysis, AnalyseError> {
    let ends: Vec<_> = cell.ends.iter().map(IndexedEnd::new).collect();
    let mut placed = Vec::with_capacity(cell.flows.len());
    for flow in cell.flows {
        let end = ends.iter().find(|e| e.end.name == flow.end);
        let end = end.ok_or_else(|| AnalyseError::NoEnd {
            flow: flow.name.clone(),
            end: flow.end.clone(),
            known: ends
                .iter()
                .map(|e| e.end.name)
                .collect::<Vec<_>>()
                .join(", "),
        })?;
        placed.push(Placed {
            flow,
            end,
            records: end.of(&flow.matches),
        });
    }
    let windows = cell
        .windows
        .iter()
        .map(|w| window(cell, &ends, &placed, w))
        .collect();
    let curves = curves(cell, &ends, &placed).ok_or(AnalyseError::Interval {
        interval_ps: cell.interval_ps,
        duration_ps: cell.duration_ps,
    })?;
    Ok(CellAnalysis { windows, curves })
}

/// An end, with its data frames by flow.
struct IndexedEnd<'a> {
    end: &'a End<'a>,
    by_flow: BTreeMap<u32, Vec<u32>>,
}

impl<'a> IndexedEnd<'a> {
    fn new(end: &'a End<'a>) -> Self {
        let mut by_flow: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (i, record) in (0u32..).zip(end.records) {
            if record.kind == Kind::Data {
                by_flow.entry(record.flow).or_default().push(i);
            }
        }
        Self { end, by_flow }
    }

    fn bytes(&self, index: u32) -> u64 {
        let records = self.by_flow.get(&index).map_or(&[][..], Vec::as_slice);
        records
            .iter()
            .map(|&i| u64::from(self.end.records[i as usize].frame_bytes))
            .sum()
    }

    /// The positions of a flow's records.
    fn of(&self, matches: &FlowMatch) -> Vec<u32> {
        let mut found: Vec<u32> = self
            .end
            .flows
            .iter()
            .filter(|(_, key)| matches.is(*key))
            .map(|(i, _)| i)
            .collect();
        if matches.proto == Proto::Tcp {
            // The first of those with the most bytes.
            let most = found.iter().copied().rev().max_by_key(|&i| self.bytes(i));
            found = most.into_iter().collect();
        }
        let mut records: Vec<u32> = found
            .iter()
            .filter_map(|i| self.by_flow.get(i))
            .flatten()
            .copied()
            .collect();
        records.sort_unstable();
        records
    }
}

/// A flow where it is measured.
struct Placed<'a> {
    flow: &'a Flow,
    end: &'a IndexedEnd<'a>,
    records: Vec<u32>,
}

impl Placed<'_> {
    fn records(&self) -> impl Iterator<Item = &Record> + Clone {
        self.records
            .iter()
            .map(|&i| &self.end.end.records[i as usize])
    }
}

fn seconds(ps: u64) -> f64 {
    // A picosecond of a cell of hours still has its place in 53 bits.
    #[allow(clippy::cast_precision_loss)]
    let seconds = ps as f64 / PS_PER_S as f64;
    seconds
}

fn window(
    cell: &Cell<'_>,
    ends: &[IndexedEnd<'_>],
    placed: &[Placed<'_>],
    w: &Window,
) -> WindowResult {
    let (from_ps, to_ps) = (
        cell.zero_ps.saturating_add(w.from_ps),
        cell.zero_ps.saturating_add(w.to_ps),
    );
    let mut flows: Vec<_> = placed
        .iter()
        .map(|p| {
            let (begin, end) = p.flow.active_ps;
            let frame = Frame {
                from_ps: from_ps.max(cell.zero_ps.saturating_add(begin)),
                to_ps: to_ps.min(cell.zero_ps.saturating_add(end)),
                rate_bps: p.end.end.rate_bps,
                mtu: p.end.end.mtu,
                target: p.flow.target,
            };
            FlowResult {
                name: p.flow.name.clone(),
                metrics: flow_metrics(p.records(), &frame),
            }
        })
        .collect();
    let mut seen: Vec<&str> = Vec::new();
    for p in placed {
        let end = p.end.end;
        if seen.contains(&end.name) {
            continue;
        }
        let name = if seen.is_empty() {
            WIRE.to_owned()
        } else {
            format!("{WIRE}@{}", end.name)
        };
        seen.push(end.name);
        let frame = Frame {
            from_ps,
            to_ps,
            rate_bps: end.rate_bps,
            mtu: end.mtu,
            target: None,
        };
        flows.push(FlowResult {
            name,
            metrics: flow_metrics(end.records.iter(), &frame),
        });
    }
    let wire = ends
        .iter()
        .map(|e| (e.end.name.to_owned(), wire(e.end, from_ps, to_ps)))
        .collect();
    WindowResult {
        name: w.name.clone(),
        from_s: seconds(w.from_ps),
        to_s: seconds(w.to_ps),
        wire,
        flows,
    }
}

/// How busy an end was: every frame counts with the part of its time on the
/// wire that lies in the window, everything else by its start.
fn wire(end: &End<'_>, from_ps: u64, to_ps: u64) -> WireMetrics {
    let mut m = WireMetrics {
        rate_bps: end.rate_bps,
        ..WireMetrics::default()
    };
    let mut busy_ps: u128 = 0;
    for r in end.records {
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
    let window_ps = to_ps.saturating_sub(from_ps);
    if window_ps > 0 {
        // To a millionth.
        m.utilisation =
            thousandths(busy_ps.min(window_ps.into()) * 1000, window_ps.into()) / 1000.0;
    }
    m
}

fn curves(cell: &Cell<'_>, ends: &[IndexedEnd<'_>], placed: &[Placed<'_>]) -> Option<Curves> {
    let mut curves = Curves {
        interval_s: seconds(cell.interval_ps),
        duration_s: seconds(cell.duration_ps),
        ..Curves::default()
    };
    for p in placed {
        curves.flows.push(flow_curves(cell, p)?);
    }
    for e in ends {
        let mut data = bins(cell, e.end.rate_bps)?;
        let mut gaps = data.clone();
        for r in e.end.records {
            if r.kind == Kind::Data {
                data.push(r.start_ps, r.frame_bytes, r.wire_bytes);
            } else {
                gaps.push(r.start_ps, r.wire_bytes, r.wire_bytes);
            }
        }
        curves.wire.insert(
            e.end.name.to_owned(),
            WireCurves {
                rate_bps: e.end.rate_bps,
                data_bytes: data.into_bytes(),
                gap_bytes: gaps.into_bytes(),
            },
        );
    }
    Some(curves)
}

fn bins(cell: &Cell<'_>, rate_bps: u64) -> Option<Bandwidth> {
    let to_ps = cell.zero_ps.saturating_add(cell.duration_ps);
    Bandwidth::new(cell.zero_ps, to_ps, cell.interval_ps, rate_bps)
}

fn flow_curves(cell: &Cell<'_>, p: &Placed<'_>) -> Option<FlowCurves> {
    let end = p.end.end;
    let mut bandwidth = bins(cell, end.rate_bps)?;
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
            let index = r
                .start_ps
                .checked_sub(cell.zero_ps)
                .map(|t| t / cell.interval_ps);
            let slot = index.and_then(|i| usize::try_from(i).ok());
            if let Some(slot) = slot.and_then(|i| queue_bytes.get_mut(i)) {
                *slot = queue.max(*slot);
            }
        }
    }
    #[allow(clippy::cast_precision_loss)]
    let target_bps = p.flow.target.map(|t| t.bps as f64);
    Some(FlowCurves {
        name: p.flow.name.clone(),
        target_bps,
        active_s: (seconds(p.flow.active_ps.0), seconds(p.flow.active_ps.1)),
        line_bps: end.rate_bps,
        bytes,
        queue_bytes,
        gaps: if end.rate_bps > 0 {
            gaps.histogram(end.rate_bps)
        } else {
            Vec::new()
        },
    })
}
