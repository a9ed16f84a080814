// SPDX-License-Identifier: MIT OR Apache-2.0
//! What there is on a device.

use std::collections::BTreeMap;

use host_config::{Facts, minor};
use serde::Serialize;
use tcpsp::{Filter, FilterId, Handle, Tc, attribute};

use super::error::Error;
use super::layout::{CLASSES, Tables};
use super::maps::Maps;
use super::program::maps_of;

/// Names of the kernel's kinds.
pub(crate) const FQ: &str = "fq";
pub(crate) const BPF: &str = "bpf";
pub(crate) const CLSACT: &str = "clsact";
/// Handle of clsact, and where it asks filters.
pub(crate) const CLSACT_HANDLE: Handle = Handle::new(0xffff, 0);
const CLSACT_INGRESS: Handle = Handle::new(0xffff, 0xfff2);
pub(crate) const EGRESS: Handle = Handle::new(0xffff, 0xfff3);
/// Priority of our filter among those at the device's egress.
const PRIORITY: u16 = 0x7073;
/// The program's id in what the kernel dumps of a filter (TCA_BPF_ID).
const BPF_ID: u16 = 11;

/// The place of our filter.
pub(crate) const FILTER: FilterId = FilterId {
    qdisc: EGRESS,
    priority: PRIORITY,
    handle: minor::FILTER,
};

/// What stands at the root or at a transmit queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// What the kernel put there on its own: its kind and the packets that wait in it.
    Default(String, u32),
    /// A qdisc of others.
    Other(String, Handle, u32),
    /// Ours, with the packets that wait in it.
    Ours(u32),
}

/// What there is on a device.
pub struct Running {
    pub(crate) facts: Facts,
    /// What stands at the root, as fq or mq of ours.
    pub(crate) root: Place,
    /// Whether the root is mq of ours.
    pub(crate) is_mq: bool,
    /// What stands at each transmit queue below mq of ours.
    pub(crate) below: Vec<Place>,
    /// Whether the device has clsact.
    pub(crate) has_clsact: bool,
    /// Filters of others at clsact.
    pub(crate) other_filters: usize,
    /// Whether our filter is there.
    pub(crate) is_attached: bool,
    pub(crate) maps: Option<Maps>,
    /// What is in force.
    pub(crate) tables: Tables,
}

/// What a class has done since it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassCounters {
    /// Its minor number.
    pub minor: u16,
    /// Its rate.
    pub rate_bps: u64,
    /// Frames that got a departure time.
    pub frames: u64,
    /// Their bytes, as the layer counts.
    pub bytes: u64,
    /// Frames dropped, which would have waited for longer than the class allows.
    pub dropped_frames: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Frames that leave at a later time, which their own sockets stamped.
    pub later_frames: u64,
    /// When the next packet may leave, on the monotonic clock.
    pub clock_ns: u64,
}

impl Running {
    /// Reads what there is on a device. Reading the maps of a program takes root.
    ///
    /// # Errors
    /// The kernel's, or that the program there is of another version.
    pub fn read(tc: &mut Tc, facts: &Facts) -> Result<Self, Error> {
        let qdiscs = tc.qdiscs()?;
        let of_device: Vec<_> = qdiscs.iter().filter(|q| q.device == facts.index).collect();
        let place = |parent: Handle, kind: &str, handle: Handle| {
            let found = of_device.iter().find(|qdisc| qdisc.parent == parent);
            let Some(found) = found else {
                return Place::Default("none".to_owned(), 0);
            };
            let waiting = found.counters.waiting_packets;
            match found.handle {
                Handle::NONE => Place::Default(found.kind.clone(), waiting),
                other if other == handle && found.kind == kind => Place::Ours(waiting),
                other => Place::Other(found.kind.clone(), other, waiting),
            }
        };
        let mq = place(Handle::ROOT, "mq", minor::mq());
        let is_mq = matches!(mq, Place::Ours(_));
        let queues = 0..if is_mq { facts.queues } else { 0 };
        let below = queues.map(|q| place(minor::mq_class(q), FQ, minor::below_mq(q)));
        let below: Vec<_> = below.collect();
        let root = if is_mq {
            mq
        } else {
            place(Handle::ROOT, FQ, minor::root())
        };
        let has_clsact = of_device.iter().any(|qdisc| qdisc.kind == CLSACT);
        let mut other_filters = 0;
        let mut ours: Option<Filter> = None;
        if has_clsact {
            for list in [EGRESS, CLSACT_INGRESS] {
                for filter in tc.filters(facts.index, list)? {
                    let is_ours = list == EGRESS
                        && filter.kind == BPF
                        && (filter.priority, filter.handle) == (FILTER.priority, FILTER.handle);
                    if is_ours {
                        ours = Some(filter)
                    } else {
                        other_filters += 1
                    }
                }
            }
        }
        let maps = match ours.as_ref().and_then(program_id) {
            Some(id) => maps_of(id)?,
            None => None,
        };
        let tables = maps.as_ref().map(Maps::read).transpose()?;
        Ok(Self {
            facts: facts.clone(),
            root,
            is_mq,
            below,
            has_clsact,
            other_filters,
            is_attached: ours.is_some(),
            maps,
            tables: tables.unwrap_or_default(),
        })
    }

    /// Returns whether anything of ours is there. The module has an mq of the same id.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let is_fq = |place: &Place| matches!(place, Place::Ours(_));
        self.is_attached
            || if self.is_mq {
                self.below.iter().any(is_fq)
            } else {
                is_fq(&self.root)
            }
    }

    /// Returns what each paced class has done, by minor number.
    ///
    /// # Errors
    /// The kernel's.
    pub fn counters(&self) -> Result<Vec<ClassCounters>, Error> {
        let Some(maps) = &self.maps else {
            return Ok(Vec::new());
        };
        let slots: BTreeMap<u16, u32> = self.tables.minors.clone();
        let paced = slots.into_iter().filter(|(_, slot)| *slot < CLASSES);
        let counters = paced.map(|(minor, slot)| {
            let state = maps.state(slot)?;
            let class = self.tables.classes.get(&slot).copied();
            let [
                _,
                clock_ns,
                _,
                _,
                frames,
                bytes,
                dropped_frames,
                dropped_bytes,
                later_frames,
            ] = state;
            Ok(ClassCounters {
                minor,
                rate_bps: class.unwrap_or_default()[0],
                frames,
                bytes,
                dropped_frames,
                dropped_bytes,
                later_frames,
                clock_ns,
            })
        });
        counters.collect()
    }
}

/// Returns the id of a filter's program.
fn program_id(filter: &Filter) -> Option<u32> {
    let attributes = attribute::read(&filter.options);
    let id = attributes.iter().find(|a| a.kind == BPF_ID)?;
    Some(u32::from_ne_bytes(id.value.as_slice().try_into().ok()?))
}
