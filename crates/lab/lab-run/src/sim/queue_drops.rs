// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adds to a flow's `dropped` what queues dropped of it for packets that came later. Such packets
//! never reached a wire, so they are in no timeline.

use metrics::analyse::{CellAnalysis, bounds};
use metrics::flow::WIRE;
use scenario::Cell;
use units::clock::{Span, Time};

/// Adds the drops at the instants `displaced`, by flow, to the windows that they are in, and
/// judges the bounds again.
pub fn add(cell: &Cell, displaced: &[Vec<Time>], analysis: &mut CellAnalysis) {
    for (window, result) in cell.windows.iter().zip(&mut analysis.windows) {
        let at = |ns| Time::START + Span::from_ns(ns);
        let span = at(window.from_ns)..at(window.to_ns);
        for (flow, times) in cell.flows.iter().zip(displaced) {
            let drops = times.iter().filter(|time| span.contains(time)).count() as u64;
            let counted = [flow.name.as_str(), WIRE];
            let results = result.flows.iter_mut();
            for of in results.filter(|of| counted.contains(&of.name.as_str())) {
                of.metrics.dropped += drops;
            }
        }
    }
    analysis.bounds = bounds(cell, &analysis.windows);
}
