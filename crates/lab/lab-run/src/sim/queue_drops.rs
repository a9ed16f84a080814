// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adds to a flow's `dropped` what queues dropped of it for packets that came later. Such packets
//! never reached a wire, so they are in no timeline.

use metrics::analyse::{CellAnalysis, bounds};
use metrics::flow::WIRE;
use scenario::Cell;

/// Adds the drops `displaced`, by window and flow, and judges the bounds again.
pub fn add(cell: &Cell, displaced: &[Vec<u64>], analysis: &mut CellAnalysis) {
    for (counts, result) in displaced.iter().zip(&mut analysis.windows) {
        for (flow, drops) in cell.flows.iter().zip(counts) {
            let counted = [flow.name.as_str(), WIRE];
            let results = result.flows.iter_mut();
            for of in results.filter(|of| counted.contains(&of.name.as_str())) {
                of.metrics.dropped += drops;
            }
        }
    }
    analysis.bounds = bounds(cell, &analysis.windows);
}
