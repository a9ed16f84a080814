// SPDX-License-Identifier: MIT OR Apache-2.0
//! The predictions and their JSON form (`docs/use/formats.md`, "Predictions").

use std::path::Path;

use serde::Serialize;

use crate::Error;
use crate::bounds::{Bounds, RateLatency, TokenBucket, bounds, isochronous_ns};
use crate::classes::Classes;
use crate::distribution::{Chain, delay_ns_max};
use crate::estimate::{self, Estimate};
use crate::fit::{self, Fit};

/// All predictions for one question.
#[derive(Serialize)]
pub struct Answer {
    /// Name and version of this format.
    pub format: &'static str,
    /// Period of the routers.
    pub period_ns: u64,
    /// Time between the RT-IP and ITM threads of a router.
    pub slot_ns: u64,
    /// Number of routers on the path in one direction.
    pub hops: usize,
    /// Whether the packet also returns over the same routers.
    pub round_trip: bool,
    /// Number of places at which a packet may miss its period.
    pub stages: usize,
    /// Probability of a missed period at each stage.
    pub betas: Vec<f64>,
    /// Mean lateness.
    pub mean_periods: f64,
    /// Shares of packets by lateness.
    pub distribution: Vec<Row>,
    /// Contents of the file of measured delays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// Estimate of beta from the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Test of whether the model agrees with the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    pub bounds: Served,
}

/// The packets that are late by one number of periods.
#[derive(Serialize)]
pub struct Row {
    pub delay_periods: usize,
    /// Share of the packets.
    pub probability: f64,
    /// Longest delay of such a packet, if a packet that is not late arrives within one period
    /// and slot.
    pub delay_ns_max: u64,
    /// Share of the packets in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
}

/// Contents of a file of measured delays.
#[derive(Serialize)]
pub struct Measured {
    /// Name of the file.
    pub file: String,
    /// Packets by lateness.
    #[serde(flatten)]
    pub classes: Classes,
}

/// Delay bounds, and the stream and service that they are for.
#[derive(Serialize)]
pub struct Served {
    /// (stages + 1) x (period + slot).
    pub isochronous_ns: u64,
    /// Arrival curve of the stream.
    pub stream: TokenBucket,
    /// Service curve of each stage.
    pub servers: Vec<RateLatency>,
    /// Bounds of network calculus; there are none without a server.
    #[serde(flatten)]
    pub bounds: Option<Bounds>,
}

/// The chain, stream and data to predict from.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Period of the routers.
    pub period_ns: u64,
    /// Time between the RT-IP and ITM threads of a router.
    pub slot_ns: u64,
    /// Number of routers on the path in one direction.
    pub hops: usize,
    /// Whether the packet also returns over the same routers.
    pub round_trip: bool,
    /// One value for all stages or one for each; empty: beta is estimated from the file.
    pub betas: &'a [f64],
    /// Confidence level of the estimate's interval.
    pub level: f64,
    /// Arrival curve of the stream.
    pub stream: TokenBucket,
    /// Service curve of each stage.
    pub servers: Vec<RateLatency>,
}

/// Returns the number of stages that a packet passes.
///
/// # Errors
/// If there are more stages than [`crate::distribution::MOST_STAGES`].
pub fn stages(hops: usize, round_trip: bool) -> Result<usize, Error> {
    // Any beta gives the same number of stages.
    Ok(chain(&[0.0], hops, round_trip)?.stages())
}

fn chain(betas: &[f64], hops: usize, round_trip: bool) -> Result<Chain, Error> {
    if round_trip {
        Chain::round_trip(betas, hops)
    } else {
        Chain::one_way(betas, hops)
    }
}

impl Question<'_> {
    /// Predicts from the given values of beta, or from measured delays.
    ///
    /// # Errors
    /// If a value is out of its range, or there is neither a beta nor a measurement.
    pub fn answer(self, measured: Option<Measured>) -> Result<Answer, Error> {
        let chain = |betas: &[f64]| chain(betas, self.hops, self.round_trip);
        let stages = stages(self.hops, self.round_trip)?;
        let classes = measured.as_ref().map(|measured| &measured.classes);
        let found = match classes {
            Some(classes) if stages > 0 => Some(estimate::beta(&classes.counts, self.level)?),
            _ => None,
        };
        let (chain, estimated) = match (self.betas, &found) {
            ([], Some(found)) => (chain(&[found.beta])?, 1),
            ([], None) => return Err(Error::Nothing { packets: 0, stages }),
            (betas, _) => (chain(betas)?, 0),
        };
        let late = chain.late();
        let fit = classes.map(|c| fit::chi_squared(c, &late, estimated));
        let bounds = match self.servers[..] {
            [] => None,
            _ => Some(bounds(self.stream, &self.servers)?),
        };
        let stage_ns = self.period_ns.saturating_add(self.slot_ns);
        Ok(Answer {
            format: "pspacer-predict-1",
            period_ns: self.period_ns,
            slot_ns: self.slot_ns,
            hops: self.hops,
            round_trip: self.round_trip,
            stages,
            mean_periods: chain.mean_periods(),
            betas: chain.betas().to_vec(),
            distribution: rows(&late, stage_ns, classes),
            measured,
            estimate: found,
            fit,
            bounds: Served {
                isochronous_ns: isochronous_ns(stages, self.period_ns, self.slot_ns),
                stream: self.stream,
                servers: self.servers,
                bounds,
            },
        })
    }
}

impl Measured {
    /// Joins the contents of a file with the file's name.
    pub fn new(path: &Path, classes: Classes) -> Self {
        let file = path.file_name().unwrap_or_default();
        Self {
            file: file.to_string_lossy().into_owned(),
            classes,
        }
    }
}

/// Returns the distribution with the measured shares.
fn rows(late: &[f64], stage_ns: u64, classes: Option<&Classes>) -> Vec<Row> {
    let share = |k: usize| {
        let classes = classes?;
        let count = classes.counts.get(k)?;
        let all = classes.packets().saturating_add(classes.beyond);
        Some(*count as f64 / all as f64)
    };
    let row = |(k, &probability): (usize, &f64)| Row {
        delay_periods: k,
        probability,
        delay_ns_max: delay_ns_max(k, stage_ns),
        measured: share(k),
    };
    late.iter().enumerate().map(row).collect()
}

impl Answer {
    /// Returns a title that describes the chain.
    pub fn title(&self) -> String {
        let routers = match self.hops {
            1 => "1 router".to_owned(),
            n => format!("{n} routers"),
        };
        let directions = if self.round_trip {
            "there and back"
        } else {
            "one way"
        };
        format!("Delay over {routers}, {directions}")
    }
}
