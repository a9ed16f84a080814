// SPDX-License-Identifier: MIT OR Apache-2.0
//! One cell of a scenario, from its start to its end.

use scenario::Cell;
use units::clock::{Span, Time};

use crate::build::{self, Built, Refusal};
use crate::network::{ConfigError, Counts, Network, TrafficConfig};
use crate::observe::StreamSample;
use crate::qdisc::Qdisc;
use crate::record::Recorder;
use crate::stops::Stops;

/// Steps in which progress is told.
const STEPS: u64 = 100;

/// Why a cell was not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Something in it is not modelled.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It is no network.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A class cannot become what it is told to.
    #[error("the change of class {minor:x} at {at}: {error}")]
    Change {
        /// When.
        at: Time,
        /// Minor number.
        minor: u32,
        /// What the core says.
        error: pace::Error,
    },
}

/// What a cell came to.
#[derive(Debug)]
pub struct Ran {
    /// Its records.
    pub recorder: Recorder,
    /// By flow.
    pub flows: Vec<FlowReport>,
    /// Packets and frames.
    pub counts: Counts,
    /// What was not modelled.
    pub notes: Vec<String>,
}

/// What the ends of a flow know themselves.
#[derive(Clone, Copy, Debug)]
pub struct FlowReport {
    /// Packets that queues refused or lost before they came to a wire.
    pub refused: u64,
    /// Of TCP.
    pub stream: Option<StreamReport>,
}

/// A TCP connection at its end.
#[derive(Clone, Copy, Debug)]
pub struct StreamReport {
    /// Its sender.
    pub sender: StreamSample,
    /// Payload that its receiver has in order.
    pub received_bytes: u64,
    /// From the begin of the handshake until all that was to be sent was
    /// acknowledged; `None`: that was endless, or not reached.
    pub transfer: Option<Span>,
    /// How long it stood all but still.
    pub stops: Stops,
}

/// Runs a cell. `details`: the first bytes of frames are kept where the scenario
/// says so, and the variables of sampled senders. `progress` is told the share that is done, 0 to 1.
///
/// # Errors
/// See [`RunError`]; nothing has been run then, but for a change of a class.
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
        // The last step is the end, whatever the division left over.
        let until = match step {
            STEPS => end,
            _ => Time::from_ps(end.as_ps() / STEPS * step),
        };
        while let Some(change) = changes.next_if(|change| change.at <= until) {
            network.run(change.at, &mut recorder);
            let Some(Qdisc::Psp(psp)) = network.qdisc(change.device) else {
                continue;
            };
            psp.change(change.minor, change.kind)
                .map_err(|error| RunError::Change {
                    at: change.at,
                    minor: change.minor,
                    error,
                })?;
            network.ask(change.device, &mut recorder);
        }
        network.run(until, &mut recorder);
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
