// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes metrics out of the ports' statistics: one family for each row of the table, so that a
//! statistic which psp gains is exported without a change here.

use std::collections::BTreeSet;

use host_config::ClassNames;
use tcpsp::ports::{Port, PortClass};
use tcpsp::stats::{Metric, Shown, Stat, Stats, Total, Unit, Value};
use tcpsp::{Counters, Handle, Mode, Why};

/// Label of what is summed: see [`families`].
const OTHER: &str = "other";
/// Prefix of the keys of drops: their causes become the label `cause` of one family.
const DROP: &str = "drop_";

/// A metric with all its samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Its name without its unit and without `_total`.
    pub name: String,
    /// What it means, for a person.
    pub help: String,
    /// The unit that ends the name, if it has one.
    pub unit: Option<&'static str>,
    /// What its values are.
    pub kind: Kind,
    pub samples: Vec<Sample>,
}

/// What the values of a metric are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows; its name ends in `_total`.
    Counter,
    /// Any other number.
    Gauge,
    /// Counts by size.
    Histogram,
}

/// A value with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Names and values.
    pub labels: Vec<(&'static str, String)>,
    pub number: Number,
}

/// A value. Whole numbers stay whole: a double would round counters above 2^53.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    Whole(u64),
    /// A time, in seconds.
    Seconds(f64),
    /// Of a histogram: the count in each bucket. Bucket `i` ends at `2^i - 1`, the last one
    /// nowhere.
    Buckets(Vec<u64>),
}

/// Returns the metrics of ports. At most `most_classes` classes of all ports together have samples
/// of their own, in the order of the ports; of each port the others are summed as class `other`,
/// and `psp_exporter_classes_summed` says how many they are. A class that has one of the names has it
/// as label `name`, one that is in a group has the group's id as label `group`. A group counts what its
/// classes do: `other` counts neither a group beside them, nor the classes of a group that has samples.
pub fn families(ports: &[Port], most_classes: usize, names: &ClassNames) -> Vec<Family> {
    let mut all = Families::default();
    let mut left = most_classes;
    for port in ports {
        let labels = vec![
            ("device", port.device.clone()),
            ("qdisc", port.handle.to_string()),
        ];
        all.counters("psp_qdisc", &labels, &port.counters);
        for stat in tcpsp::QdiscStats::TABLE {
            all.take("psp_qdisc", &labels, stat, &port.psp.stats);
        }
        let (own, summed) = port.classes.split_at(left.min(port.classes.len()));
        left -= own.len();
        all.gauge(
            "psp_qdisc_classes",
            "Classes of the qdisc.",
            labels.clone(),
            number(port.classes.len()),
        );
        all.gauge(
            "psp_exporter_classes_summed",
            "Classes of the qdisc that have no samples of their own: they are summed as class \"other\".",
            labels.clone(),
            number(summed.len()),
        );
        for class in own {
            let mut labels = with_class(&labels, class.id.to_string(), of_type(class));
            if let Some(group) = group_of(class) {
                labels.push(("group", group.to_string()));
            }
            if let Some(name) = names.of(&port.device, class.id) {
                labels.push(("name", name.to_owned()));
            }
            all.class(&labels, class);
        }
        if !summed.is_empty() {
            let groups: BTreeSet<Handle> = port.classes.iter().filter_map(group_of).collect();
            let counted = |class: &PortClass| own.iter().any(|own| Some(own.id) == group_of(class));
            let leaves = summed.iter().filter(|class| !groups.contains(&class.id));
            let leaves: Vec<&PortClass> = leaves.filter(|class| !counted(class)).collect();
            all.summed(&with_class(&labels, OTHER.to_owned(), OTHER), &leaves);
        }
    }
    all.0
}

type Labels = Vec<(&'static str, String)>;

fn with_class(labels: &Labels, class: String, of_type: &str) -> Labels {
    let mut labels = labels.clone();
    labels.push(("class", class));
    labels.push(("type", of_type.to_owned()));
    labels
}

fn group_of(class: &PortClass) -> Option<Handle> {
    let group = class.psp.options.group?;
    Some(Handle::new(class.id.major(), group))
}

fn of_type(class: &PortClass) -> &'static str {
    class.psp.options.class_type().word()
}

fn number(count: usize) -> Number {
    Number::Whole(count.try_into().unwrap_or(u64::MAX))
}

/// Returns whether a class has the statistic at all.
fn has(class: &PortClass, shown: Shown) -> bool {
    let of_type = class.psp.options.class_type();
    shown.applies(of_type, class.psp.stats.rate_bps)
}

/// Families in the order in which they were first named.
#[derive(Default)]
struct Families(Vec<Family>);

impl Families {
    fn sample(
        &mut self,
        name: String,
        help: &str,
        unit: Option<&'static str>,
        kind: Kind,
        sample: Sample,
    ) {
        // Some hundred families at most: no map is needed.
        let known = self.0.iter_mut().find(|family| family.name == name);
        match known {
            Some(family) => family.samples.push(sample),
            None => self.0.push(Family {
                name,
                help: help.to_owned(),
                unit,
                kind,
                samples: vec![sample],
            }),
        }
    }

    fn gauge(&mut self, name: &str, help: &str, labels: Labels, number: Number) {
        let sample = Sample { labels, number };
        self.sample(name.to_owned(), help, None, Kind::Gauge, sample);
    }

    /// Adds what the kernel counts of any qdisc or class.
    fn counters(&mut self, prefix: &str, labels: &Labels, of: &Counters) {
        let rows: [(&str, &str, Option<&'static str>, Kind, u64); 7] = [
            (
                "sent",
                "Bytes of frames given to the device, without FCS, as tc counts them.",
                Some("bytes"),
                Kind::Counter,
                of.sent_bytes,
            ),
            (
                "sent_packets",
                "Packets given to the device, as tc counts them: of a burst its frames.",
                None,
                Kind::Counter,
                of.sent_packets,
            ),
            (
                "dropped_packets",
                "Packets that were dropped, as tc counts them.",
                None,
                Kind::Counter,
                of.drops.into(),
            ),
            (
                "overlimits",
                "Times a limit was met, as tc counts them.",
                None,
                Kind::Counter,
                of.overlimits.into(),
            ),
            (
                "requeues",
                "Packets that the device gave back, as tc counts them.",
                None,
                Kind::Counter,
                of.requeues.into(),
            ),
            (
                "backlog",
                "Bytes that wait.",
                Some("bytes"),
                Kind::Gauge,
                of.waiting_bytes.into(),
            ),
            (
                "backlog_packets",
                "Packets that wait; a burst that is queued whole is one.",
                None,
                Kind::Gauge,
                of.waiting_packets.into(),
            ),
        ];
        for (name, help, unit, kind, value) in rows {
            let number = Number::Whole(value);
            let labels = labels.clone();
            let sample = Sample { labels, number };
            self.sample(format!("{prefix}_{name}"), help, unit, kind, sample);
        }
    }

    fn class(&mut self, labels: &Labels, class: &PortClass) {
        self.counters("psp_class", labels, &class.counters);
        for stat in tcpsp::ClassStats::TABLE {
            if has(class, stat.shown) {
                self.take("psp_class", labels, stat, &class.psp.stats);
            }
        }
    }

    /// Adds several classes as one. What has no sum, such as the slowest flow's rate, is left out.
    fn summed(&mut self, labels: &Labels, classes: &[&PortClass]) {
        let mut counters = Counters::default();
        for of in classes.iter().map(|class| &class.counters) {
            counters.sent_bytes += of.sent_bytes;
            counters.sent_packets += of.sent_packets;
            counters.drops = counters.drops.saturating_add(of.drops);
            counters.overlimits = counters.overlimits.saturating_add(of.overlimits);
            counters.requeues = counters.requeues.saturating_add(of.requeues);
            counters.waiting_packets = counters.waiting_packets.saturating_add(of.waiting_packets);
            counters.waiting_bytes = counters.waiting_bytes.saturating_add(of.waiting_bytes);
        }
        self.counters("psp_class", labels, &counters);
        for stat in tcpsp::ClassStats::TABLE {
            let with = classes.iter().filter(|class| has(class, stat.shown));
            if stat.total == Total::None || with.clone().next().is_none() {
                continue;
            }
            let mut sum = 0u64;
            let mut buckets: Vec<u64> = Vec::new();
            for class in with {
                match (stat.value)(&class.psp.stats) {
                    Value::Number(number) => sum = sum.saturating_add(number),
                    Value::Histogram(of) => {
                        buckets.resize(of.len(), 0);
                        for (sum, count) in buckets.iter_mut().zip(of) {
                            *sum += count;
                        }
                    }
                }
            }
            let value = if buckets.is_empty() {
                Value::Number(sum)
            } else {
                Value::Histogram(&buckets)
            };
            self.row("psp_class", labels, Row::of(stat), value);
        }
    }

    fn take<S: Stats>(&mut self, prefix: &str, labels: &Labels, stat: &Stat<S>, stats: &S) {
        self.row(prefix, labels, Row::of(stat), (stat.value)(stats));
    }

    fn row(&mut self, prefix: &str, labels: &Labels, row: Row, value: Value<'_>) {
        let number = match value {
            Value::Histogram(buckets) => return self.late(prefix, labels, row.help, buckets),
            Value::Number(number) => number,
        };
        // A gauge of 0 that tc does not print is not known.
        if row.kind == Kind::Gauge && row.is_optional && number == 0 {
            return;
        }
        let mut labels = labels.clone();
        let (key, unit, number) = match row.unit {
            Unit::Hidden | Unit::Histogram => return,
            Unit::Mode => {
                let modes = Mode::ALL.iter().filter(|mode| **mode != Mode::Auto);
                let all = modes.map(|mode| (mode.word(), mode.number() == number));
                return self.states(prefix, &labels, &row, all);
            }
            Unit::Why => {
                let all = Why::ALL
                    .iter()
                    .map(|why| (why.word(), why.number() == number));
                return self.states(prefix, &labels, &row, all);
            }
            Unit::Assumed => (row.key, None, Number::Whole((number != 0).into())),
            Unit::Time => (
                row.key,
                Some("seconds"),
                Number::Seconds(number as f64 / 1e9),
            ),
            // Not in words: "bits" is no unit of Prometheus.
            Unit::Rate => (row.key, Some("bps"), Number::Whole(number)),
            Unit::Bytes => {
                let key = row.key.trim_end_matches("_bytes");
                (key, Some("bytes"), Number::Whole(number))
            }
            Unit::Frames | Unit::Count => (row.key, None, Number::Whole(number)),
        };
        let sample = |labels| Sample { labels, number };
        if let Some(cause) = row.key.strip_prefix(DROP) {
            labels.push(("cause", cause.to_owned()));
            let help = "Frames that were dropped, by cause: drop_CAUSE in tc-psp(8).";
            let name = format!("{prefix}_dropped_frames");
            return self.sample(name, help, None, row.kind, sample(labels));
        }
        let name = format!("{prefix}_{key}");
        self.sample(name, row.help, unit, row.kind, sample(labels));
    }

    /// Adds a word as one sample for each word that it can be: 1 of the one that it is.
    fn states<'a>(
        &mut self,
        prefix: &str,
        labels: &Labels,
        row: &Row,
        all: impl Iterator<Item = (&'a str, bool)>,
    ) {
        let label = match row.unit {
            Unit::Mode => "mode",
            _ => "why",
        };
        for (word, is_so) in all {
            let mut labels = labels.clone();
            labels.push((label, word.to_owned()));
            let number = Number::Whole(is_so.into());
            self.gauge(&format!("{prefix}_{}", row.key), row.help, labels, number);
        }
    }

    /// Adds frames by lateness.
    fn late(&mut self, prefix: &str, labels: &Labels, help: &str, buckets: &[u64]) {
        let help = format!("{help} Here: frames late by at most le byte times.");
        let sample = Sample {
            labels: labels.clone(),
            number: Number::Buckets(buckets.to_vec()),
        };
        let name = format!("{prefix}_late_frames");
        self.sample(name, &help, None, Kind::Histogram, sample);
    }
}

/// What a family is made of, of a row of either table.
struct Row {
    key: &'static str,
    help: &'static str,
    unit: Unit,
    kind: Kind,
    is_optional: bool,
}

impl Row {
    fn of<S>(stat: &Stat<S>) -> Self {
        Self {
            key: stat.key,
            help: stat.meaning,
            unit: stat.unit,
            kind: match stat.metric {
                Metric::Counter => Kind::Counter,
                Metric::Gauge => Kind::Gauge,
            },
            is_optional: stat.shown == Shown::Nonzero
                && matches!(stat.unit, Unit::Rate | Unit::Count),
        }
    }
}
