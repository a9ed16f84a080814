// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples in, rows out.

use std::collections::{BTreeMap, VecDeque};

use host_config::ClassNames;
use manager_proto::overview::Overview;
use serde::Serialize;
use tcpsp::ports::{Port, PortClass};
use tcpsp::stats::{Stats, Value, serialize_all};
use tcpsp::{ClassStats, ClassType, Handle, Layer, Mode, QdiscStats, TypeOptions, Why};
use units::ethernet;
use units::time::NS_PER_S;

/// Samples that a row's history has.
pub const HISTORY: usize = 60;
/// Samples over which lateness is counted.
const LATE_SAMPLES: usize = 10;

/// What was read at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When, on any clock that only goes forward.
    pub time_ns: u64,
    /// How long reading took.
    pub cost_ns: u64,
    pub ports: Vec<Port>,
}

/// A psp qdisc.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortRow {
    /// Name of the device.
    pub device: String,
    /// Id of the qdisc.
    pub qdisc: Handle,
    /// Mode in force.
    pub mode: Option<Mode>,
    /// Why gap frames are not sent.
    pub why: Option<Why>,
    pub line_bps: u64,
    /// What frames take of the line, with everything that they take on the wire; `None` before
    /// the second sample.
    pub wire_bps: Option<u64>,
    /// Share of gap frames in the bytes on the wire; `None` while there are none.
    pub gap_share: Option<f64>,
    /// Frames without a class so far.
    pub unclassified_frames: u64,
    /// Frames of no class that were dropped so far: times beyond the horizon of the fq below.
    pub beyond_horizon_frames: u64,
    #[serde(rename = "statistics", serialize_with = "serialize_all")]
    pub stats: QdiscStats,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the device.
    pub device: String,
    /// Id of the class.
    pub class: Handle,
    /// Its name in the host's file, if it has one.
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Handle>,
    #[serde(rename = "type")]
    pub of_type: ClassType,
    /// The rate that it is to have; `None` of a class without one.
    pub target_bps: Option<u64>,
    /// The rate to which it borrows.
    pub ceil_bps: Option<u64>,
    /// Its rate since the sample before, counted as the rate that it is to have; `None` before the
    /// second sample.
    pub rate_bps: Option<u64>,
    /// Its rates, the newest last.
    #[serde(skip)]
    pub history_bps: Vec<u64>,
    pub backlog_bytes: u32,
    pub backlog_packets: u32,
    /// Frames that were dropped so far, of each cause that there was.
    pub drops: Vec<Drop>,
    /// Lateness of its frames lately; `None` if it sent none, or has no rate.
    pub late: Option<Late>,
    /// Mode in force of its qdisc.
    pub mode: Option<Mode>,
    #[serde(rename = "statistics", serialize_with = "serialize_all")]
    pub stats: ClassStats,
}

/// Frames that were dropped for one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drop {
    /// The cause, as in `drop_CAUSE` of tc-psp(8).
    pub cause: &'static str,
    pub frames: u64,
    /// Frames since the sample before.
    pub new_frames: u64,
}

/// Lateness of frames. The kernel counts them by powers of two of byte times: each is a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Late {
    /// Frames that were counted.
    pub frames: u64,
    /// Half of them were late by at most this.
    pub median_ns: u64,
    /// All but one of a hundred were.
    pub p99_ns: u64,
    pub max_ns: u64,
}

type Key = (String, Handle);

/// What was sampled lately.
#[derive(Clone, Debug, Default)]
pub struct Model {
    samples: VecDeque<Sample>,
    histories: BTreeMap<Key, VecDeque<u64>>,
    names: ClassNames,
    reservations: Option<Overview>,
}

impl Model {
    /// Returns a model whose classes have these names.
    pub fn named(names: ClassNames) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    /// Gives classes other names.
    pub fn rename(&mut self, names: ClassNames) {
        self.names = names;
    }

    /// Takes a sample that is newer than those before. Costs time linear in its classes, and
    /// memory of some samples.
    pub fn take(&mut self, sample: Sample) {
        let before = self.samples.back();
        let mut histories = BTreeMap::new();
        for port in &sample.ports {
            for class in &port.classes {
                let key = (port.device.clone(), class.id);
                let mut history = self.histories.remove(&key).unwrap_or_default();
                let rate = before.and_then(|before| rate_bps(before, &sample, port, class));
                history.extend(rate);
                while history.len() > HISTORY {
                    history.pop_front();
                }
                histories.insert(key, history);
            }
        }
        // Of classes that are gone nothing is kept.
        self.histories = histories;
        self.samples.push_back(sample);
        while self.samples.len() > LATE_SAMPLES {
            self.samples.pop_front();
        }
    }

    /// Takes what managers said last.
    pub fn take_reservations(&mut self, overview: Overview) {
        self.reservations = Some(overview);
    }

    /// Returns what managers said last; `None` if none is asked.
    pub fn reservations(&self) -> Option<&Overview> {
        self.reservations.as_ref()
    }

    /// Returns the newest sample.
    pub fn last(&self) -> Option<&Sample> {
        self.samples.back()
    }

    pub(crate) fn before(&self) -> Option<&Sample> {
        let index = self.samples.len().checked_sub(2)?;
        self.samples.get(index)
    }

    /// Returns the qdiscs, by device and handle.
    pub fn ports(&self) -> Vec<PortRow> {
        let Some(last) = self.last() else {
            return Vec::new();
        };
        let row = |port: &Port| {
            let stats = &port.psp.stats;
            let earlier = self.before().and_then(|before| find(before, port));
            let sent = |earlier: &Port| {
                let then = &earlier.psp.stats;
                let frames = stats.sent_wire_bytes.checked_sub(then.sent_wire_bytes)?;
                let gaps = stats.gap_wire_bytes.checked_sub(then.gap_wire_bytes)?;
                Some((frames, gaps))
            };
            let sent = earlier.and_then(sent);
            let past_ns = self
                .before()
                .map_or(0, |b| last.time_ns.saturating_sub(b.time_ns));
            PortRow {
                device: port.device.clone(),
                qdisc: port.handle,
                mode: stats.mode(),
                why: stats.why(),
                line_bps: stats.line_rate_bps,
                wire_bps: sent.and_then(|(frames, _)| per_second(frames, past_ns)),
                gap_share: sent
                    .filter(|(frames, gaps)| frames + gaps > 0)
                    .map(|(frames, gaps)| gaps as f64 / (frames + gaps) as f64),
                unclassified_frames: stats.unclassified_frames,
                beyond_horizon_frames: {
                    let classes = port.classes.iter();
                    let of_classes: u64 = classes.map(|class| class.psp.stats.drop_horizon).sum();
                    stats.drop_horizon.saturating_sub(of_classes)
                },
                stats: stats.clone(),
            }
        };
        last.ports.iter().map(row).collect()
    }

    /// Returns the classes, by device and id; those of a group after it.
    pub fn rows(&self) -> Vec<Row> {
        let Some(last) = self.last() else {
            return Vec::new();
        };
        let row = |port: &Port, class: &PortClass| {
            let key = (port.device.clone(), class.id);
            let history = self.histories.get(&key);
            let stats = &class.psp.stats;
            let rate_bps = match self.before() {
                Some(before) => rate_bps(before, last, port, class),
                None => None,
            };
            Row {
                device: port.device.clone(),
                class: class.id,
                name: self.names.of(&port.device, class.id).map(str::to_owned),
                group: group_of(class),
                of_type: class.psp.options.class_type(),
                target_bps: target_bps(class),
                ceil_bps: Some(stats.ceil_bps).filter(|ceil| *ceil != 0),
                rate_bps,
                history_bps: history
                    .map(|h| h.iter().copied().collect())
                    .unwrap_or_default(),
                backlog_bytes: class.counters.waiting_bytes,
                backlog_packets: class.counters.waiting_packets,
                drops: self.drops(port, class),
                late: self.late(port, class),
                mode: port.psp.stats.mode(),
                stats: stats.clone(),
            }
        };
        let ports = last.ports.iter();
        ports
            .flat_map(|port| {
                let mut classes: Vec<&PortClass> = port.classes.iter().collect();
                if classes.iter().any(|class| group_of(class).is_some()) {
                    classes.sort_by_key(|class| {
                        let group = group_of(class);
                        (group.unwrap_or(class.id), group.is_some(), class.id)
                    });
                }
                classes.into_iter().map(move |class| row(port, class))
            })
            .collect()
    }

    fn drops(&self, port: &Port, class: &PortClass) -> Vec<Drop> {
        let earlier = self
            .before()
            .and_then(|before| find_class(before, port, class));
        let mut drops = Vec::new();
        for row in ClassStats::TABLE {
            let Some(cause) = row.key.strip_prefix("drop_") else {
                continue;
            };
            let frames = |class: &PortClass| match (row.value)(&class.psp.stats) {
                Value::Number(frames) => frames,
                Value::Histogram(_) => 0,
            };
            let now = frames(class);
            if now > 0 {
                let then = earlier.map_or(now, frames);
                drops.push(Drop {
                    cause,
                    frames: now,
                    new_frames: now.saturating_sub(then),
                });
            }
        }
        drops
    }

    /// Counts lateness over the samples that there are of the class, or of all of its life if it is
    /// seen for the first time.
    fn late(&self, port: &Port, class: &PortClass) -> Option<Late> {
        let line_bps = port.psp.stats.line_rate_bps;
        if class.psp.stats.rate_bps == 0 || line_bps == 0 {
            return None;
        }
        let now = &class.psp.stats.late_frames;
        let older = self.samples.iter().rev().skip(1);
        let older = older.map_while(|sample| find_class(sample, port, class));
        let first = older.last().map(|class| class.psp.stats.late_frames);
        let first = first.unwrap_or_default();
        let counts: Vec<u64> = now
            .iter()
            .zip(first)
            .map(|(now, then)| now.saturating_sub(then))
            .collect();
        let frames: u64 = counts.iter().sum();
        let at_most_ns = |share: u64| {
            let wanted = (u128::from(frames) * u128::from(share)).div_ceil(100);
            let mut sum = 0;
            for (bucket, count) in (0u32..).zip(&counts) {
                sum += u128::from(*count);
                if sum >= wanted {
                    return bound_ns(bucket, line_bps);
                }
            }
            0
        };
        (frames > 0).then(|| Late {
            frames,
            median_ns: at_most_ns(50),
            p99_ns: at_most_ns(99),
            max_ns: at_most_ns(100),
        })
    }
}

/// Returns how late the frames of a bucket are at most; of the last one at least.
fn bound_ns(bucket: u32, line_bps: u64) -> u64 {
    let bytes = (1u128 << bucket) - 1;
    let ns = bytes * 8 * u128::from(NS_PER_S) / u128::from(line_bps);
    u64::try_from(ns).unwrap_or(u64::MAX)
}

fn find<'a>(sample: &'a Sample, port: &Port) -> Option<&'a Port> {
    let is_same = |other: &&Port| (other.index, other.handle) == (port.index, port.handle);
    sample.ports.iter().find(is_same)
}

fn find_class<'a>(sample: &'a Sample, port: &Port, class: &PortClass) -> Option<&'a PortClass> {
    let port = find(sample, port)?;
    let index = port
        .classes
        .binary_search_by_key(&class.id, |class| class.id)
        .ok()?;
    port.classes.get(index)
}

fn group_of(class: &PortClass) -> Option<Handle> {
    let group = class.psp.options.group?;
    Some(Handle::new(class.id.major(), group))
}

fn target_bps(class: &PortClass) -> Option<u64> {
    match &class.psp.options.by_type {
        // All flows together, as their sockets or the formula have them now.
        TypeOptions::Dynamic(_) => Some(class.psp.stats.flow_rate_sum_bps),
        _ => Some(class.psp.stats.rate_bps),
    }
    .filter(|rate| *rate != 0)
}

/// Returns the bytes that a class sent, counted as its rate counts.
fn sent_bytes(port: &Port, class: &PortClass) -> u64 {
    let counters = &class.counters;
    match port.psp.options.layer {
        Layer::Link => counters.sent_bytes,
        Layer::Wire => class.psp.stats.sent_wire_bytes,
        Layer::Ip => {
            let header = u64::from(ethernet::HEADER_BYTES);
            counters
                .sent_bytes
                .saturating_sub(counters.sent_packets.saturating_mul(header))
        }
    }
}

fn rate_bps(before: &Sample, now: &Sample, port: &Port, class: &PortClass) -> Option<u64> {
    let earlier_port = find(before, port)?;
    let earlier = find_class(before, port, class)?;
    // A class that was made anew counts from 0.
    let bytes = sent_bytes(port, class).checked_sub(sent_bytes(earlier_port, earlier))?;
    per_second(bytes, now.time_ns.checked_sub(before.time_ns)?)
}

/// Returns bytes in a time as bit/s.
fn per_second(bytes: u64, past_ns: u64) -> Option<u64> {
    let bits = u128::from(bytes) * 8 * u128::from(NS_PER_S);
    u64::try_from(bits.checked_div(past_ns.into())?).ok()
}
