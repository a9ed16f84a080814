// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts stalls by cause and side, and by cause and systemd unit. No label names a connection, so
//! the number of series is bounded by that of causes and units, however many connections a host has.

use std::collections::BTreeMap;

use serde::Serialize;
use stall::{Cause, Side, Stall};
use watch::names::Owner;

use crate::families::{Family, Kind, Number, Sample};

/// Units with series of their own: those that stalled first.
const UNITS_MOST: usize = 64;
/// The label of all other units. No unit is named so, because each has a suffix.
const OTHER: &str = "other";
/// The label of units that are named after a container: each start of one has another name.
const CONTAINER: &str = "container";
/// The label where the unit is not known.
const UNKNOWN: &str = "unknown";

/// Stalls of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    stalls: u64,
    ns: u64,
}

impl Counted {
    fn add(&mut self, stall: &Stall) {
        self.stalls += stall.count;
        self.ns = self.ns.saturating_add(stall.duration_ns);
    }
}

/// The stalls that were seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalls {
    by_cause: BTreeMap<(Cause, Side), Counted>,
    by_unit: BTreeMap<String, BTreeMap<Cause, Counted>>,
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
        let causes = Cause::ALL.iter().map(|cause| (*cause, Counted::default()));
        Self {
            by_cause: all.map(|key| (key, Counted::default())).collect(),
            by_unit: BTreeMap::from([(UNKNOWN.to_owned(), causes.collect())]),
            connections: 0,
            lost_records: 0,
            is_watching: true,
        }
    }
}

impl Stalls {
    /// Counts a stall of a connection of this owner.
    pub fn add(&mut self, stall: &Stall, owner: &Owner) {
        let by_cause = self.by_cause.entry((stall.cause, stall.side)).or_default();
        by_cause.add(stall);
        let unit = self.label(owner);
        let of_unit = self.by_unit.entry(unit.to_owned()).or_default();
        of_unit.entry(stall.cause).or_default().add(stall);
    }

    /// Returns the label of an owner's unit.
    fn label<'a>(&self, owner: &'a Owner) -> &'a str {
        let Some(unit) = owner.unit.as_deref() else {
            let has_container = owner.container.is_some();
            return if has_container { CONTAINER } else { UNKNOWN };
        };
        if owner.container.as_ref().is_some_and(|id| unit.contains(id)) {
            return CONTAINER;
        }
        let is_unit = |label: &&String| ![OTHER, CONTAINER, UNKNOWN].contains(&label.as_str());
        let is_full = self.by_unit.keys().filter(is_unit).count() >= UNITS_MOST;
        if is_full && !self.by_unit.contains_key(unit) {
            return OTHER;
        }
        unit
    }

    /// Returns the counters as metrics.
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
        let by_unit = |number: fn(&Counted) -> Number| -> Vec<Sample> {
            let all = self.by_unit.iter();
            let each = all.flat_map(|(unit, causes)| causes.iter().map(move |of| (unit, of)));
            let of = |(unit, (cause, counted)): (&String, (&Cause, &Counted))| Sample {
                labels: vec![("unit", unit.clone()), ("cause", word(cause))],
                number: number(counted),
            };
            each.map(of).collect()
        };
        let whole: fn(&Counted) -> Number = |counted| Number::Whole(counted.stalls);
        let seconds: fn(&Counted) -> Number = |counted| Number::Seconds(counted.ns as f64 / 1e9);
        vec![
            family(
                "psp_unit_stalls",
                "Stalls of this host's TCP senders, by systemd unit and cause.",
                None,
                Kind::Counter,
                by_unit(whole),
            ),
            family(
                "psp_unit_stalled",
                "Time that transfers stalled for, by systemd unit and cause.",
                Some("seconds"),
                Kind::Counter,
                by_unit(seconds),
            ),
            family(
                "psp_stalls",
                "Stalls of this host's TCP senders, by cause: docs/use/stalls.md.",
                None,
                Kind::Counter,
                by_cause(whole),
            ),
            family(
                "psp_stalled",
                "Time that transfers stalled for, by cause.",
                Some("seconds"),
                Kind::Counter,
                by_cause(seconds),
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
