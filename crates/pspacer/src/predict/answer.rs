// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is predicted; as JSON, `docs/formats.md`, "Predictions".

use std::path::PathBuf;

use predict::bounds::{Bounds, RateLatency, TokenBucket};
use predict::classes::Classes;
use predict::distribution::delay_ns_max;
use predict::estimate::Estimate;
use predict::fit::Fit;
use serde::Serialize;

/// The whole of it.
#[derive(Serialize)]
pub struct Answer {
    pub format: &'static str,
    pub period_ns: u64,
    pub slot_ns: u64,
    pub hops: usize,
    pub round_trip: bool,
    pub stages: usize,
    pub betas: Vec<f64>,
    pub mean_periods: f64,
    pub distribution: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    pub bounds: Served,
}

/// Packets late by so many periods.
#[derive(Serialize)]
pub struct Row {
    pub delay_periods: usize,
    pub probability: f64,
    /// Longest delay of such a packet, if one that is not late is through within a
    /// period and slot.
    pub delay_ns_max: u64,
    /// Share of the packets in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
}

/// What the file holds.
#[derive(Serialize)]
pub struct Measured {
    pub file: String,
    #[serde(flatten)]
    pub classes: Classes,
}

/// Bounds, and what they are of.
#[derive(Serialize)]
pub struct Served {
    /// (stages + 1) x (period + slot).
    pub isochronous_ns: u64,
    pub stream: TokenBucket,
    pub servers: Vec<RateLatency>,
    /// Network calculus has nothing to say of no server.
    #[serde(flatten)]
    pub bounds: Option<Bounds>,
}

impl From<(&PathBuf, Classes)> for Measured {
    fn from((path, classes): (&PathBuf, Classes)) -> Self {
        let file = path.file_name().unwrap_or_default();
        Self {
            file: file.to_string_lossy().into_owned(),
            classes,
        }
    }
}

/// The distribution, with the shares that were measured.
pub fn rows(late: &[f64], turn_ns: u64, classes: Option<&Classes>) -> Vec<Row> {
    let share = |k: usize| {
        let classes = classes?;
        let count = classes.counts.get(k)?;
        let all = classes.packets().saturating_add(classes.beyond);
        Some(*count as f64 / all as f64)
    };
    let row = |(k, &probability): (usize, &f64)| Row {
        delay_periods: k,
        probability,
        delay_ns_max: delay_ns_max(k, turn_ns),
        measured: share(k),
    };
    late.iter().enumerate().map(row).collect()
}

impl Answer {
    /// Names the chain.
    pub fn title(&self) -> String {
        let routers = match self.hops {
            1 => "1 router".to_owned(),
            n => format!("{n} routers"),
        };
        let way = match self.round_trip {
            true => "there and back",
            false => "one way",
        };
        format!("Delay over {routers}, {way}")
    }
}
