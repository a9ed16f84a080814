// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts stalls by cause and side. No label names a connection, so the number of series is bounded
//! by that of causes, however many connections a host has.

use std::collections::BTreeMap;

use serde::Serialize;
use stall::{Cause, Side, Stall};

use crate::families::{Family, Kind, Number, Sample};

/// Stalls of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    stalls: u64,
    ns: u64,
}

/// The stalls that were seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalls {
    by_cause: BTreeMap<(Cause, Side), Counted>,
    /// Connections that were seen.
    pub connections: u64,
    /// Records that were lost before they could be judged.
    pub lost_records: u64,
    /// Whether stalls are counted still.
    pub is_watching: bool,
}

impl Default for Stalls {
    fn default() -> Self {
        // Each cause has a series from the beginning, so that its first stall is an increase.
        let all = Cause::ALL.iter().map(|cause| (*cause, cause.side()));
        Self {
            by_cause: all.map(|key| (key, Counted::default())).collect(),
            connections: 0,
            lost_records: 0,
            is_watching: true,
        }
    }
}

impl Stalls {
    /// Counts a stall.
    pub fn add(&mut self, stall: &Stall) {
        let counted = self.by_cause.entry((stall.cause, stall.side)).or_default();
        counted.stalls += stall.count;
        counted.ns = counted.ns.saturating_add(stall.duration_ns);
    }

    /// Returns the counters as metrics.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        let family = |name: &str, help: &str, unit, kind, samples| Family {
            name: name.to_owned(),
            help: help.to_owned(),
            unit,
            kind,
            samples,
        };
        let one = |number| {
            vec![Sample {
                labels: vec![],
                number: Number::Whole(number),
            }]
        };
        let by_cause = |number: fn(&Counted) -> Number| -> Vec<Sample> {
            let of = |((cause, side), counted): (&(Cause, Side), &Counted)| Sample {
                labels: vec![("cause", word(cause)), ("side", word(side))],
                number: number(counted),
            };
            self.by_cause.iter().map(of).collect()
        };
        vec![
            family(
                "psp_stalls",
                "Stalls of this host's TCP senders, by cause: docs/use/stalls.md.",
                None,
                Kind::Counter,
                by_cause(|counted| Number::Whole(counted.stalls)),
            ),
            family(
                "psp_stalled",
                "Time that transfers stalled for, by cause.",
                Some("seconds"),
                Kind::Counter,
                by_cause(|counted| Number::Seconds(counted.ns as f64 / 1e9)),
            ),
            family(
                "psp_stalls_connections",
                "Connections that were watched for stalls.",
                None,
                Kind::Counter,
                one(self.connections),
            ),
            family(
                "psp_stalls_lost_records",
                "Records of senders that were lost before they could be judged.",
                None,
                Kind::Counter,
                one(self.lost_records),
            ),
            family(
                "psp_stalls_watching",
                "Whether stalls are counted: 0 after an error.",
                None,
                Kind::Gauge,
                one(self.is_watching.into()),
            ),
        ]
    }
}

/// The word that JSON has for a cause or a side, too.
fn word(of: &impl Serialize) -> String {
    match serde_json::to_value(of) {
        Ok(serde_json::Value::String(word)) => word,
        // Both are words.
        _ => String::new(),
    }
}
