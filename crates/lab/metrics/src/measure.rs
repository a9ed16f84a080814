// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures one window of some directions and their flows, for a scenario's cell
//! ([`crate::analyse`]) and for a single series ([`crate::survey`]).

use std::collections::BTreeMap;

use capture::flows::{FlowKey, FlowTable};
use capture::record::{Kind, Record};
use scenario::Target;
use scenario::result::{FlowMetrics, FlowResult, WindowResult, WireMetrics};
use units::rounding::thousandths;
use units::time::PS_PER_S;
use units::time::duration_ps;

use crate::flow::{Frame, WIRE, flow_metrics};
use crate::launch;
use crate::waits;

/// A span of time, ps, on a clock whose t = 0 is `zero_ps`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) zero_ps: u64,
    pub(crate) from_ps: u64,
    pub(crate) to_ps: u64,
}

/// A direction, and its data frames by flow.
pub(crate) struct End<'a> {
    pub(crate) name: String,
    pub(crate) rate_bps: u64,
    pub(crate) mtu: u32,
    pub(crate) records: &'a [Record],
    flows: &'a FlowTable,
    by_flow: BTreeMap<u32, Vec<u32>>,
    /// Timestamp of each record; empty if none is known.
    timestamps_ps: Vec<u64>,
}

impl<'a> End<'a> {
    pub(crate) fn new(
        name: String,
        rate_bps: u64,
        mtu: u32,
        records: &'a [Record],
        flows: &'a FlowTable,
    ) -> Self {
        let mut by_flow: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (i, record) in (0u32..).zip(records) {
            if record.kind == Kind::Data {
                by_flow.entry(record.flow).or_default().push(i);
            }
        }
        Self {
            name,
            rate_bps,
            mtu,
            records,
            flows,
            by_flow,
            timestamps_ps: Vec::new(),
        }
    }

    /// Adds the instants at which the sender handed the data frames over.
    pub(crate) fn timestamped(mut self, timestamps_ps: &[u64]) -> Self {
        self.timestamps_ps = waits::by_record(self.records, timestamps_ps);
        self
    }

    /// Returns the positions of a flow's records.
    pub(crate) fn of(&self, key: &FlowKey) -> Vec<u32> {
        let index = self.flows.find(key);
        index.map_or_else(Vec::new, |index| self.of_index(index))
    }

    /// Returns the positions of the records of the flow with this index.
    pub(crate) fn of_index(&self, index: u32) -> Vec<u32> {
        self.by_flow.get(&index).cloned().unwrap_or_default()
    }
}

/// What the timestamp is that a flow's datagrams hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timestamps {
    /// They hold none.
    None,
    /// The instant at which they were sent.
    Sent,
    /// Their launch time.
    Launch,
}

/// A flow at the direction in which it is measured.
pub(crate) struct Placed<'a> {
    pub(crate) name: String,
    pub(crate) target: Option<Target>,
    /// Begin and end of the time in which it is meant to send.
    pub(crate) active_ps: (u64, u64),
    pub(crate) end: &'a End<'a>,
    pub(crate) timestamps: Timestamps,
    pub(crate) positions: Vec<u32>,
}

impl Placed<'_> {
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> + Clone {
        self.positions
            .iter()
            .filter_map(|&i| self.end.records.get(i as usize))
    }

    /// Iterates over the flow's frames that hold such a timestamp, with the timestamp.
    pub(crate) fn timestamps(&self, of: Timestamps) -> impl Iterator<Item = (&Record, u64)> {
        let timestamps_ps = (self.timestamps == of).then_some(&self.end.timestamps_ps[..]);
        let of = move |&i: &u32| {
            let timestamp_ps = timestamps_ps?.get(i as usize)?;
            Some((self.end.records.get(i as usize)?, *timestamp_ps))
        };
        self.positions.iter().filter_map(of)
    }
}

pub(crate) fn seconds(ps: u64) -> f64 {
    // A float is exact enough: 53 bits hold a picosecond of a cell of hours.
    ps as f64 / PS_PER_S as f64
}

/// Measures a window: every flow over the part of the span in which it is meant to send, all
/// data frames together of the directions in which flows are measured, and every direction.
pub(crate) fn window(
    name: &str,
    span: Span,
    ends: &[End<'_>],
    placed: &[Placed<'_>],
) -> WindowResult {
    let of_flow = |p: &Placed<'_>| {
        let frame = Frame {
            from_ps: span.from_ps.max(p.active_ps.0),
            to_ps: span.to_ps.min(p.active_ps.1),
            rate_bps: p.end.rate_bps,
            mtu: p.end.mtu,
            target: p.target,
        };
        let mut metrics = flow_metrics(p.records(), &frame);
        let span_ps = (frame.from_ps, frame.to_ps);
        waits::measure(&mut metrics, p.timestamps(Timestamps::Sent), span_ps);
        launch::measure(&mut metrics, p.timestamps(Timestamps::Launch), span_ps);
        FlowResult {
            name: p.name.clone(),
            metrics,
            ..FlowResult::default()
        }
    };
    let mut flows: Vec<_> = placed.iter().map(of_flow).collect();
    let measured: Vec<&End<'_>> = ends
        .iter()
        .filter(|end| placed.iter().any(|p| std::ptr::eq(p.end, *end)))
        .collect();
    if let Some(metrics) = together(span, &measured) {
        flows.push(FlowResult {
            name: WIRE.to_owned(),
            metrics,
            ..FlowResult::default()
        });
    }
    WindowResult {
        name: name.to_owned(),
        from_s: seconds(span.from_ps.saturating_sub(span.zero_ps)),
        to_s: seconds(span.to_ps.saturating_sub(span.zero_ps)),
        wire: ends
            .iter()
            .map(|e| (e.name.clone(), wire(e, span.from_ps, span.to_ps)))
            .collect(),
        flows,
    }
}

/// Measures all data frames of some directions as if they were one flow.
fn together(span: Span, ends: &[&End<'_>]) -> Option<FlowMetrics> {
    let frame = Frame {
        from_ps: span.from_ps,
        to_ps: span.to_ps,
        rate_bps: ends.first()?.rate_bps,
        mtu: ends.iter().map(|e| e.mtu).max()?,
        target: None,
    };
    if let [only] = ends {
        return Some(flow_metrics(only.records.iter(), &frame));
    }
    let mut merged: Vec<&Record> = ends.iter().flat_map(|e| e.records).collect();
    merged.sort_by_key(|r| r.start_ps);
    Some(flow_metrics(merged.iter().copied(), &frame))
}

/// Measures how busy a direction was: every frame counts with the part of its time on the wire
/// that lies in the window. The other counters count frames that start in it.
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
    let window_ps = u128::from(to_ps.saturating_sub(from_ps));
    if window_ps > 0 {
        // Rounded to a millionth.
        m.utilisation = thousandths(busy_ps.min(window_ps) * 1000, window_ps) / 1000.0;
    }
    m
}
