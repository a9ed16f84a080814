// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the curves of flows and directions over time that a report draws.

use capture::record::Kind;
use indexmap::IndexMap;
use scenario::Closeup;
use serde::{Deserialize, Serialize};
use units::ethernet::HEADER_BYTES;

use crate::bandwidth::Bandwidth;
use crate::burstiness::{Average, Bottleneck};
use crate::gaps::{Bin, Distribution};
use crate::measure::{End, Placed, Span, seconds};
use crate::tcp::TcpCurves;

/// A cell over time, as a report draws it. It is kept as `curves.json` in the cell's folder,
/// so that a report can be made again from the folder alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curves {
    /// Length of one interval.
    pub interval_s: f64,
    /// Length of the cell.
    pub duration_s: f64,
    /// Name of the window over which `queue_bytes` is computed.
    pub queue_window: String,
    /// Flows in the order of the scenario.
    pub flows: Vec<FlowCurves>,
    /// Data and gap frames by direction, `<cable>.<end>`.
    pub wire: IndexMap<String, WireCurves>,
    /// Spans of time in finer intervals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closeups: Vec<CloseupCurves>,
}

/// A span of time in finer intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloseupCurves {
    /// Name of the closeup.
    pub name: String,
    /// Begin, seconds from t = 0.
    pub from_s: f64,
    /// Length of one interval.
    pub interval_s: f64,
    /// Number of intervals over which a mean is drawn too.
    pub mean_of: Option<usize>,
    /// Link-layer bytes in each interval, by flow in the order of `flows`.
    pub bytes: Vec<Vec<u64>>,
}

/// One flow over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowCurves {
    /// Name of the flow.
    pub name: String,
    /// Rate that the flow should achieve, if the scenario sets one.
    pub target_bps: Option<f64>,
    /// Begin and end of the time in which it is meant to send, seconds from t = 0.
    pub active_s: (f64, f64),
    /// Line rate of the direction in which it is measured.
    pub line_bps: u64,
    /// MTU of the cable; if that is not known, the flow's largest IP packet.
    pub mtu: u32,
    /// Link-layer bytes in each interval.
    pub bytes: Vec<u64>,
    /// Begin and end of the time that `queue_bytes` covers, seconds from t = 0.
    pub queue_s: (f64, f64),
    /// Largest queue of the virtual bottleneck in each interval, bytes. It covers one window,
    /// so that its largest value is that window's burstiness.
    pub queue_bytes: Vec<f64>,
    /// Histogram of the gaps, start to start.
    pub gaps: Vec<Bin>,
    /// Histogram of the waits from the sender's system call on, if they are known, in microseconds:
    /// here a bin has them in the place of byte times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Bin>,
    /// Samples of the sender's state, for a sampled TCP flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpCurves>,
}

/// One direction over time.
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

/// The intervals of curves.
#[derive(Clone, Copy)]
struct Axis {
    from_ps: u64,
    to_ps: u64,
    interval_ps: u64,
}

impl Axis {
    fn bins(self, rate_bps: u64) -> Option<Bandwidth> {
        Bandwidth::new(self.from_ps, self.to_ps, self.interval_ps, rate_bps)
    }

    fn index(self, at_ps: u64) -> Option<usize> {
        usize::try_from(at_ps.checked_sub(self.from_ps)? / self.interval_ps).ok()
    }
}

/// The window over which the queue is drawn.
pub(crate) struct QueueWindow<'a> {
    pub(crate) name: &'a str,
    pub(crate) from_ps: u64,
    pub(crate) to_ps: u64,
}

/// Computes the curves of a span; `None` if it has no interval, or millions.
pub(crate) fn draw(
    span: Span,
    interval_ps: u64,
    ends: &[End<'_>],
    placed: &[Placed<'_>],
    queue: &QueueWindow<'_>,
) -> Option<Curves> {
    let axis = Axis {
        from_ps: span.from_ps,
        to_ps: span.to_ps,
        interval_ps,
    };
    let mut curves = Curves {
        interval_s: seconds(interval_ps),
        duration_s: seconds(span.to_ps.saturating_sub(span.from_ps)),
        queue_window: queue.name.to_owned(),
        ..Curves::default()
    };
    for p in placed {
        curves.flows.push(flow_curves(axis, p, queue)?);
    }
    for e in ends {
        let mut data = axis.bins(e.rate_bps)?;
        let mut gaps = data.clone();
        for r in e.records {
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

/// Computes every flow's bytes in the intervals of a closeup; `None` if it has no interval, or
/// millions.
pub(crate) fn closeup(
    closeup: &Closeup,
    zero_ps: u64,
    placed: &[Placed<'_>],
) -> Option<CloseupCurves> {
    let at = |ns: u64| zero_ps.saturating_add(ns.saturating_mul(1000));
    let axis = Axis {
        from_ps: at(closeup.from_ns),
        to_ps: at(closeup.to_ns),
        interval_ps: closeup.interval_ns.saturating_mul(1000),
    };
    let bytes = |p: &Placed<'_>| {
        let mut bins = axis.bins(p.end.rate_bps)?;
        for r in p.records() {
            bins.push(r.start_ps, r.frame_bytes, r.wire_bytes);
        }
        Some(bins.into_bytes())
    };
    let mean_of = |ns: u64| usize::try_from(ns / closeup.interval_ns.max(1)).ok();
    Some(CloseupCurves {
        name: closeup.name.clone(),
        from_s: seconds(axis.from_ps.saturating_sub(zero_ps)),
        interval_s: seconds(axis.interval_ps),
        mean_of: closeup.mean_ns.and_then(mean_of),
        bytes: placed.iter().map(bytes).collect::<Option<_>>()?,
    })
}

fn flow_curves(axis: Axis, p: &Placed<'_>, queue: &QueueWindow<'_>) -> Option<FlowCurves> {
    let mut bandwidth = axis.bins(p.end.rate_bps)?;
    let mut gaps = Distribution::default();
    let (mut last_ps, mut largest) = (None, 0);
    for r in p.records() {
        bandwidth.push(r.start_ps, r.frame_bytes, r.wire_bytes);
        largest = largest.max(r.frame_bytes);
        if let Some(last_ps) = last_ps.replace(r.start_ps) {
            gaps.push(r.start_ps - last_ps);
        }
    }
    let bytes = bandwidth.into_bytes();
    let (from_ps, to_ps) = (
        queue.from_ps.max(p.active_ps.0),
        queue.to_ps.min(p.active_ps.1),
    );
    let seconds_at = |at_ps: u64| seconds(at_ps.saturating_sub(axis.from_ps));
    Some(FlowCurves {
        name: p.name.clone(),
        // A float is exact: rates stay below 2^53.
        target_bps: p.target.map(|t| t.rate_bps as f64),
        active_s: (seconds_at(p.active_ps.0), seconds_at(p.active_ps.1)),
        line_bps: p.end.rate_bps,
        mtu: if p.end.mtu > 0 {
            p.end.mtu
        } else {
            largest.saturating_sub(HEADER_BYTES)
        },
        queue_s: (seconds_at(from_ps), seconds_at(to_ps)),
        queue_bytes: queue_curve(axis, p, (from_ps, to_ps), bytes.len()),
        bytes,
        gaps: gaps.histogram(p.end.rate_bps),
        waits: Vec::new(),
        tcp: None,
    })
}

/// Returns the largest queue in each interval, over the frames that start in the span.
fn queue_curve(
    axis: Axis,
    p: &Placed<'_>,
    (from_ps, to_ps): (u64, u64),
    intervals: usize,
) -> Vec<f64> {
    let inside = || {
        p.records()
            .filter(|r| (from_ps..to_ps).contains(&r.start_ps))
    };
    let mut average = Average::default();
    inside().for_each(|r| average.push(r.start_ps, r.frame_bytes));
    let mut curve = vec![0.0; intervals];
    let Some(rate) = average.rate() else {
        return curve;
    };
    let mut bottleneck = Bottleneck::new(rate);
    for r in inside() {
        let queue = bottleneck.push(r.start_ps, r.frame_bytes);
        if let Some(slot) = axis.index(r.start_ps).and_then(|i| curve.get_mut(i)) {
            *slot = queue.max(*slot);
        }
    }
    curve
}
