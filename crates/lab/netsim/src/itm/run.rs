// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one cell of hosts on segments from start to end.

use scenario::Cell;
use scenario::isochronous::Isochronous;
use units::clock::{Span, Time};

use super::{ConfigError, Network, NodeCounts, StreamMeasure};
use crate::build;
use crate::segment::Counts;

/// Number of steps into which a run is divided to report progress.
const STEPS: u64 = 100;

/// The results of one or more runs of a cell.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Number of runs.
    pub runs: u64,
    /// Measurements, by stream.
    pub streams: Vec<StreamMeasure>,
    /// Counters of the nodes, by host.
    pub nodes: Vec<NodeCounts>,
    /// Counters, by segment.
    pub segments: Vec<Counts>,
}

impl Ran {
    /// Adds the results of other runs of the same cell.
    pub fn join(&mut self, other: &Self) {
        self.runs += other.runs;
        for (own, others) in self.streams.iter_mut().zip(&other.streams) {
            own.join(others);
        }
        for (own, others) in self.nodes.iter_mut().zip(&other.nodes) {
            own.join(others);
        }
        for (own, others) in self.segments.iter_mut().zip(&other.segments) {
            own.join(others);
        }
    }
}

/// Runs a cell once. `progress` is called with the share that is done, 0 to 1.
///
/// # Errors
/// Returns an error when the cell's parts do not fit together.
pub fn run_cell(
    cell: &Cell,
    of: &Isochronous,
    seed: u64,
    progress: &mut dyn FnMut(f64),
) -> Result<Ran, ConfigError> {
    let mut network = Network::new(build::isochronous::network(cell, of, seed))?;
    let end = Time::START + Span::from_ns(cell.duration_ns.saturating_add(cell.settle_ns));
    for step in 1..=STEPS {
        // The last step runs to the end exactly, whatever remainder the division
        // left.
        let until = match step {
            STEPS => end,
            _ => Time::from_ps(end.as_ps() / STEPS * step),
        };
        network.run(until);
        #[allow(clippy::cast_precision_loss)] // at most STEPS
        progress(step as f64 / STEPS as f64);
    }
    let streams = (0..of.streams.len()).filter_map(|n| network.stream(n).cloned());
    Ok(Ran {
        runs: 1,
        streams: streams.collect(),
        nodes: (0..cell.hosts.len())
            .filter_map(|n| network.node(n))
            .collect(),
        segments: (0..of.segments.len())
            .filter_map(|n| network.segment(n))
            .collect(),
    })
}
