// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics: what the kernel counts of every qdisc and class, and psp's own by the table
//! `uapi/sch_psp_stats.h`, of which [`QdiscStats`] and [`ClassStats`] are made.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::attribute::{self, Attributes};
use crate::choices::{ClassType, Mode, Why};
use crate::uapi::{TC_PSP_STATS_CLASS, TC_PSP_STATS_QDISC};

include!(concat!(env!("OUT_DIR"), "/stats.rs"));

/// What the kernel counts of a qdisc or a class of any kind. Frames of a burst that is queued
/// whole are one packet of `waiting_packets`, and as many as are in it of `sent_packets`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Bytes that were sent, without FCS.
    pub sent_bytes: u64,
    /// Packets that were sent.
    pub sent_packets: u64,
    /// Packets that were dropped.
    pub drops: u32,
    /// Times a limit was met.
    pub overlimits: u32,
    /// Packets that the device gave back.
    pub requeues: u32,
    pub waiting_packets: u32,
    pub waiting_bytes: u32,
}

impl std::iter::Sum for Counters {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, of| Self {
            sent_bytes: sum.sent_bytes.saturating_add(of.sent_bytes),
            sent_packets: sum.sent_packets.saturating_add(of.sent_packets),
            // The kernel's wrap, too.
            drops: sum.drops.wrapping_add(of.drops),
            overlimits: sum.overlimits.wrapping_add(of.overlimits),
            requeues: sum.requeues.wrapping_add(of.requeues),
            waiting_packets: sum.waiting_packets.saturating_add(of.waiting_packets),
            waiting_bytes: sum.waiting_bytes.saturating_add(of.waiting_bytes),
        })
    }
}

/// Attributes of TCA_STATS2.
const BASIC: u16 = 1;
const QUEUE: u16 = 3;
const APP: u16 = 4;
const PACKETS: u16 = 8;

impl Counters {
    /// Reads TCA_STATS2, and returns psp's own statistics beside, as bytes.
    pub(crate) fn read(bytes: &[u8]) -> (Self, Vec<u8>) {
        let attributes = attribute::read(bytes);
        let found = Attributes(&attributes);
        let basic = found.bytes(BASIC).unwrap_or_default();
        let queue = found.bytes(QUEUE).unwrap_or_default();
        let queued = |at: usize| u32::try_from(number32(queue, 4 * at)).unwrap_or(0);
        let counters = Self {
            sent_bytes: number64(basic, 0),
            // The kernel counts in 64 bits where 32 are not enough.
            sent_packets: found.number(PACKETS).unwrap_or(number32(basic, 8)),
            waiting_packets: queued(0),
            waiting_bytes: queued(1),
            drops: queued(2),
            requeues: queued(3),
            overlimits: queued(4),
        };
        (counters, found.bytes(APP).unwrap_or_default().to_vec())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Frames,
    Bytes,
    /// Something else, which the meaning names.
    Count,
    /// Bits per second.
    Rate,
    Time,
    Mode,
    Why,
    /// Whether it is known: 0 is assumed.
    Assumed,
    /// [`ClassStats::late_frames`]: frames by their lateness in byte times.
    Histogram,
    /// Not printed.
    Hidden,
}

/// Whether a number only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Only grows, from 0, as long as the qdisc or class lives.
    Counter,
    /// Any other.
    Gauge,
}

/// What several qdiscs or classes have together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Total {
    /// The sum of their numbers; of a histogram bucket by bucket.
    Sum,
    /// Nothing: a sum has no meaning.
    None,
}

/// When `tc` prints a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// In any case.
    Always,
    /// Unless it is 0.
    Nonzero,
    /// In mode hybrid.
    Hybrid,
    /// While a class goes by periods.
    Periods,
    /// If the class goes by periods.
    Reserved,
    /// If the class has a rate.
    Paced,
    /// If the class has had flows.
    Dynamic,
}

impl Shown {
    /// Returns whether a class of this type, whose rate in force is this, has the number at all.
    /// [`Self::Nonzero`], [`Self::Hybrid`] and [`Self::Periods`] depend on more than the class:
    /// it has them.
    pub const fn applies(self, of_type: ClassType, rate_bps: u64) -> bool {
        match self {
            Self::Reserved => matches!(of_type, ClassType::Rt | ClassType::Nrt),
            Self::Paced => rate_bps != 0,
            Self::Dynamic => matches!(of_type, ClassType::Dynamic),
            Self::Always | Self::Nonzero | Self::Hybrid | Self::Periods => true,
        }
    }
}

/// A number of the statistics, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Number(u64),
    /// One for each bucket: the first of frames on time or early, number i of frames that were
    /// late by 2^(i-1) to 2^i - 1 byte times, the last of all later ones.
    Histogram(&'a [u64]),
}

/// A row of the table of statistics.
#[derive(Clone, Copy, Debug)]
pub struct Stat<S: 'static> {
    /// Name of the member.
    pub member: &'static str,
    /// Its key in what `tc` prints.
    pub key: &'static str,
    pub unit: Unit,
    /// Whether it only grows.
    pub metric: Metric,
    /// What several have together.
    pub total: Total,
    /// When `tc` prints it.
    pub shown: Shown,
    /// Its meaning, for a person.
    pub meaning: &'static str,
    /// Returns it of statistics.
    pub value: fn(&S) -> Value<'_>,
}

impl<S> Stat<S> {
    /// Returns the key in JSON, which names the unit of rates and times.
    pub fn json_key(&self) -> String {
        match self.unit {
            Unit::Rate => format!("{}_bps", self.key),
            Unit::Time => format!("{}_ns", self.key),
            _ => self.key.to_owned(),
        }
    }
}

/// Statistics with a table.
pub trait Stats: Sized + 'static {
    /// The kernel's number of the struct.
    const TYPE: u64;
    /// Its rows, in the order of `tc`.
    const TABLE: &'static [Stat<Self>];

    /// Reads what the kernel sent; what it did not send is 0.
    fn read(bytes: &[u8]) -> Self;

    /// Reads what the kernel sent, if it is of this type.
    fn read_typed(bytes: &[u8]) -> Option<Self> {
        (number32(bytes, 0) == Self::TYPE).then(|| Self::read(bytes))
    }
}

impl QdiscStats {
    /// Returns the mode in force.
    pub fn mode(&self) -> Option<Mode> {
        Mode::from_number(self.mode)
    }

    /// Returns why gap frames are not sent.
    pub fn why(&self) -> Option<Why> {
        Why::from_number(self.why_not_hybrid)
    }
}

/// Writes the keys and values of `tc -s -j`.
fn serialize<T: Stats, S: Serializer>(stats: &T, serializer: S) -> Result<S::Ok, S::Error> {
    let rows = T::TABLE.iter().filter(|stat| stat.unit != Unit::Hidden);
    serialize_rows(stats, rows, serializer)
}

/// Writes every row of the table, also those that `tc` does not print.
pub fn serialize_all<T: Stats, S: Serializer>(stats: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serialize_rows(stats, T::TABLE.iter(), serializer)
}

fn serialize_rows<'a, T: Stats, S: Serializer>(
    stats: &T,
    rows: impl Iterator<Item = &'a Stat<T>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for stat in rows {
        map.serialize_key(&stat.json_key())?;
        match ((stat.value)(stats), stat.unit) {
            (Value::Number(number), Unit::Mode) => {
                map.serialize_value(&Mode::from_number(number))?;
            }
            (Value::Number(number), Unit::Why) => map.serialize_value(&Why::from_number(number))?,
            (Value::Number(number), Unit::Assumed) => map.serialize_value(&(number != 0))?,
            (Value::Number(number), _) => map.serialize_value(&number)?,
            (Value::Histogram(buckets), _) => map.serialize_value(buckets)?,
        }
    }
    map.end()
}

impl Serialize for QdiscStats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self, serializer)
    }
}

impl Serialize for ClassStats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self, serializer)
    }
}

fn number32(bytes: &[u8], at: usize) -> u64 {
    let number = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    number.map_or(0, u32::from_ne_bytes).into()
}

pub(crate) fn number64(bytes: &[u8], at: usize) -> u64 {
    let number = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
    number.map_or(0, u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The struct with 1000 + i in its i-th 64 bits.
    fn bytes(kind: u64, words: u64) -> Vec<u8> {
        let numbers = (1..words).flat_map(|i| (1000 + i).to_ne_bytes());
        let kind = u32::try_from(kind).unwrap().to_ne_bytes();
        let first = kind.into_iter().chain(2u32.to_ne_bytes());
        first.chain(numbers).collect()
    }

    /// `uapi/sch_psp.h` by hand: beginning, middle, end.
    #[test]
    fn members_are_where_the_kernel_has_them() {
        let qdisc = QdiscStats::read_typed(&bytes(1, 50)).unwrap();
        assert_eq!(qdisc.mode, 2);
        assert_eq!(qdisc.mode(), Some(Mode::Timer));
        assert_eq!(qdisc.line_rate_bps, 1001);
        assert_eq!((qdisc.max_frame_bytes, qdisc.line_known), (1002, 0));
        assert_eq!(qdisc.sent_frames, 1003);
        assert_eq!(qdisc.child_retries, 1017);
        assert_eq!((qdisc.why_not_hybrid, qdisc.queues), (1018, 0));
        assert_eq!(qdisc.drop_late, 1019);
        assert_eq!(qdisc.drop_evicted, 1044);
        assert_eq!(qdisc.rt_excess, 1045);
        let class = ClassStats::read_typed(&bytes(2, 60)).unwrap();
        assert_eq!((class.active, class.rate_bps), (2, 1001));
        assert_eq!(class.late_frames[0], 1012);
        assert_eq!(class.late_frames[23], 1035);
        assert_eq!((class.flows, class.flows_active), (1036, 0));
        assert_eq!(class.flows_evicted, 1050);
        assert_eq!((class.flow_users, class.excess), (1051, 1052));
        assert_eq!(ClassStats::read_typed(&bytes(1, 60)), None);
        assert_eq!(QdiscStats::read_typed(&[]), None);
        // An older kernel sends less.
        let class = ClassStats::read_typed(&bytes(2, 3)).unwrap();
        assert_eq!((class.sent_frames, class.sent_wire_bytes), (1002, 0));
    }

    #[test]
    fn the_table_says_what_grows() {
        let metric = |key: &str| {
            let row = QdiscStats::TABLE.iter().find(|row| row.key == key);
            row.map(|row| (row.metric, row.unit)).unwrap()
        };
        assert_eq!(metric("sent_frames"), (Metric::Counter, Unit::Frames));
        assert_eq!(metric("line_in_force"), (Metric::Gauge, Unit::Rate));
        assert_eq!(metric("wire_stop_max"), (Metric::Gauge, Unit::Time));
        let late = ClassStats::TABLE
            .iter()
            .find(|row| row.key == "late_frames");
        assert_eq!(late.unwrap().unit, Unit::Histogram);
        assert_eq!(late.unwrap().metric, Metric::Counter);
        for row in ClassStats::TABLE {
            assert!(row.meaning.len() > 5, "{row:?}");
        }
    }

    #[test]
    fn the_table_says_what_has_a_sum() {
        let without: Vec<_> = ClassStats::TABLE
            .iter()
            .filter(|row| row.total == Total::None)
            .map(|row| row.key)
            .collect();
        assert_eq!(without, ["flow_rate_min", "flow_rate_max"]);
        for row in QdiscStats::TABLE {
            let is_counter = row.metric == Metric::Counter;
            assert_eq!(row.total == Total::Sum, is_counter, "{row:?}");
        }
    }

    #[test]
    fn a_class_has_what_its_type_counts() {
        use ClassType::{Dynamic, Normal, Nrt, Paced, Rt};
        let of = |shown: Shown| {
            ClassType::ALL
                .iter()
                .filter(move |of| shown.applies(**of, 0))
        };
        assert_eq!(of(Shown::Reserved).copied().collect::<Vec<_>>(), [Rt, Nrt]);
        assert_eq!(of(Shown::Dynamic).copied().collect::<Vec<_>>(), [Dynamic]);
        assert_eq!(of(Shown::Paced).count(), 0);
        assert!(Shown::Paced.applies(Paced, 1) && Shown::Paced.applies(Normal, 1));
        for shown in [Shown::Always, Shown::Nonzero, Shown::Hybrid, Shown::Periods] {
            assert_eq!(of(shown).count(), ClassType::ALL.len());
        }
    }

    #[test]
    fn json_has_the_keys_of_tc() {
        let text = serde_json::to_string(&QdiscStats::read(&bytes(1, 50))).unwrap();
        assert!(text.starts_with(
            r#"{"mode_in_force":"timer","why_not_hybrid":null,"line_in_force_bps":1001,"line_known":false,"#
        ), "{text}");
        let class = serde_json::to_value(ClassStats::read(&bytes(2, 60))).unwrap();
        assert_eq!(class["late_frames"][23], 1035);
        assert_eq!(class["rate_in_force_bps"], 1001);
        assert!(class.get("reserve").is_none());
    }

    #[test]
    fn counters_of_any_qdisc() {
        use crate::attribute::{Attribute, write};
        let queue: Vec<u8> = (1..6u32).flat_map(u32::to_ne_bytes).collect();
        let mut basic = 7u64.to_ne_bytes().to_vec();
        basic.extend(9u32.to_ne_bytes());
        basic.extend([0; 4]);
        let mut all = vec![Attribute::new(BASIC, basic), Attribute::new(QUEUE, queue)];
        let (counters, app) = Counters::read(&write(&all));
        let expected = Counters {
            sent_bytes: 7,
            sent_packets: 9,
            waiting_packets: 1,
            waiting_bytes: 2,
            drops: 3,
            requeues: 4,
            overlimits: 5,
        };
        assert_eq!((counters, app.as_slice()), (expected, &[][..]));
        all.push(Attribute::u64(PACKETS, 1 << 33));
        all.push(Attribute::new(APP, [1]));
        let (counters, app) = Counters::read(&write(&all));
        assert_eq!(counters.sent_packets, 1 << 33);
        assert_eq!(app, [1]);
    }
}
