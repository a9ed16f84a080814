// SPDX-License-Identifier: MIT OR Apache-2.0
//! What there is on a device.

use host_config::minor;
use tcpsp::{Filter, FilterId, Handle, Qdisc, Tc, attribute};

use super::layout::{RATE, StateWords, Tables};
use super::maps::Maps;
use super::program::maps_of;
use crate::error::Error;

/// Names of the kernel's kinds.
pub(crate) const FQ: &str = "fq";
pub(crate) const BPF: &str = "bpf";
pub(crate) const CLSACT: &str = "clsact";
/// Handle of clsact, and where it asks filters.
pub(crate) const CLSACT_HANDLE: Handle = Handle::new(0xffff, 0);
const CLSACT_INGRESS: Handle = Handle::new(0xffff, 0xfff2);
pub(crate) const EGRESS: Handle = Handle::new(0xffff, 0xfff3);
/// Priority of our filter among those at the device's egress: the first.
const PRIORITY: u16 = 1;
/// The program's id in what the kernel dumps of a filter (TCA_BPF_ID).
const BPF_ID: u16 = 11;

/// The id of an fq for the moment in which another takes the place of one of ours.
pub(crate) const STAND_IN: Handle = Handle::new(minor::MAJOR - 1, 0);

/// The place of our filter.
pub(crate) const FILTER: FilterId = FilterId {
    qdisc: EGRESS,
    priority: PRIORITY,
    handle: minor::FILTER,
};

/// What there is on a device.
pub(crate) struct Running {
    pub index: u32,
    /// The qdisc at the root: its kind and id.
    pub root: Option<(String, Handle)>,
    /// Whether an fq of ours is at the root, or at a transmit queue.
    pub has_fq: bool,
    /// Packets that fqs of ours dropped: their sockets' times were beyond the horizon.
    pub horizon_drops: u64,
    /// Whether the device has clsact.
    pub has_clsact: bool,
    /// Filters of others at clsact.
    pub other_filters: usize,
    /// Those that are asked at egress before ours, or in its place: what they are.
    pub before: Vec<String>,
    /// Whether our filter is there.
    pub is_attached: bool,
    /// Its maps, if it is of this version.
    pub maps: Option<Maps>,
    /// What is in force.
    pub tables: Tables,
}

/// What a class has done since it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassCounters {
    /// Its minor number; 0 of what has no class.
    pub minor: u16,
    /// Its rate; 0: none.
    pub rate_bps: u64,
    /// Frames that got a departure time, or need none.
    pub frames: u64,
    /// Their bytes, with the header of the link.
    pub bytes: u64,
    /// The bytes that they take on the wire.
    pub wire_bytes: u64,
    /// Frames dropped, which would have waited for longer than the class allows.
    pub dropped_frames: u64,
    /// Frames that were CE-marked because they would wait for long.
    pub marked_frames: u64,
}

impl ClassCounters {
    fn new(minor: u16, rate_bps: u64, state: StateWords) -> Self {
        let [
            _,
            _,
            _,
            _,
            _,
            frames,
            bytes,
            wire_bytes,
            dropped_frames,
            _,
            marked_frames,
        ] = state;
        Self {
            minor,
            rate_bps,
            frames,
            bytes,
            wire_bytes,
            dropped_frames,
            marked_frames,
        }
    }
}

impl Running {
    /// Reads what there is on a device. Reading the maps of a program takes root.
    pub fn read(tc: &mut Tc, index: u32) -> Result<Self, Error> {
        let qdiscs = tc.qdiscs()?;
        let of_device: Vec<_> = qdiscs.iter().filter(|q| q.device == index).collect();
        let root = of_device.iter().find(|qdisc| qdisc.parent == Handle::ROOT);
        let root = root.filter(|root| root.handle != Handle::NONE);
        let ours = of_device.iter().filter(|qdisc| is_ours(qdisc));
        let has_fq = ours.clone().next().is_some();
        let horizon_drops = ours.filter_map(|qdisc| qdisc.horizon_drops).sum();
        let has_clsact = of_device.iter().any(|qdisc| qdisc.kind == CLSACT);
        let (mut other_filters, mut before) = (0, Vec::new());
        let mut ours: Option<Filter> = None;
        if has_clsact {
            for list in [EGRESS, CLSACT_INGRESS] {
                for filter in tc.filters(index, list)? {
                    let is_ours = list == EGRESS
                        && filter.kind == BPF
                        && (filter.priority, filter.handle) == (FILTER.priority, FILTER.handle);
                    if is_ours {
                        ours = Some(filter);
                        continue;
                    }
                    other_filters += 1;
                    if list == EGRESS && filter.priority <= FILTER.priority {
                        let (kind, priority) = (&filter.kind, filter.priority);
                        before.push(format!(
                            "filter {kind} of priority {priority} at clsact egress"
                        ));
                    }
                }
            }
        }
        let (maps, tables) = match ours.as_ref().and_then(program_id).map(in_force) {
            // What another version keeps is not known here: it makes room as a whole.
            None | Some(Err(Error::Version)) => (None, Tables::default()),
            Some(found) => found?,
        };
        Ok(Self {
            index,
            root: root.map(|root| (root.kind.clone(), root.handle)),
            has_fq,
            horizon_drops,
            has_clsact,
            other_filters,
            before,
            is_attached: ours.is_some(),
            maps,
            tables,
        })
    }

    /// Returns what each class has done, by minor number, and what has none.
    pub fn counters(&self) -> Result<(Vec<ClassCounters>, ClassCounters), Error> {
        let Some(maps) = &self.maps else {
            return Ok(Default::default());
        };
        let counters = self.tables.minors.iter().map(|(minor, slot)| {
            let class = self.tables.classes.get(slot).copied().unwrap_or_default();
            Ok(ClassCounters::new(*minor, class[RATE], maps.state(*slot)?))
        });
        let counters: Result<_, Error> = counters.collect();
        Ok((counters?, ClassCounters::new(0, 0, maps.unclassified()?)))
    }
}

/// Returns whether a qdisc is an fq of ours: at the root, or at a transmit queue below our mq. One
/// under [`STAND_IN`] is what an `apply` left that ended amid throwing away.
pub(crate) fn is_ours(qdisc: &Qdisc) -> bool {
    qdisc.kind == FQ && minor::is_at_its_place(place(qdisc), qdisc.parent)
}

/// Returns the id that `apply` gives an fq of ours at this place.
pub(crate) fn place(qdisc: &Qdisc) -> Handle {
    if qdisc.handle != STAND_IN {
        return qdisc.handle;
    }
    let is_mq = qdisc.parent.major() == minor::mq().major();
    let queue = qdisc.parent.minor().checked_sub(1).filter(|_| is_mq);
    queue.map_or(minor::root(), minor::below_mq)
}

/// Returns the maps of the program with this id, and what is in force.
fn in_force(id: u32) -> Result<(Option<Maps>, Tables), Error> {
    let maps = maps_of(id)?;
    let tables = maps.as_ref().map(Maps::read).transpose()?;
    Ok((maps, tables.unwrap_or_default()))
}

fn program_id(filter: &Filter) -> Option<u32> {
    let attributes = attribute::read(&filter.options);
    let id = attributes.iter().find(|a| a.kind == BPF_ID)?;
    Some(u32::from_ne_bytes(id.value.as_slice().try_into().ok()?))
}
