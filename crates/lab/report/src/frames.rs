// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single frames of a few cells, taken from a closeup that is fine enough.

use metrics::curves::{CloseupCurves, Curves, FlowCurves};
use units::ethernet::{HEADER_BYTES, wire_bytes};

use crate::side_by_side::SideBySide;

/// Least number of a closeup's intervals that a full frame must take, if single frames are to be
/// distinguished.
const PER_FRAME: f64 = 4.0;

/// When each flow of each cell had the wire.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    /// Begin of the closeup, seconds from t = 0.
    pub from_s: f64,
    /// Length of one interval, seconds.
    pub interval_s: f64,
    /// How many intervals there are.
    pub intervals: usize,
    /// Rate of the line, bytes in one interval.
    pub line_bytes: f64,
    /// Link-layer bytes in each interval, by flow and then by cell.
    pub bytes: Vec<Vec<&'a [u64]>>,
}

impl<'a> Frames<'a> {
    /// Returns the frames of a comparison; `None` unless every cell has the same closeup of frames.
    pub fn of(compared: &SideBySide<'_>, curves: &[Option<&'a Curves>]) -> Option<Self> {
        let cells: Vec<_> = curves
            .iter()
            .map(|curves| Some(((*curves)?, closeup_of_frames((*curves)?)?)))
            .collect::<Option<_>>()?;
        let (first_curves, first) = *cells.first()?;
        let is_same = |c: &CloseupCurves| {
            c.from_s == first.from_s && c.interval_s == first.interval_s && c.name == first.name
        };
        if cells.len() != compared.cells.len() || !cells.iter().all(|(_, c)| is_same(c)) {
            return None;
        }
        let of_flow = |name: &str| -> Option<Vec<&'a [u64]>> {
            let of_cell = |(curves, closeup): &(&'a Curves, &'a CloseupCurves)| {
                let index = curves.flows.iter().position(|f| f.name == name)?;
                closeup.bytes.get(index).map(Vec::as_slice)
            };
            cells.iter().map(of_cell).collect()
        };
        let lines = first_curves.flows.iter().map(|f| f.line_bps);
        Some(Self {
            from_s: first.from_s,
            interval_s: first.interval_s,
            intervals: first.bytes.iter().map(Vec::len).max()?,
            line_bytes: lines.max()? as f64 / 8.0 * first.interval_s,
            bytes: compared
                .flows
                .iter()
                .map(|f| of_flow(f.name))
                .collect::<Option<_>>()?,
        })
    }

    /// Returns the length of the closeup, seconds.
    pub fn length_s(&self) -> f64 {
        self.intervals as f64 * self.interval_s
    }
}

/// Returns whether single frames of a flow can be distinguished.
fn shows_frames(closeup: &CloseupCurves, flow: &FlowCurves) -> bool {
    let bytes = wire_bytes(flow.mtu.saturating_add(HEADER_BYTES));
    let frame_s = f64::from(bytes) * 8.0 / (flow.line_bps as f64).max(1.0);
    closeup.interval_s * PER_FRAME <= frame_s
}

/// Returns the first closeup of a cell in which single frames can be distinguished.
fn closeup_of_frames(curves: &Curves) -> Option<&CloseupCurves> {
    let is_fine = |c: &&CloseupCurves| curves.flows.iter().all(|f| shows_frames(c, f));
    curves.closeups.iter().find(is_fine)
}

/// Returns whether a closeup's frames are drawn one by one, instead of its rates.
pub fn is_of_frames(curves: &Curves, closeup: &CloseupCurves) -> bool {
    closeup_of_frames(curves).is_some_and(|c| c.name == closeup.name)
}

/// Returns the stretches in which a flow has the wire without a pause: first interval, and the one
/// after the last.
pub fn stretches(bytes: &[u64]) -> Vec<(usize, usize)> {
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for (i, _) in bytes.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
        match stretches.last_mut() {
            Some(last) if last.1 == i => last.1 = i + 1,
            _ => stretches.push((i, i + 1)),
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_back_to_back_are_one_stretch() {
        let found = stretches(&[0, 5, 5, 0, 0, 1, 0, 7]);
        assert_eq!(found, [(1, 3), (5, 6), (7, 8)]);
        assert!(stretches(&[]).is_empty());
    }

    #[test]
    fn short_intervals_alone_show_frames() {
        let flow = FlowCurves {
            mtu: 1500,
            line_bps: 1_000_000_000,
            ..FlowCurves::default()
        };
        let closeup = |interval_s| CloseupCurves {
            interval_s,
            ..CloseupCurves::default()
        };
        assert!(shows_frames(&closeup(1e-6), &flow));
        assert!(!shows_frames(&closeup(5e-6), &flow));
    }
}
