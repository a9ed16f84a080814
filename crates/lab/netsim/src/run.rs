// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one cell of a scenario from start to end.

use scenario::Cell;
use units::clock::{Span, Time};

use crate::build::{self, Built, Refusal};
use crate::network::{ConfigError, Counts, Network, Standstill, TrafficConfig};
use crate::observe::StreamSample;
use crate::qdisc::Qdisc;
use crate::record::Recorder;
use crate::stops::Stops;

/// Number of steps into which a run is divided to report progress.
const STEPS: u64 = 100;

/// The reason why a cell was not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The cell asks for something that is not modelled.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The parts of the cell's network do not fit together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Simulated time stands still at a device.
    #[error("host `{host}`, device `{device}`: {error}")]
    Standstill {
        /// Name of the device's host.
        host: String,
        /// Name of the device.
        device: String,
        /// Instant, and number and queue of the device.
        error: Standstill,
    },
    /// A class cannot change to what the cell asks for.
    #[error("the change of class {minor:x} at {at}: {error}")]
    Change {
        /// Time of the change.
        at: Time,
        /// Minor number of the class.
        minor: u32,
        /// The error of the scheduler core.
        error: pace::Error,
    },
}

/// The results of a cell.
#[derive(Debug)]
pub struct Ran {
    /// The records of its frames and senders.
    pub recorder: Recorder,
    /// Reports of the flows' end points, by flow.
    pub flows: Vec<FlowReport>,
    /// Counters of packets and frames.
    pub counts: Counts,
    /// Remarks on what the cell asks for and the simulator does not model.
    pub notes: Vec<String>,
}

/// What the end points of a flow know about it.
#[derive(Clone, Copy, Debug)]
pub struct FlowReport {
    /// Packets that queues refused or lost before they reached a wire.
    pub refused: u64,
    /// The TCP connection; `None` if the flow is not TCP.
    pub stream: Option<StreamReport>,
}

/// A TCP connection at the end of the run.
#[derive(Clone, Copy, Debug)]
pub struct StreamReport {
    /// The sender's state.
    pub sender: StreamSample,
    /// Payload that its receiver has received in order, bytes.
    pub received_bytes: u64,
    /// Duration from the begin of the handshake until all data was acknowledged;
    /// `None`: the data was endless, or the run ended earlier.
    pub transfer: Option<Span>,
    /// How long the transfer stalled.
    pub stops: Stops,
}

/// Runs a cell. With `details`, the results include the first bytes of frames where
/// the scenario asks for them, and the variables of sampled senders. `progress` is
/// called with the share that is done, 0 to 1.
///
/// # Errors
/// See [`RunError`]. On error nothing has been run, except if a change of a class
/// failed, or simulated time stands still.
pub fn run_cell(
    cell: &Cell,
    seed: u64,
    details: bool,
    progress: &mut dyn FnMut(f64),
) -> Result<Ran, RunError> {
    let Built {
        network,
        changes,
        notes,
    } = build::build(cell, seed)?;
    let connected: Vec<Option<Time>> = network
        .flows
        .iter()
        .map(|flow| match &flow.traffic {
            TrafficConfig::Stream(stream) => Some(stream.connect),
            TrafficConfig::Datagrams(_) => None,
        })
        .collect();
    let mut network = Network::new(network)?;
    let mut recorder = Recorder::new(cell, details);
    let end = Time::START + Span::from_ns(cell.duration_ns.saturating_add(cell.settle_ns));
    let mut changes = changes.into_iter().peekable();
    for step in 1..=STEPS {
        // The last step runs to the end exactly, whatever remainder the division
        // left.
        let until = match step {
            STEPS => end,
            _ => Time::from_ps(end.as_ps() / STEPS * step),
        };
        while let Some(change) = changes.next_if(|change| change.at <= until) {
            let done = network.run(change.at, &mut recorder);
            done.map_err(|error| stands_still(cell, error))?;
            let Some(Qdisc::Psp(psp)) = network.qdisc(change.device) else {
                continue;
            };
            psp.change(change.minor, change.kind, change.at)
                .map_err(|error| RunError::Change {
                    at: change.at,
                    minor: change.minor,
                    error,
                })?;
            network.ask(change.device, &mut recorder);
        }
        let done = network.run(until, &mut recorder);
        done.map_err(|error| stands_still(cell, error))?;
        #[allow(clippy::cast_precision_loss)] // at most STEPS
        progress(step as f64 / STEPS as f64);
    }
    let report = |flow: usize| FlowReport {
        refused: recorder.refused.get(flow).copied().unwrap_or(0),
        stream: network.stream(flow).map(|(sender, finished)| StreamReport {
            sender,
            received_bytes: network.received_bytes(flow).unwrap_or(0),
            stops: recorder.stops.get(flow).copied().unwrap_or_default(),
            transfer: finished
                .zip(connected[flow])
                .map(|(end, begin)| end.since(begin)),
        }),
    };
    Ok(Ran {
        flows: (0..cell.flows.len()).map(report).collect(),
        counts: network.counts(),
        recorder,
        notes,
    })
}

/// Names the host and the device at which simulated time stands still.
fn stands_still(cell: &Cell, error: Standstill) -> RunError {
    let direction = Recorder::direction(error.device);
    let end = &cell.cables[direction.cable].ends[direction.end.index()];
    RunError::Standstill {
        host: cell.hosts[end.host].name.clone(),
        device: end.name.clone(),
        error,
    }
}
