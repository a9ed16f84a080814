// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows and directions over time: what a report draws.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::Kind;
use crate::bandwidth::Bandwidth;
use crate::burstiness::{Average, Bottleneck};
use crate::gaps::{Bin, Distribution};
use crate::measure::{End, Placed, Span, seconds};
use crate::metrics::ETHERNET_HEADER_BYTES;

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
    /// MTU of its end; if that is not known, the flow's largest IP packet.
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

/// Draws a span in intervals; `None` if there are none, or millions.
pub(crate) fn draw(
    span: Span,
    interval_ps: u64,
    ends: &[End<'_>],
    placed: &[Placed<'_>],
) -> Option<Curves> {
    let axis = Axis {
        from_ps: span.from_ps,
        to_ps: span.to_ps,
        interval_ps,
    };
    let mut curves = Curves {
        interval_s: seconds(interval_ps),
        duration_s: seconds(span.to_ps.saturating_sub(span.from_ps)),
        ..Curves::default()
    };
    for p in placed {
        curves.flows.push(flow_curves(axis, p)?);
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

fn flow_curves(axis: Axis, p: &Placed<'_>) -> Option<FlowCurves> {
    let mut bandwidth = axis.bins(p.end.rate_bps)?;
    let mut gaps = Distribution::default();
    let mut average = Average::default();
    let (mut last_ps, mut largest) = (None, 0);
    for r in p.records() {
        bandwidth.push(r.start_ps, r.frame_bytes, r.wire_bytes);
        average.push(r.start_ps, r.frame_bytes);
        largest = largest.max(r.frame_bytes);
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
    let target_bps = p.target.map(|t| t.rate_bps as f64);
    Some(FlowCurves {
        name: p.name.clone(),
        target_bps,
        active_s: (
            seconds(p.active_ps.0.saturating_sub(axis.from_ps)),
            seconds(p.active_ps.1.saturating_sub(axis.from_ps)),
        ),
        line_bps: p.end.rate_bps,
        mtu: if p.end.mtu > 0 {
            p.end.mtu
        } else {
            largest.saturating_sub(ETHERNET_HEADER_BYTES)
        },
        bytes,
        queue_bytes,
        gaps: gaps.histogram(p.end.rate_bps),
    })
}
